package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/agent"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// tireless is a model that calls view again and again and says that it takes what u
// says.
func tireless(u *llm.Usage) *model {
	m := &model{info: provider.Info{Name: "tireless", Price: provider.Price{Input: 1e6, Output: 1e6}}}
	m.say = func(_ context.Context, i int, r *llm.Request, _ func(llm.Delta)) (*llm.Response, error) {
		answer := says(strings.Repeat("word ", 3000))
		if r.Choice == nil || r.Choice.Mode != llm.ChoiceNone {
			answer = wants(to("", "view", fmt.Sprintf(`{"n":%d,"text":%q}`, i, strings.Repeat("word ", 3000))))
		}
		answer.Usage = nil
		if u != nil {
			said := *u
			answer.Usage = &said
		}
		return answer, nil
	}
	return m
}

// A model that counts nothing, or next to nothing, reaches the bounds on tokens and cost
// all the same; what is said of a usage that can be, counts.
func TestAModelThatDoesNotCountIsCounted(t *testing.T) {
	for name, u := range map[string]*llm.Usage{"nothing": nil, "zero": {}, "little": {Input: 1, Output: 1}, "zero out": {Input: 1}} {
		for _, b := range []agent.Bounds{{Tokens: 30_000}, {Cost: 30_000}} {
			o := ask(t, agent.Config{Model: tireless(u), Tools: tools("view"), Bounds: b})
			require.Contains(t, []agent.Ending{agent.EndTokens, agent.EndCost}, o.Ending, name)
			require.Less(t, o.Turns, 10, name)
		}
	}
	o := ask(t, agent.Config{Model: tireless(&llm.Usage{Input: 2500, Output: 1500}), Tools: tools("view"), Bounds: agent.Bounds{Turns: 1}})
	require.Equal(t, 2500*o.Turns, o.Usage.Input)
	require.Equal(t, 1500*o.Turns, o.Usage.Output)
}

// Where a result is cut, the model is told to make the call again if it needs it. It may
// then, also where it had made it as often as it may be, and also in a run gone on with.
func TestACallWhoseResultIsCutMayBeMadeAgain(t *testing.T) {
	box := tools("view")
	box.call = func(_ context.Context, c *llm.ToolCall, _ func(string)) (*call.Result, error) {
		return result(strings.Repeat("a line of text, ", 300)), nil
	}
	journal := &memory{}
	m := &model{info: provider.Info{Name: "small"}}
	m.say = func(_ context.Context, n int, r *llm.Request, _ func(llm.Delta)) (*llm.Response, error) {
		switch {
		case n < 4:
			return wants(to("", "view", `{"n":1}`)), nil
		case n == 4:
			return nil, toolerr.New(toolerr.LimitReached, "too long")
		case n == 5:
			return wants(to("", "view", `{"n":1}`)), nil
		}
		return says("done"), nil
	}
	o := ask(t, agent.Config{Model: m, Tools: box, Bounds: agent.Bounds{Identical: 4}, Journal: journal})
	require.Equal(t, agent.EndGoal, o.Ending, "%v", o.Err)
	require.Contains(t, o.Messages[1].Parts[0].ToolResult.Content[0].Text, "call the tool again")
	require.Len(t, box.made(), 5)

	// Killed right after the cut.
	cut := 0
	for i, e := range journal.entries {
		if strings.HasPrefix(string(e), `{"step":"cut"`) {
			cut = i + 1
		}
	}
	require.NotZero(t, cut)
	journal.entries = journal.entries[:cut]
	again := script(wants(to("", "view", `{"n":1}`)), wants(to("", "view", `{"n":1}`)), says("done"))
	o = agent.Resume(t.Context(), agent.Config{Model: again, Tools: box, Bounds: agent.Bounds{Identical: 4}, Journal: journal}, nil)
	require.Equal(t, agent.EndIdentical, o.Ending)
	require.Len(t, box.made(), 6, "it may be made once more, and not for ever")
}

// A vendor's model of which no window is known gets as many tools as most take, and a
// conversation of which old results are cut where it is long; one that is too long all
// the same is sent, since only the model knows.
func TestAModelOfWhichNoWindowIsKnown(t *testing.T) {
	names := make([]string, 300)
	for i := range names {
		names[i] = fmt.Sprintf("tool%03d", i)
	}
	unknown := func(vendor llm.Vendor, window int) *model {
		m := script(says("done"))
		m.info.Vendor, m.info.Window = vendor, window
		return m
	}
	for _, c := range []struct {
		m    *model
		want int
	}{{unknown(llm.OpenAI, 0), 128}, {unknown(llm.Anthropic, 0), 128}, {unknown(llm.OpenAI, 1_000_000), 128}, {unknown(llm.Anthropic, 1_000_000), 300}, {unknown("", 0), 300}} {
		o := agent.Run(t.Context(), agent.Config{Model: c.m, Tools: tools(names...)}, []llm.Message{user("tool250, please")})
		require.Equal(t, agent.EndGoal, o.Ending, "%v", o.Err)
		require.Len(t, c.m.asked[0].Tools, c.want)
		require.Contains(t, fmt.Sprint(c.m.asked[0].Tools), "tool250")
	}

	history := func(words int) []llm.Message {
		all := []llm.Message{user("go")}
		for i := range 8 {
			id := fmt.Sprint("c", i)
			c := to(id, "view", `{}`)
			all = append(all, llm.Message{Role: llm.AssistantRole, Parts: []llm.Part{{Type: llm.CallPart, ToolCall: &c}}},
				llm.Message{Role: llm.ToolRole, Parts: []llm.Part{{Type: llm.ResultPart, ToolResult: &llm.ToolResult{ID: id, Content: user(strings.Repeat("word ", 15_000)).Parts}}}})
		}
		return append(all, user(strings.Repeat("word ", words)))
	}
	m := unknown(llm.OpenAI, 0)
	o := agent.Run(t.Context(), agent.Config{Model: m, Tools: tools("view")}, history(1))
	require.Equal(t, agent.EndGoal, o.Ending, "%v", o.Err)
	require.Contains(t, results(m.asked[0].Messages)["c0"].Content[0].Text, "old result, shortened")
	require.NotContains(t, results(m.asked[0].Messages)["c7"].Content[0].Text, "old result, shortened")

	larger := script(says("the larger one"))
	larger.info = provider.Info{Name: "larger", Window: 1_000_000}
	m = unknown(llm.OpenAI, 0)
	o = agent.Run(t.Context(), agent.Config{Model: m, Larger: []provider.Model{larger}, Tools: tools("view")}, history(400_000))
	require.Equal(t, "done", o.Text(), "%v", o.Err)
}
