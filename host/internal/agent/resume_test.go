package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/agent"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
)

// worker is a model that goes by how often it has answered: it looks, writes twice at
// once, looks again, and is done.
func worker() *model {
	return &model{info: provider.Info{Name: "scripted"}, say: func(_ context.Context, _ int, r *llm.Request, _ func(llm.Delta)) (*llm.Response, error) {
		n := 0
		for _, m := range r.Messages {
			if m.Role == llm.AssistantRole {
				n++
			}
		}
		switch n {
		case 0:
			return wants(to("l1", "look", `{"n":1}`)), nil
		case 1:
			return wants(to("w1", "write", `{"n":1}`), to("w2", "write", `{"n":2}`), to("l2", "look", `{"n":2}`)), nil
		case 2:
			return wants(to("l3", "look", `{"n":3}`), to("w3", "write", `{"n":3}`)), nil
		}
		return says("done"), nil
	}}
}

func workbench() *toolbox {
	b := tools("look", "write")
	b.tools[0].Annotations = json.RawMessage(`{"readOnlyHint":true}`)
	return b
}

// timeless is a text without what a clock says.
func timeless(text string) string {
	return regexp.MustCompile(`(,"ms":\d+|"Name":"duration_ms","Value":\d+|duration_ms: \d+)`).ReplaceAllString(text, "")
}

// Wherever a run is killed, it goes on where it was: nothing that can do harm is made
// twice, and of what may have been made the model is told.
func TestAKilledRunGoesOn(t *testing.T) {
	whole := &memory{}
	want := agent.Run(t.Context(), agent.Config{Model: worker(), Tools: workbench(), Journal: whole, Bounds: agent.Bounds{Parallel: 1}}, []llm.Message{user("go")})
	require.Equal(t, agent.EndGoal, want.Ending)
	unknown := 0
	for at := 1; at < len(whole.entries); at++ {
		log := &memory{limit: at}
		before, after := workbench(), workbench()
		killed := agent.Run(t.Context(), agent.Config{Model: worker(), Tools: before, Journal: log}, []llm.Message{user("go")})
		if at < len(whole.entries)-1 { // else all but the end was written down
			require.Equal(t, agent.EndJournalError, killed.Ending, "%d", at)
		}
		log.limit = 0
		o := agent.Resume(t.Context(), agent.Config{Model: worker(), Tools: after, Journal: log}, nil)
		require.Equal(t, agent.EndGoal, o.Ending, "%d: %v", at, o.Err)
		require.Equal(t, "done", o.Text())
		valid(t, append([]llm.Message{user("go")}, o.Messages...))
		made := map[string]int{}
		for _, c := range append(before.made(), after.made()...) {
			if c.Name == "write" {
				made[c.ID]++
				require.Equal(t, 1, made[c.ID], "%d: %s was made twice", at, c.ID)
			}
		}
		doubt := false
		for id, result := range results(o.Messages) {
			if strings.Contains(result.Content[0].Text, "the outcome of this call is unknown") {
				require.Contains(t, id, "w", "what can be repeated is repeated")
				doubt = true
				unknown++
			}
		}
		if !doubt {
			require.Equal(t, timeless(plain(t, want.Messages)), timeless(plain(t, o.Messages)), "%d", at)
			require.Equal(t, want.Usage, o.Usage)
		}
		require.LessOrEqual(t, o.Turns, want.Turns+1, "%d: turns before count", at)
	}
	require.Positive(t, unknown)

	log := &memory{}
	require.NoError(t, log.Append(t.Context(), json.RawMessage(`{"step":"what"}`)))
	require.Equal(t, agent.EndJournalError, agent.Resume(t.Context(), agent.Config{Model: worker(), Journal: log}, nil).Ending)

	// What no run has written is no reason to fail otherwise.
	for _, damaged := range []string{`{"step":"answer","turn":1}`, `{"step":"call","id":"x"}`, `{"step":"result","id":"x"}`, `{"step":"end","why":"the caller's tools"}`} {
		log := &memory{}
		require.NoError(t, log.Append(t.Context(), json.RawMessage(`{"step":"begin"}`)))
		require.NoError(t, log.Append(t.Context(), json.RawMessage(damaged)))
		require.NotPanics(t, func() {
			agent.Resume(t.Context(), agent.Config{Model: script(says("x")), Journal: log}, []llm.Message{user("go")})
		}, damaged)
	}
}

// A run whose model and tools answer as before has the same journal.
func TestAJournalReplays(t *testing.T) {
	journal := func(m *model) string {
		log := &memory{}
		o := agent.Run(t.Context(), agent.Config{Model: m, Tools: workbench(), Journal: log, Bounds: agent.Bounds{Parallel: 1}}, []llm.Message{user("go")})
		require.Equal(t, agent.EndGoal, o.Ending)
		var lines []string
		for _, e := range log.entries {
			lines = append(lines, timeless(string(e)))
		}
		return strings.Join(lines, "\n")
	}
	first := journal(worker())
	var answers []*llm.Response
	for line := range strings.SplitSeq(first, "\n") {
		var s struct{ Response *llm.Response }
		require.NoError(t, json.Unmarshal([]byte(line), &s), line)
		if s.Response != nil {
			answers = append(answers, s.Response)
		}
	}
	require.Equal(t, first, journal(script(answers...)))
}

func TestARunThatWaitedMakesItsCallsOnceTheyAreApproved(t *testing.T) {
	approved := false
	box := tools("write", "look")
	box.call = func(_ context.Context, c *llm.ToolCall, _ func(string)) (*call.Result, error) {
		if c.ID == "w2" && !approved {
			return nil, &call.PendingError{Pending: call.Pending{ID: "p", Reason: "asked", Tool: "write", Message: "wait"}}
		}
		return result("wrote " + c.ID), nil
	}
	log := &memory{}
	cfg := agent.Config{Model: worker(), Tools: box, Journal: log}
	first := agent.Run(t.Context(), cfg, []llm.Message{user("go")})
	require.Equal(t, agent.EndPending, first.Ending)
	still := agent.Resume(t.Context(), cfg, nil)
	require.Equal(t, agent.EndPending, still.Ending)
	approved = true
	o := agent.Resume(t.Context(), cfg, []llm.Message{user("it is approved")})
	require.Equal(t, agent.EndGoal, o.Ending)
	require.Equal(t, "wrote w2", results(o.Messages)["w2"].Content[0].Text)
	require.Equal(t, "wrote w1", results(o.Messages)["w1"].Content[0].Text)
	n := map[string]int{}
	for _, c := range box.made() {
		n[c.ID]++
	}
	require.Equal(t, map[string]int{"l1": 1, "w1": 1, "w2": 3, "l2": 1, "l3": 1, "w3": 1}, n)
	// The results take the place of the last message.
	valid(t, append(append([]llm.Message{user("go")}, first.Messages[:len(first.Messages)-1]...), o.Messages...))
}

func TestAnEndedRunIsTakenUpAgain(t *testing.T) {
	log := &memory{}
	cfg := agent.Config{Model: script(wants(to("1", "ls", `{}`)), says("one"), says("two")), Tools: tools("ls"), Journal: log}
	require.Equal(t, agent.EndGoal, ask(t, cfg).Ending)
	same := agent.Resume(t.Context(), cfg, nil)
	require.Equal(t, "one", same.Text())
	require.Equal(t, agent.EndGoal, same.Ending)
	o := agent.Resume(t.Context(), cfg, []llm.Message{user("and?")})
	require.Equal(t, "two", o.Text())
	require.Len(t, o.Messages, 1)
	require.Equal(t, 1, o.Turns, "bounds are those of the new run")
	last := cfg.Model.(*model).asked[2].Messages
	require.Equal(t, "and?", last[len(last)-1].Parts[0].Text)
	valid(t, last)

	// After the caller's tools, the results are what is said.
	log = &memory{}
	cfg = agent.Config{Model: script(wants(to("1", "mine", `{}`), to("2", "mine", `{"n":1}`)), says("thanks")), CallerTools: []llm.Tool{{Name: "mine"}}, Journal: log}
	require.Len(t, ask(t, cfg).CallerCalls, 2)
	o = agent.Resume(t.Context(), cfg, []llm.Message{{Role: llm.ToolRole, Parts: []llm.Part{
		{Type: llm.ResultPart, ToolResult: &llm.ToolResult{ID: "1", Content: []llm.Part{{Type: llm.TextPart, Text: "x"}}}},
		{Type: llm.ResultPart, ToolResult: &llm.ToolResult{ID: "2", Content: []llm.Part{{Type: llm.TextPart, Text: "y"}}}},
	}}})
	require.Equal(t, "thanks", o.Text())
	valid(t, cfg.Model.(*model).asked[1].Messages)
	// And without results they are told that there are none.
	log.entries = log.entries[:len(log.entries)-4]
	require.Contains(t, string(log.entries[len(log.entries)-1]), `"step":"end"`, fmt.Sprint(len(log.entries)))
	o = agent.Resume(t.Context(), cfg, []llm.Message{user("never mind")})
	require.Equal(t, "thanks", o.Text())
	valid(t, cfg.Model.(*model).asked[2].Messages)
}
