package upstream_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/retry"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/timeout"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// fault is what a server does with one call that reaches it.
type fault int

const (
	answers        fault = iota // carries it out and answers
	answersAndDies              // and is gone then
	saysError                   // carries it out and says that the tool failed
	refuses                     // answers with an error, having done nothing
	hangs                       // does nothing, and never answers
	hangsAfter                  // carries it out, and never answers
	dies                        // is gone, having done nothing
	diesAfter                   // carries it out and is gone
	garbles                     // carries it out and answers what is no answer
	faults
)

// executes reports whether the call has its effect.
func (f fault) executes() bool { return f != refuses && f != hangs && f != dies }

// again reports whether the next attempt may do better.
func (f fault) again() bool { return f == hangs || f == hangsAfter }

// scheduled is a server with a schedule of faults.
type scheduled struct {
	mu      sync.Mutex
	starts  int     // that fail, from now on
	plan    []fault // of the calls that come; after it they are answered
	reached int     // calls that came
	ran     int     // calls that had their effect
	dying   bool    // it ends when it is asked anything
}

func (s *scheduled) schedule(starts int, dying bool, plan ...fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starts, s.dying, s.plan, s.reached, s.ran = starts, dying, plan, 0, 0
}

func (s *scheduled) counts() (reached, ran int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reached, s.ran
}

// next takes a call.
func (s *scheduled) next() fault { return s.nextOf(fault.executes) }

func (s *scheduled) nextOf(executes func(fault) bool) fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reached++
	f := answers
	if len(s.plan) > 0 {
		f, s.plan = s.plan[0], s.plan[1:]
	}
	if executes(f) {
		s.ran++
	}
	return f
}

var errEnds = errors.New("it ends")

// serve is one run of the server.
func (s *scheduled) serve(_ context.Context, in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil
		}
		m, err := jsonrpc.Split(line)
		if err != nil || m.Kind != jsonrpc.Request {
			continue
		}
		result := json.RawMessage(`{}`)
		switch m.Method {
		case "initialize":
			s.mu.Lock()
			fails := s.starts > 0
			s.starts--
			s.mu.Unlock()
			if fails {
				return errEnds
			}
			result = json.RawMessage(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`)
		case "tools/list":
			result = json.RawMessage(`{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`)
		case "tools/call":
			switch f := s.next(); f {
			case hangs, hangsAfter:
				continue
			case dies, diesAfter:
				return errEnds
			case refuses:
				out.Write(append(jsonrpc.AppendError(nil, m.ID, jsonrpc.CodeInvalidParams, "no"), '\n')) //nolint:errcheck // the host is gone
				continue
			case garbles:
				fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{},"result":{}}`+"\n", m.ID) //nolint:errcheck // the host is gone
				continue
			case saysError:
				result = json.RawMessage(`{"isError":true,"content":[]}`)
			case answersAndDies:
				out.Write(append(jsonrpc.AppendResult(nil, m.ID, result), '\n')) //nolint:errcheck // the host is gone
				return errEnds
			}
		default: // a ping
			s.mu.Lock()
			dying := s.dying
			s.dying = false
			s.mu.Unlock()
			if dying {
				return errEnds
			}
		}
		if _, err := out.Write(append(jsonrpc.AppendResult(nil, m.ID, result), '\n')); err != nil {
			return nil
		}
	}
}

const attempts = 3

// Over ten thousand random schedules of faults: a call of a tool that does not
// say that it may be repeated reaches the server at most once, and so has its
// effect at most once, whatever retry, restart and reconnect do. One of a tool
// that does succeeds whenever an attempt within its limit can.
func TestRetryNeverRepeatsASideEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(7, 11)) //nolint:gosec // a schedule, not a secret
		fixture := &scheduled{}
		spawner := upstream.NewSpawner(nil)
		defer spawner.Close()
		s, err := upstream.New(upstream.Config{Name: "s", Serve: fixture.serve, Era: upstream.Legacy, HealthEvery: time.Hour}, spawner)
		require.NoError(t, err)
		defer s.Close()
		h := call.Chain(s.Call, timeout.New(timeout.Config{}), retry.New(retry.Config{Attempts: attempts, PerAttempt: 5 * time.Second}))
		var succeeded, had int
		for n := range schedules {
			starts, dying := 0, random.IntN(8) == 0
			if random.IntN(3) == 0 {
				starts = random.IntN(4)
			}
			plan := make([]fault, random.IntN(5))
			for i := range plan {
				plan[i] = fault(random.IntN(int(faults)))
			}
			fixture.schedule(starts, dying, plan...)
			if dying || starts > 0 { // it ends between two calls
				s.Ping(t.Context()) //nolint:errcheck // it may be gone
			}
			tool := &call.Tool{Name: "t", Server: "s", Original: "t"}
			switch random.IntN(3) {
			case 1:
				tool.Idempotent = true
			case 2:
				tool.ReadOnly = true
			}
			res, err := h(t.Context(), &call.Request{Tool: tool, Params: json.RawMessage(`{"name":"t"}`)})
			reached, ran := fixture.counts()
			what := fmt.Sprintf("schedule %d: starts %d, dying %v, plan %v, repeatable %v: %v", n, starts, dying, plan, tool.IsRepeatable(), err)
			if err == nil {
				succeeded++
				require.Positive(t, ran, what)
			}
			if !tool.IsRepeatable() {
				require.LessOrEqual(t, reached, 1, what)
				require.LessOrEqual(t, ran, 1, what)
			} else if can(starts, plan) {
				had++
				require.NoError(t, err, what)
				require.False(t, res.IsError(), what)
			}
			require.LessOrEqual(t, reached, attempts, what)
			time.Sleep(2 * time.Minute) // after which a server that kept failing is well again
		}
		require.Greater(t, succeeded, schedules/4)
		require.Greater(t, had, schedules/8, "schedules in which it had to succeed")
	})
}

// can reports whether one of the attempts of a call that may be repeated meets
// a server that answers: those before it find that it does not start, or does
// not answer.
func can(starts int, plan []fault) bool {
	for used := starts; used < attempts; used++ {
		if len(plan) == 0 {
			return true
		}
		if !plan[0].again() {
			return plan[0] == answers || plan[0] == answersAndDies
		}
		plan = plan[1:]
	}
	return false
}
