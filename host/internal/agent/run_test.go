package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/agent"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func ask(t *testing.T, cfg agent.Config) *agent.Outcome {
	t.Helper()
	return agent.Run(t.Context(), cfg, []llm.Message{user("go")})
}

// results are the results of a conversation by the ids of their calls.
func results(messages []llm.Message) map[string]*llm.ToolResult {
	all := map[string]*llm.ToolResult{}
	for _, m := range messages {
		for _, p := range m.Parts {
			if p.ToolResult != nil {
				all[p.ToolResult.ID] = p.ToolResult
			}
		}
	}
	return all
}

func TestCallsAreMadeUntilThereAreNone(t *testing.T) {
	m := script(wants(to("1", "ls", `{"path":"."}`), to("2", "grep", `{}`)), wants(to("3", "view", `{}`)), says("done"))
	box := tools("ls", "grep", "view")
	var events []agent.Event
	o := ask(t, agent.Config{Model: m, Tools: box, System: "be brief", On: func(e agent.Event) { events = append(events, e) }})
	require.Equal(t, agent.EndGoal, o.Ending)
	require.NoError(t, o.Err)
	require.Equal(t, "done", o.Text())
	require.Equal(t, 3, o.Turns)
	require.Equal(t, map[string]int{"ls": 1, "grep": 1, "view": 1}, o.Calls)
	require.Equal(t, llm.Usage{Input: 300, Output: 30}, o.Usage)
	require.Len(t, o.Messages, 5)
	require.Equal(t, llm.SystemRole, m.asked[2].Messages[0].Role)
	require.Len(t, m.asked[2].Messages, 6)
	first := o.Messages[1]
	require.Equal(t, llm.ToolRole, first.Role)
	require.Equal(t, []string{"1", "2"}, []string{first.Parts[0].ToolResult.ID, first.Parts[1].ToolResult.ID})
	require.Equal(t, `ls of {"path":"."}`, first.Parts[0].ToolResult.Content[0].Text)
	require.Equal(t, "duration_ms", first.Parts[0].ToolResult.ExtraMembers[0].Name)

	begun := map[string]bool{}
	for _, e := range events {
		switch e.Type {
		case agent.CallEvent:
			begun[e.ID] = true
		case agent.ResultEvent:
			require.True(t, begun[e.ID], "a call is told of before its result")
		}
	}
	require.Len(t, begun, 3)
	require.Equal(t, agent.TurnEvent, events[0].Type)
	require.Equal(t, agent.EndEvent, events[len(events)-1].Type)
}

func TestFailuresAreTold(t *testing.T) {
	box := tools("a", "b", "c", "d")
	box.call = func(_ context.Context, c *llm.ToolCall, _ func(string)) (*call.Result, error) {
		switch c.Name {
		case "a":
			return nil, toolerr.New(toolerr.ServerOffline, "it is gone")
		case "b":
			return failure("no such file\n"), nil
		case "c":
			panic("at the disco")
		}
		return &call.Result{Raw: json.RawMessage(`[]`)}, nil
	}
	o := ask(t, agent.Config{Tools: box, Model: script(wants(
		to("1", "a", `{"z":1,"b":{"y":2,"x":[]}}`), to("2", "b", `{}`), to("3", "c", `{}`), to("4", "d", `{}`), to("5", "nothing", `{}`),
		llm.ToolCall{ID: "6", Name: "a", Malformed: `{"z":`},
	), says("ok"))})
	require.Equal(t, agent.EndGoal, o.Ending)
	all := results(o.Messages)
	for id, want := range map[string]string{
		"1": "tool: a\narguments: {\"b\":{\"x\":[],\"y\":2},\"z\":1}\nerror: SERVER_OFFLINE: it is gone\nduration_ms: \\d+",
		"2": "tool: b\narguments: {}\noutput:\nno such file\nduration_ms: \\d+",
		"3": "tool: c\narguments: {}\nerror: INTERNAL: the call failed within the host: at the disco\nduration_ms: \\d+",
		"4": "tool: d\narguments: {}\nerror: RESULT_INVALID: the result of d is not an object\nduration_ms: \\d+",
		"5": "tool: nothing\narguments: {}\nerror: TOOL_NOT_FOUND: no tool \"nothing\"\nduration_ms: \\d+",
		"6": "tool: a\narguments: {\"z\":\nerror: INVALID_PARAMS: the arguments are not one JSON object; call a again with one\nduration_ms: \\d+",
	} {
		require.True(t, all[id].IsError)
		require.Regexp(t, "^"+quoted(want)+"$", all[id].Content[0].Text)
	}
	require.Equal(t, map[string]int{"a": 1, "b": 1, "c": 1, "d": 1}, o.Calls, "what is not there was not called")
}

// quoted escapes what is special in a pattern, but for the number at its end.
func quoted(text string) string {
	out := ""
	for _, r := range text {
		if r == '{' || r == '}' || r == '[' || r == ']' || r == '.' {
			out += `\`
		}
		out += string(r)
	}
	return out
}

func TestAtABoundTheModelSumsUp(t *testing.T) {
	for why, b := range map[agent.Ending]agent.Bounds{
		agent.EndTurns:     {Turns: 4, Identical: -1},
		agent.EndTokens:    {Tokens: 400, Identical: -1},
		agent.EndCost:      {Cost: 4, Identical: -1},
		agent.EndIdentical: {Identical: 4},
	} {
		m := script(wants(to("x", "ls", `{}`)))
		m.info.Price = provider.Price{Input: 1e6 / 110, Output: 1e6 / 110}
		m.say = func(_ context.Context, n int, r *llm.Request, _ func(llm.Delta)) (*llm.Response, error) {
			if r.Choice != nil && r.Choice.Mode == llm.ChoiceNone {
				require.NotEmpty(t, r.Tools, "vendors want the definitions of what was called")
				return says("the findings"), nil
			}
			return wants(to("x", "ls", `{}`)), nil
		}
		o := ask(t, agent.Config{Model: m, Tools: tools("ls"), Bounds: b})
		require.Equal(t, why, o.Ending)
		require.True(t, o.HasSummary, why)
		require.NoError(t, o.Err)
		require.Equal(t, "the findings", o.Text())
		require.Equal(t, 4, o.Calls["ls"], why)
		valid(t, append([]llm.Message{user("go")}, o.Messages...))
	}
}

func TestTheTimeLimit(t *testing.T) {
	box := tools("sleep")
	box.call = func(ctx context.Context, _ *llm.ToolCall, _ func(string)) (*call.Result, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	m := script(wants(to("1", "sleep", `{}`)), says("sum"))
	o := ask(t, agent.Config{Model: m, Tools: box, Bounds: agent.Bounds{Time: 20 * time.Millisecond}})
	require.Equal(t, agent.EndTime, o.Ending)
	require.True(t, o.HasSummary)
	require.Contains(t, results(o.Messages)["1"].Content[0].Text, "error: CANCELLED: the run ended during this call, which may have taken effect")
	valid(t, append([]llm.Message{user("go")}, o.Messages...))
}

func TestARoundThatThePolicyRefusesIsABound(t *testing.T) {
	box := tools("ls")
	n := 0
	box.begin = func() error {
		if n++; n > 2 {
			return toolerr.New(toolerr.LimitReached, "all 2 rounds have been made")
		}
		return nil
	}
	o := ask(t, agent.Config{Model: script(wants(to("1", "ls", `{}`)), wants(to("2", "ls", `{}`)), says("sum")), Tools: box})
	require.Equal(t, agent.EndTurns, o.Ending)
	require.ErrorContains(t, o.Err, "all 2 rounds")
	require.True(t, o.HasSummary)
}

func TestChoicesAreOfToolsThatAreThere(t *testing.T) {
	m := script(wants(to("1", "rm", `{}`), to("2", "ls", `{}`)), says("x"))
	box := tools("ls", "rm")
	box.choice = &llm.Choice{Mode: llm.ChoiceAuto, ToolNames: []string{"ls", "gone"}}
	o := ask(t, agent.Config{Model: m, Tools: box})
	require.Equal(t, &llm.Choice{Mode: llm.ChoiceAuto, ToolNames: []string{"ls"}}, m.asked[0].Choice)
	require.Equal(t, map[string]int{"ls": 1}, o.Calls, "what was not chosen is not called")
	require.Contains(t, results(o.Messages)["1"].Content[0].Text, "POLICY_DENIED: rm cannot be called in this turn")

	box.choice = &llm.Choice{Mode: llm.ChoiceRequired, ToolNames: []string{"gone"}}
	o = ask(t, agent.Config{Model: m, Tools: box})
	require.Equal(t, agent.EndDenied, o.Ending)
	require.ErrorContains(t, o.Err, "gone must be called")
	require.Equal(t, agent.EndJournalError, agent.Resume(t.Context(), agent.Config{Model: m}, nil).Ending)
}

// Old results are cut, then a larger model takes over; what does not fit at all is said
// and summed up as far as it goes.
func TestTheContext(t *testing.T) {
	turns := func(n int) *model {
		m := &model{}
		m.say = func(_ context.Context, i int, r *llm.Request, _ func(llm.Delta)) (*llm.Response, error) {
			if i < n && (r.Choice == nil || r.Choice.Mode != llm.ChoiceNone) {
				return wants(to("", "view", fmt.Sprintf(`{"n":%d}`, i))), nil
			}
			return says("found"), nil
		}
		m.info = provider.Info{Name: "small", Window: 4000, MaxOutput: 100}
		return m
	}
	box := tools("view")
	box.call = func(context.Context, *llm.ToolCall, func(string)) (*call.Result, error) {
		return result(strings.Repeat("a line of text, ", 300)), nil
	}
	var cuts []string
	on := func(e agent.Event) {
		if e.Type == agent.CompactedEvent {
			cuts = append(cuts, e.Text)
		}
	}
	o := ask(t, agent.Config{Model: turns(8), Tools: box, On: on})
	require.Equal(t, agent.EndGoal, o.Ending, "%v", o.Err)
	require.Contains(t, strings.Join(cuts, "; "), "were shortened")
	require.Contains(t, results(o.Messages)["call_1"].Content[0].Text, "old result, shortened")

	cuts = nil
	large := turns(8)
	large.info = provider.Info{Name: "large", Window: 50_000}
	large.say = func(context.Context, int, *llm.Request, func(llm.Delta)) (*llm.Response, error) {
		return says("large"), nil
	}
	long := []llm.Message{user(strings.Repeat("a word or two ", 2000))}
	o = agent.Run(t.Context(), agent.Config{Model: turns(0), Larger: []provider.Model{large}, Tools: box, On: on}, long)
	require.Equal(t, "large", o.Text())
	require.Equal(t, []string{"the conversation no longer fits the model; large takes over"}, cuts)

	o = agent.Run(t.Context(), agent.Config{Model: turns(0), Tools: box}, long)
	require.Equal(t, agent.EndContext, o.Ending)
	require.Equal(t, toolerr.LimitReached, toolerr.CodeOf(o.Err))

	// A model that says so itself, of which no window is known.
	m := script(wants(to("1", "view", `{}`), to("2", "view", `{"n":1}`)), says("x"))
	first := m.say
	m.say = func(ctx context.Context, n int, r *llm.Request, on func(llm.Delta)) (*llm.Response, error) {
		if n == 1 {
			return nil, toolerr.New(toolerr.LimitReached, "too long")
		}
		return first(ctx, n, r, on)
	}
	o = ask(t, agent.Config{Model: m, Tools: box})
	require.Equal(t, agent.EndGoal, o.Ending, "%v", o.Err)
	require.Contains(t, results(o.Messages)["1"].Content[0].Text, "old result, shortened")
}

func TestTheCallersTools(t *testing.T) {
	m := script(wants(to("1", "ls", `{}`), to("2", "ask_user", `{"q":1}`), to("3", "client", `{}`)))
	box := tools("ls", "client", "ask_user")
	box.call = func(_ context.Context, c *llm.ToolCall, _ func(string)) (*call.Result, error) {
		if c.Name == "client" {
			return nil, &call.PendingError{Pending: call.Pending{Reason: agent.ClientTool, Tool: "client"}}
		}
		require.Equal(t, "ls", c.Name, "what the caller declares is the caller's")
		return result("here"), nil
	}
	o := ask(t, agent.Config{Model: m, Tools: box, CallerTools: []llm.Tool{{Name: "ask_user"}}})
	require.Equal(t, agent.EndCallerTools, o.Ending)
	require.Len(t, o.CallerCalls, 2)
	require.Equal(t, []string{"2", "3"}, []string{o.CallerCalls[0].ID, o.CallerCalls[1].ID})
	require.Len(t, results(o.Messages), 1)
	require.Len(t, m.asked[0].Tools, 3)
}

func TestWhatWaitsForApprovalEndsTheRun(t *testing.T) {
	box := tools("rm", "ls")
	box.call = func(_ context.Context, c *llm.ToolCall, _ func(string)) (*call.Result, error) {
		if c.Name == "rm" {
			return nil, &call.PendingError{Pending: call.Pending{ID: "p1", Reason: "a rule asks", Message: "wait for it", Tool: "rm"}}
		}
		return result("x"), nil
	}
	o := ask(t, agent.Config{Model: script(wants(to("1", "rm", `{}`), to("2", "ls", `{}`))), Tools: box})
	require.Equal(t, agent.EndPending, o.Ending)
	require.Len(t, o.Pending, 1)
	require.Equal(t, "p1", o.Pending[0].ID)
	require.Contains(t, results(o.Messages)["1"].Content[0].Text, "error: PENDING_APPROVAL: rm: wait for it")
	valid(t, append([]llm.Message{user("go")}, o.Messages...))
}

func TestCancelledAtAnyMoment(t *testing.T) {
	for after := range 12 {
		ctx, cancel := context.WithCancel(t.Context())
		var seen atomic.Int32
		box := tools("ls")
		box.call = func(ctx context.Context, _ *llm.ToolCall, _ func(string)) (*call.Result, error) {
			return result("x"), ctx.Err()
		}
		o := agent.Run(ctx, agent.Config{
			Model: script(wants(to("1", "ls", `{}`), to("2", "ls", `{"a":1}`)), wants(to("3", "ls", `{}`)), says("done")),
			Tools: box,
			On: func(agent.Event) {
				if int(seen.Add(1)) == after+1 {
					cancel()
				}
			},
		}, []llm.Message{user("go")})
		cancel()
		require.Contains(t, []agent.Ending{agent.EndCancelled, agent.EndGoal}, o.Ending)
		require.False(t, o.HasSummary)
		valid(t, append([]llm.Message{user("go")}, o.Messages...))
	}
}

func TestAnswersThatAreNoGoal(t *testing.T) {
	empty := &llm.Response{StopReason: llm.StopEnd, Parts: []llm.Part{{Type: llm.TextPart, Text: " \n"}, {Type: llm.ThinkingPart, Text: "hm"}}}
	fault := &llm.Response{StopReason: llm.StopFault, VendorStop: "MALFORMED_FUNCTION_CALL"}
	paused := says("and then")
	paused.StopReason = llm.StopPause
	cut := says("and th")
	cut.StopReason = llm.StopLength
	refused := says("I will not")
	refused.StopReason = llm.StopRefusal
	for name, c := range map[string]struct {
		answers []*llm.Response
		why     agent.Ending
		text    string
	}{
		"empty once":  {[]*llm.Response{empty, says("x")}, agent.EndGoal, "x"},
		"empty twice": {[]*llm.Response{empty}, agent.EndEmpty, ""},
		"fault once":  {[]*llm.Response{fault, says("x")}, agent.EndGoal, "x"},
		"fault twice": {[]*llm.Response{fault}, agent.EndModelError, ""},
		"pause":       {[]*llm.Response{paused, paused, says("x")}, agent.EndGoal, "x"},
		"cut":         {[]*llm.Response{cut}, agent.EndLength, "and th"},
		"refused":     {[]*llm.Response{refused}, agent.EndRefused, "I will not"},
		"nothing":     {[]*llm.Response{{}}, agent.EndEmpty, ""},
	} {
		o := ask(t, agent.Config{Model: script(c.answers...)})
		require.Equal(t, c.why, o.Ending, name)
		require.Equal(t, c.text, o.Text(), name)
		valid(t, append([]llm.Message{user("go")}, o.Messages...))
	}
}

func TestAModelThatFails(t *testing.T) {
	broken := func(times int) *model {
		return &model{say: func(_ context.Context, n int, _ *llm.Request, on func(llm.Delta)) (*llm.Response, error) {
			if n < times {
				return says("half a"), toolerr.New(toolerr.TransportError, "the connection was cut")
			}
			return says("whole"), nil
		}}
	}
	o := ask(t, agent.Config{Model: broken(1)})
	require.Equal(t, agent.EndModelError, o.Ending)
	require.ErrorContains(t, o.Err, "the connection was cut")
	require.Empty(t, o.Messages)
	o = ask(t, agent.Config{Model: broken(2), Retries: 2})
	require.Equal(t, agent.EndGoal, o.Ending)
	require.Equal(t, 3, o.Turns)
	require.Equal(t, llm.Usage{Input: 300, Output: 30}, o.Usage, "what broke off was paid for, too")
	// Where nothing came at all the provider has asked as often as it is of use.
	down := &model{say: func(context.Context, int, *llm.Request, func(llm.Delta)) (*llm.Response, error) {
		return nil, toolerr.New(toolerr.TransportError, "nobody is there")
	}}
	require.Equal(t, agent.EndModelError, ask(t, agent.Config{Model: down, Retries: 2}).Ending)
	require.Len(t, down.asked, 1)
	o = ask(t, agent.Config{Model: &model{say: func(context.Context, int, *llm.Request, func(llm.Delta)) (*llm.Response, error) {
		panic("in the streets")
	}}})
	require.Equal(t, agent.EndModelError, o.Ending)
	require.Equal(t, toolerr.Internal, toolerr.CodeOf(o.Err))
}

func TestIDsAreUniqueAndOfAFormThatAllTake(t *testing.T) {
	var pieces, whole []string
	m := script(wants(to("a", "ls", `{}`), to("a", "ls", `{"n":1}`), to("", "ls", `{"n":2}`), to("ü b", "ls", `{"n":3}`)), wants(to("a", "ls", `{"n":4}`)), says("x"))
	o := ask(t, agent.Config{Model: m, Tools: tools("ls"), On: func(e agent.Event) {
		if e.Type == agent.DeltaEvent && e.Delta.Type == llm.CallPart && e.Delta.ID != "" {
			pieces = append(pieces, e.Delta.ID)
		}
		if e.Type == agent.AnswerEvent {
			for _, c := range e.Response.Calls() {
				whole = append(whole, c.ID)
			}
		}
	}})
	require.Equal(t, []string{"a", "call_1", "call_3", "call_2", "call_4"}, whole)
	require.Equal(t, []string{"a", "call_1", "call_2", "call_4"}, pieces)
	valid(t, append([]llm.Message{user("go")}, o.Messages...))
}

func TestAHundredCallsAtOnceAreBounded(t *testing.T) {
	var calls []llm.ToolCall
	for i := range 150 {
		calls = append(calls, to("", "ls", fmt.Sprintf(`{"n":%d}`, i)))
	}
	var now, most atomic.Int32
	box := tools("ls")
	box.call = func(context.Context, *llm.ToolCall, func(string)) (*call.Result, error) {
		n := now.Add(1)
		defer now.Add(-1)
		for before := most.Load(); n > before && !most.CompareAndSwap(before, n); before = most.Load() {
		}
		time.Sleep(time.Microsecond)
		return result("x"), nil
	}
	o := ask(t, agent.Config{Model: script(wants(calls...), says("x")), Tools: box, Bounds: agent.Bounds{Parallel: 7}})
	require.Equal(t, agent.EndGoal, o.Ending)
	require.Equal(t, 128, o.Calls["ls"])
	require.LessOrEqual(t, most.Load(), int32(7))
	require.Len(t, o.Messages[1].Parts, 150)
	valid(t, append([]llm.Message{user("go")}, o.Messages...))
}

// What a model says that it took moves no bound away.
func TestAUsageThatCannotBe(t *testing.T) {
	m := script(wants(to("a", "ls", `{}`)), says("done"))
	say := m.say
	m.say = func(ctx context.Context, n int, r *llm.Request, on func(llm.Delta)) (*llm.Response, error) {
		answer, err := say(ctx, n, r, on)
		answer.Usage = &llm.Usage{Input: -1 << 40, Output: 7, CacheRead: 1 << 40, CacheWrite: -3, Reasoning: -1}
		return answer, err
	}
	m.info.Price = provider.Price{Input: 1, CacheRead: 0.1, CacheWrite: 1, Output: 1e6}
	o := agent.Run(t.Context(), agent.Config{Model: m, Tools: tools("ls")}, []llm.Message{user("go")})
	require.Positive(t, o.Usage.Input, "it is counted here")
	require.Less(t, o.Usage.Input, 500)
	require.Equal(t, llm.Usage{Input: o.Usage.Input, Output: 14}, o.Usage)
	require.InDelta(t, 14+float64(o.Usage.Input)/1e6, o.Cost, 1e-9)
}

// A person may take longer for an answer than the run may take; the time until then is
// neither the run's nor the call's.
func TestWaitingForAPersonIsNotTheRunsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := tools("edit")
		var left agent.RemainingBudget
		box.call = func(ctx context.Context, _ *llm.ToolCall, _ func(string)) (*call.Result, error) {
			time.Sleep(2 * time.Second)
			resume := call.PauseClocks(ctx)
			time.Sleep(time.Hour)
			resume()
			left, _ = agent.RemainingBudgetOf(ctx)
			time.Sleep(time.Second)
			return result("done"), ctx.Err()
		}
		var events []agent.Event
		o := ask(t, agent.Config{
			Model: script(wants(to("1", "edit", `{}`)), says("fine")), Tools: box, Bounds: agent.Bounds{Time: 10 * time.Second},
			On: func(e agent.Event) { events = append(events, e) },
		})
		require.NoError(t, o.Err)
		require.Equal(t, agent.EndGoal, o.Ending)
		require.Equal(t, 3*time.Second, o.Took)
		require.Equal(t, int64(8000), *left.MS)
		require.JSONEq(t, "3000", string(results(o.Messages)["1"].ExtraMembers[0].Value))
		at := slices.IndexFunc(events, func(e agent.Event) bool { return e.Type == agent.ResultEvent })
		require.Equal(t, 3*time.Second, events[at].Took)
	})
}

// The clock goes on after a pause.
func TestTheRunsTimeEndsAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := tools("edit")
		box.call = func(ctx context.Context, _ *llm.ToolCall, _ func(string)) (*call.Result, error) {
			resume := call.PauseClocks(ctx)
			time.Sleep(time.Hour)
			resume()
			<-ctx.Done()
			return nil, ctx.Err()
		}
		o := ask(t, agent.Config{Model: script(wants(to("1", "edit", `{}`)), says("as far as it came")), Tools: box, Bounds: agent.Bounds{Time: 10 * time.Second}})
		require.Equal(t, agent.EndTime, o.Ending)
		require.True(t, o.HasSummary)
		require.Equal(t, 10*time.Second, o.Took)
	})
}
