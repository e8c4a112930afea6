package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/internal/testkit/talkserver"
)

// sharing returns SharedServers, and a Share that connects to them.
func sharing(t *testing.T, idle time.Duration) (*upstream.SharedServers, *upstream.Share) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	shared := upstream.NewSharedServers(upstream.SharedConfig{Guard: []string{self, "guard"}, Idle: idle})
	t.Cleanup(shared.Close)
	return shared, &upstream.Share{Dial: func(context.Context) (net.Conn, error) { return connect(shared), nil }}
}

// connect returns a host's end of a connection to SharedServers.
func connect(shared *upstream.SharedServers) net.Conn {
	ours, theirs := net.Pipe()
	go serveShared(shared, theirs)
	return ours
}

// sharer is a host with one server that it shares.
type sharer struct {
	*upstream.Server
	name string

	mu    sync.Mutex
	roots []string
	heard []string // texts of questions and notifications
}

func (h *sharer) hear(method string, params json.RawMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.heard = append(h.heard, method+" "+string(params))
}

func (h *sharer) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.heard)
}

// shareTalker returns a host that uses the talker.
func shareTalker(t *testing.T, share *upstream.Share, name string, change func(*upstream.Config)) *sharer {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	h := &sharer{name: name}
	cfg := upstream.Config{
		Name: "talker", Command: []string{self, talkserver.Arg}, Env: os.Environ(), StartTimeout: time.Minute, Share: share, CloseGrace: time.Second,
		Roots: func() []string {
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.roots
		},
	}
	if change != nil {
		change(&cfg)
	}
	spawner := upstream.NewSpawner(nil)
	h.Server, err = upstream.New(cfg, spawner)
	require.NoError(t, err)
	h.OnNotification(func(method string, params json.RawMessage, _ *call.Owner) { h.hear(method, params) })
	t.Cleanup(func() {
		h.Close()
		spawner.Close()
	})
	return h
}

// try calls a tool as a client that answers questions with the host's name.
func (h *sharer) try(ctx context.Context, tool, text string, n int) (string, error) {
	params := fmt.Sprintf(`{"name":%q,"arguments":{"text":%q,"n":%d},"_meta":{"progressToken":"mine"}}`, tool, text, n)
	r := request(tool, params)
	r.Caller = call.Caller{ID: "stdio"}
	r.OnNotify = h.hear
	r.Ask = func(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		h.hear(method, params)
		return json.RawMessage(fmt.Sprintf(`{"action":"accept","content":{"name":%q}}`, h.name)), nil
	}
	res, err := h.Call(ctx, r)
	if err != nil {
		return "", err
	}
	var out struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(res.Raw, &out); err != nil || len(out.Content) == 0 {
		return "", fmt.Errorf("%s: %w", res.Raw, err)
	}
	return out.Content[0].Text, nil
}

func (h *sharer) do(t *testing.T, tool, text string, n int) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	said, err := h.try(ctx, tool, text, n)
	require.NoError(t, err)
	return said
}

func TestHostsShareAProcess(t *testing.T) {
	t.Parallel()
	shared, share := sharing(t, 0)
	a, b := shareTalker(t, share, "a", nil), shareTalker(t, share, "b", nil)
	other := shareTalker(t, share, "other", func(c *upstream.Config) { c.Env = append(slices.Clone(c.Env), "TALKER_TOKEN=other") })
	for _, h := range []*sharer{a, b, other} {
		require.Equal(t, h.name, h.do(t, "echo", h.name, 0))
	}
	require.Equal(t, a.Status().PID, b.Status().PID)
	require.NotEqual(t, a.Status().PID, other.Status().PID, "another environment is another process")
	require.Len(t, shared.Status(), 2)
	secretive := shareTalker(t, share, "secretive", func(c *upstream.Config) {
		c.Command = append(slices.Clone(c.Command), "-key", "expanded-value-1", "--token", "given-value-2")
		c.Secrets = []secret.Text{"expanded-value-1"}
	})
	secretive.do(t, "echo", "", 0)
	status, err := json.Marshal(shared.Status())
	require.NoError(t, err)
	require.NotContains(t, string(status), "-value-")
	secretive.Close()
	require.Eventually(t, func() bool { return len(shared.Status()) == 2 }, time.Minute, time.Millisecond)
	require.Equal(t, 2, shared.Status()[0].Hosts)

	// Each host gets what belongs to its calls.
	require.Contains(t, a.do(t, "elicit_for", "for a", 0), `"name":"a"`)
	require.Contains(t, b.do(t, "elicit_for", "for b", 0), `"name":"b"`)
	a.do(t, "progress", "step of a", 0)
	b.do(t, "log", "log of b", 0)
	subscribe := func(h *sharer, method, uri string) {
		_, err := h.Forward(t.Context(), &call.UpstreamRequest{Method: method, Params: json.RawMessage(fmt.Sprintf(`{"uri":%q}`, uri))})
		require.NoError(t, err)
	}
	subscribe(a, "resources/subscribe", "test://both")
	subscribe(b, "resources/subscribe", "test://both")
	subscribe(b, "resources/subscribe", "test://b")
	a.do(t, "touch", "test://b", 0)
	a.do(t, "touch", "test://both", 0)
	a.do(t, "url", "url of a", 0)
	b.do(t, "complete", "url of a", 0)
	require.Eventually(t, func() bool {
		return slices.Contains(b.all(), `notifications/resources/updated {"uri":"test://both"}`) && slices.Contains(a.all(), `notifications/elicitation/complete {"elicitationId":"url of a"}`)
	}, time.Minute, time.Millisecond)
	heardA, heardB := strings.Join(a.all(), "\n"), strings.Join(b.all(), "\n")
	require.Contains(t, heardA, "for a")
	require.Contains(t, heardA, "step of a")
	require.Contains(t, heardA, "test://both")
	require.NotContains(t, heardA, "test://b\"")
	require.NotContains(t, heardA, "of b")
	require.NotContains(t, heardA, "for b")
	require.NotContains(t, heardB, "log of b", "log messages do not name their request")
	require.Contains(t, heardB, "test://b\"")
	require.NotContains(t, heardB, " a\"")

	// A host that unsubscribes or leaves takes nothing from the other.
	subscribe(a, "resources/unsubscribe", "test://both")
	a.Close()
	before := len(b.all())
	b.do(t, "touch", "test://both", 0)
	require.Eventually(t, func() bool { return len(b.all()) == before+1 }, time.Minute, time.Millisecond)
	b.do(t, "log", "log of b", 0)
	require.Contains(t, strings.Join(b.all(), "\n"), "log of b", "it is the only host")
	b.Close()
	other.Close()
	require.Eventually(t, func() bool { return len(shared.Status()) == 0 }, time.Minute, time.Millisecond, "nobody uses them")
}

// The tools of a process are listed once for all hosts, and again after a change.
func TestToolsAreListedOnce(t *testing.T) {
	t.Parallel()
	_, share := sharing(t, 0)
	a, b := shareTalker(t, share, "a", nil), shareTalker(t, share, "b", nil)
	changed := make(chan struct{}, 10)
	b.OnChange(func() { changed <- struct{}{} })
	list := func(h *sharer) string {
		tools, err := h.Tools(t.Context())
		require.NoError(t, err)
		return string(tools[0])
	}
	require.Contains(t, list(a), "list 1")
	require.Contains(t, list(b), "list 1")
	a.do(t, "changed", "", 0)
	<-changed
	require.NotContains(t, list(b), "list 1")
}

// Hosts with different roots share a process only as long as it does not ask for roots.
func TestRootsSeparateHosts(t *testing.T) {
	t.Parallel()
	_, share := sharing(t, time.Minute)
	a, b, same := shareTalker(t, share, "a", nil), shareTalker(t, share, "b", nil), shareTalker(t, share, "same", nil)
	a.roots, b.roots, same.roots = []string{"file:///a"}, []string{"file:///b"}, []string{"file:///a"}
	for _, h := range []*sharer{a, b, same} {
		h.do(t, "echo", "", 0)
	}
	require.Equal(t, a.Status().PID, b.Status().PID, "the server has not asked for roots")
	require.Contains(t, a.do(t, "roots", "", 0), "file:///a")
	require.Contains(t, b.do(t, "roots", "", 0), "file:///b")
	require.Contains(t, same.do(t, "roots", "", 0), "file:///a")
	require.NotEqual(t, a.Status().PID, b.Status().PID)
	require.Equal(t, a.Status().PID, same.Status().PID)
	first := a.Status().PID

	// A host whose roots change moves; the others stay.
	a.mu.Lock()
	a.roots = []string{"file:///b"}
	a.mu.Unlock()
	a.RootsChanged()
	require.Contains(t, a.do(t, "roots", "", 0), "file:///b")
	require.Equal(t, b.Status().PID, a.Status().PID)
	require.Contains(t, same.do(t, "roots", "", 0), "file:///a")
	require.Equal(t, first, same.Status().PID)
}

// Hosts that start at the same time, with different roots, each get a process that has
// learned their roots.
func TestHostsWithDifferentRootsStartAtOnce(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	for round := range 10 {
		_, share := sharing(t, 0)
		var all sync.WaitGroup
		for i := range 4 {
			root := fmt.Sprintf("file:///root%d", i%2)
			h := shareTalker(t, share, root, func(c *upstream.Config) { c.Command = []string{self, talkserver.Arg, "-roots"} })
			h.roots = []string{root}
			all.Go(func() {
				deadline := time.Now().Add(time.Minute)
				for {
					said, err := h.try(t.Context(), "first_roots", "", 0)
					if err == nil && strings.Contains(said, root) {
						return
					}
					if err != nil || strings.Contains(said, "file:") || time.Now().After(deadline) {
						t.Errorf("round %d: %s got %q, %v", round, root, said, err)
						return
					}
				}
			})
		}
		all.Wait()
	}
}

// TestTwentyHostsHearOnlyTheirOwn lets twenty hosts call at random, with their names in
// all they send. Nothing with another's name may reach a host.
func TestTwentyHostsHearOnlyTheirOwn(t *testing.T) {
	t.Parallel()
	_, share := sharing(t, time.Minute)
	var all sync.WaitGroup
	var hosts []*sharer
	for i := range 20 {
		h := shareTalker(t, share, fmt.Sprintf("<%02d>", i), nil)
		h.roots = []string{fmt.Sprintf("file:///r%d", i%3)}
		hosts = append(hosts, h)
	}
	var failed atomic.Pointer[string]
	fail := func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		failed.CompareAndSwap(nil, &text)
	}
	for i, h := range hosts {
		all.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 1))
			uri := "test://" + h.name
			if _, err := h.Forward(t.Context(), &call.UpstreamRequest{Method: "resources/subscribe", Params: json.RawMessage(fmt.Sprintf(`{"uri":%q}`, uri))}); err != nil {
				fail("%v", err)
			}
			tools := []string{"echo", "elicit_for", "url", "complete", "log", "log_later", "touch", "progress", "changed", "sleep", "roots"}
			for round := range 60 {
				tool, text := tools[random.IntN(len(tools))], h.name
				if round == 40 { // a question without a call separates the hosts
					tools = append(tools, "elicit", "elicit_later")
				}
				switch tool {
				case "touch":
					text = uri
				case "roots":
					if random.IntN(10) > 0 {
						continue
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				if random.IntN(10) == 0 {
					cancel()
					ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
				}
				said, err := h.try(ctx, tool, text, random.IntN(5))
				cancel()
				switch {
				case err != nil && !errors.Is(err, context.DeadlineExceeded):
					fail("%s: %v", tool, err)
				case err == nil && tool == "roots" && !strings.Contains(said, h.roots[0]) && !strings.Contains(said, "requests of several clients"):
					fail("roots of %s: %s", h.name, said)
				case err == nil && (tool == "echo" || tool == "sleep") && said != h.name:
					fail("%s got %s", h.name, said)
				}
			}
		})
	}
	all.Wait()
	time.Sleep(50 * time.Millisecond) // late messages
	name := regexp.MustCompile(`<[0-9][0-9]>`)
	total := 0
	for _, h := range hosts {
		for _, text := range h.all() {
			total++
			for _, found := range name.FindAllString(text, -1) {
				require.Equal(t, h.name, found, text)
			}
		}
	}
	if text := failed.Load(); text != nil {
		t.Error(*text)
	}
	require.Greater(t, total, 100, "they hear their own")
}

// A host takes ids from new blocks for as long as it runs. All are below 2^31, since some
// servers decode ids into 32 bits.
func TestIDsStaySmallAndDiffer(t *testing.T) {
	t.Parallel()
	_, share := sharing(t, 0)
	a, b := shareTalker(t, share, "a", nil), shareTalker(t, share, "b", nil)
	var all sync.WaitGroup
	for _, h := range []*sharer{a, b} {
		h.do(t, "echo", "", 0)
		for range 8 {
			all.Go(func() {
				for range 2_000 { // of each host more than three blocks of 4,096
					if _, err := h.try(t.Context(), "echo", h.name, 0); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	all.Wait()
	for _, h := range []*sharer{a, b} {
		require.Equal(t, h.name, h.do(t, "echo", h.name, 0))
		require.Less(t, upstream.NextID(h.Server), uint64(1<<31))
		require.Greater(t, upstream.NextID(h.Server), uint64(16_000))
	}
}

// A host that stops while it opens the session of a process holds up others for a
// limited time.
func TestAHostThatStopsDuringTheHandshake(t *testing.T) {
	t.Parallel()
	shared, share := sharing(t, 0)
	late := shareTalker(t, share, "late", func(c *upstream.Config) { c.StartTimeout = time.Minute })
	stopped := connect(shared)
	defer stopped.Close()
	request, err := upstream.AttachLine(late.Server, 300*time.Millisecond)
	require.NoError(t, err)
	_, err = stopped.Write(request)
	require.NoError(t, err)
	_, err = stopped.Read(make([]byte, 1<<10)) // it is the first host of the process, and says nothing more
	require.NoError(t, err)
	require.Equal(t, "late", late.do(t, "echo", "late", 0))
}
