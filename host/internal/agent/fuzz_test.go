package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/agent"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// cases is how many runs are made; AGENT_CASES says otherwise.
func cases(n int) uint64 {
	if more, err := strconv.Atoi(os.Getenv("AGENT_CASES")); err == nil {
		n = more
	}
	return uint64(n)
}

// odd is a model that answers anything.
type odd struct {
	*rand.Rand
	mu sync.Mutex
}

func (o *odd) in(n int) bool { return o.IntN(n) == 0 }

func pick[T any](o *odd, of ...T) T { return of[o.IntN(len(of))] }

func (o *odd) toolCall() *llm.ToolCall {
	c := &llm.ToolCall{
		ID:   pick(o, "", "a", "a", "b", "toolu_1", "call_1", "gemini_call_1_0", "ü", strings.Repeat("x", 90), "a b", fmt.Sprint(o.IntN(1000))),
		Name: pick(o, "ls", "ls", "ls", "rm", "ask", "client", "nothing", "", "bad name!", strings.Repeat("n", 200), "\xff"),
		Args: json.RawMessage(fmt.Sprintf(`{"n":%d}`, o.IntN(4))),
	}
	switch o.IntN(8) {
	case 0:
		c.Args, c.Malformed = nil, pick(o, `{"a":`, "rm -rf", "null", "[]", "\xff\xfe")
	case 1: // which a provider should not let pass
		c.Args = json.RawMessage(pick(o, `{"a":`, `[1]`, `null`, `"x"`, `{"a":1,"a":2}`, strings.Repeat(`{"a":`, 400)+"1"+strings.Repeat("}", 400), "\xff", "{} {}"))
	case 2:
		c.Args = nil
	}
	return c
}

func (o *odd) part() llm.Part {
	sign := func(p llm.Part) llm.Part {
		if o.in(2) {
			p.Signature = &llm.Signature{Vendor: pick(o, llm.Anthropic, llm.Gemini, llm.OpenAI), Value: "c2ln"}
		}
		return p
	}
	switch o.IntN(14) {
	case 0:
		return sign(llm.Part{Type: llm.ThinkingPart, Text: pick(o, "", "hm")})
	case 1:
		return llm.Part{Type: llm.RedactedPart, Signature: &llm.Signature{Vendor: llm.Anthropic, Value: "c2ln"}}
	case 2:
		return llm.Part{Type: llm.RefusalPart, Text: pick(o, "", "no")}
	case 3, 4, 5:
		return sign(llm.Part{Type: llm.TextPart, Text: pick(o, "", " ", "\n\n", "some text", "\xff", "\x00")})
	case 6:
		return pick(o, llm.Part{}, llm.Part{Type: "odd"}, llm.Part{Type: llm.CallPart},
			llm.Part{Type: llm.ResultPart, ToolResult: &llm.ToolResult{ID: "a"}}, llm.Part{Type: llm.ImagePart})
	}
	return sign(llm.Part{Type: llm.CallPart, ToolCall: o.toolCall()})
}

func (o *odd) answer() (*llm.Response, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch o.IntN(30) {
	case 0:
		return nil, nil
	case 1:
		panic("odd")
	case 2:
		return nil, toolerr.New(toolerr.LimitReached, "too long")
	}
	r := &llm.Response{StopReason: pick(o, "", llm.StopEnd, llm.StopCalls, llm.StopCalls, llm.StopCalls, llm.StopLength, llm.StopContext, llm.StopRefusal, llm.StopPause, llm.StopFault, llm.StopOther)}
	n := o.IntN(5)
	if o.in(25) {
		n = 100 + o.IntN(60)
	}
	for range n {
		r.Parts = append(r.Parts, o.part())
	}
	if o.in(2) {
		r.Usage = &llm.Usage{Input: o.IntN(1000), Output: o.IntN(100)}
	}
	if o.in(15) {
		return r, toolerr.New(pick(o, toolerr.TransportError, toolerr.ModelError, toolerr.RateLimited), "cut")
	}
	return r, nil
}

func (o *odd) result(ctx context.Context, c *llm.ToolCall) (*call.Result, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if c.Name == "client" {
		return nil, &call.PendingError{Pending: call.Pending{Reason: agent.ClientTool}}
	}
	switch o.IntN(12) {
	case 0:
		return nil, toolerr.New(toolerr.ServerOffline, "gone \xff")
	case 1:
		return failure("no"), nil
	case 2:
		panic("in the tool")
	case 3:
		return nil, nil
	case 4:
		return &call.Result{Raw: json.RawMessage(pick(o, `{`, `[]`, `{"content":"x"}`, `{"content":[{"type":"audio","data":"AA==","mimeType":"audio/wav"},{"type":"image","data":"iVBORw==","mimeType":"image/png"}]}`, `{"content":[]}`))}, nil
	case 5:
		return result(strings.Repeat("line after line\n", 1000)), nil
	case 6:
		if o.in(4) {
			return nil, &call.PendingError{Pending: call.Pending{ID: "p", Reason: "asked", Message: "wait"}}
		}
	}
	return result("fine"), ctx.Err()
}

// Whatever a model answers and tools do, a run ends within its bounds, says why, and
// its history is one that every vendor takes; read from its journal it is the same.
func TestWhateverTheModelAnswers(t *testing.T) {
	ends := map[agent.Ending]int{}
	for seed := range cases(60) {
		o := &odd{Rand: rand.New(rand.NewPCG(seed, 11))}
		m := &model{say: func(context.Context, int, *llm.Request, func(llm.Delta)) (*llm.Response, error) {
			return o.answer()
		}}
		m.info.Name = "odd"
		m.info.Window = pick(o, 0, 0, 3000, 20_000)
		box := tools("ls", "rm", "client")
		box.call = func(ctx context.Context, c *llm.ToolCall, _ func(string)) (*call.Result, error) {
			return o.result(ctx, c)
		}
		log := &memory{}
		cfg := agent.Config{Model: m, Tools: box, Journal: log, Retries: o.IntN(3), System: pick(o, "", "be good"), Request: llm.Request{MaxTokens: 100}, Bounds: agent.Bounds{
			Turns: 1 + o.IntN(12), Tokens: pick(o, 0, 3000), Identical: pick(o, 0, -1, 2), Time: time.Minute, Grace: time.Minute,
		}}
		if o.in(3) {
			cfg.CallerTools = []llm.Tool{{Name: "ask"}}
		}
		ctx, cancel := context.WithCancel(t.Context())
		told := 0
		stop := pick(o, -1, -1, -1, o.IntN(40))
		cfg.On = func(agent.Event) {
			if told++; told == stop {
				cancel()
			}
		}
		given := []llm.Message{user("go")}
		out := agent.Run(ctx, cfg, given)
		cancel()
		ends[out.Ending]++
		require.NotEmpty(t, out.Ending, "seed %d", seed)
		require.LessOrEqual(t, out.Turns, cfg.Bounds.Turns+2, "seed %d: the summary, and again where it did not fit", seed)
		whole := append(given, out.Messages...)
		for _, c := range out.CallerCalls {
			require.Nil(t, results(whole)[c.ID])
		}
		valid(t, answered(whole, out.CallerCalls))

		again := agent.Resume(t.Context(), agent.Config{Model: script(says("x")), CallerTools: cfg.CallerTools, Journal: log, Bounds: agent.Bounds{Turns: 3}}, nil)
		if out.Ending == agent.EndGoal || out.Ending == agent.EndCallerTools || out.Ending == agent.EndRefused || out.Ending == agent.EndLength || out.Ending == agent.EndEmpty {
			require.Equal(t, plain(t, out.Messages), plain(t, again.Messages), "seed %d", seed)
			require.Equal(t, out.Ending, again.Ending)
			require.Len(t, again.CallerCalls, len(out.CallerCalls))
		}
		require.NotEqual(t, agent.EndJournalError, again.Ending, "seed %d: %v", seed, again.Err)
	}
	t.Log(ends)
	require.GreaterOrEqual(t, len(ends), 6, "they end for many reasons")
}

// answered puts the caller's results behind a conversation that waits for them.
func answered(messages []llm.Message, calls []*llm.ToolCall) []llm.Message {
	if len(calls) == 0 {
		return messages
	}
	messages = append([]llm.Message(nil), messages...)
	for _, c := range calls {
		messages = append(messages, llm.Message{Role: llm.ToolRole, Parts: []llm.Part{{Type: llm.ResultPart, ToolResult: &llm.ToolResult{ID: c.ID, Content: []llm.Part{{Type: llm.TextPart, Text: "mine"}}}}}})
	}
	// In the order of the calls, as the next request has them.
	return inOrder(messages)
}

func inOrder(messages []llm.Message) []llm.Message {
	var losses llm.Losses
	return llm.SortResults(messages, &losses)
}

// plain is a conversation as JSON.
func plain(t *testing.T, messages []llm.Message) string {
	t.Helper()
	raw, err := json.Marshal(messages)
	require.NoError(t, err)
	return string(raw)
}
