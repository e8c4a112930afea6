package contextbudget_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/contextbudget"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// words counts words, so that tests can say what something costs.
type words struct{}

func (words) Count(text string) int { return len(strings.Fields(text)) }

func text(n int) string { return strings.TrimSpace(strings.Repeat("word ", n)) }

func says(role llm.Role, what string) llm.Message {
	return llm.Message{Role: role, Parts: []llm.Part{{Type: llm.TextPart, Text: what}}}
}

func calls(id, name string) llm.Message {
	return llm.Message{Role: llm.AssistantRole, Parts: []llm.Part{{Type: llm.CallPart, ToolCall: &llm.ToolCall{ID: id, Name: name, Args: json.RawMessage(`{}`)}}}}
}

func answers(id, what string) llm.Message {
	return llm.Message{Role: llm.ToolRole, Parts: []llm.Part{{Type: llm.ResultPart, ToolResult: &llm.ToolResult{
		ID: id, Content: []llm.Part{{Type: llm.TextPart, Text: what}}, Structured: json.RawMessage(`{"a":1}`), IsError: id == "err",
	}}}}
}

func tool(name string, cost, priority int) contextbudget.Tool {
	return contextbudget.Tool{Tool: llm.Tool{Name: name, Description: "does " + name}, Tokens: cost, Priority: priority}
}

func names(tools []llm.Tool) []string {
	all := []string{}
	for _, t := range tools {
		all = append(all, t.Name)
	}
	return all
}

var small = contextbudget.Model{Name: "small", Window: 1000}

func ask(messages []llm.Message, tools ...contextbudget.Tool) contextbudget.Input {
	return contextbudget.Input{Request: llm.Request{Messages: messages, MaxTokens: 100}, Tools: tools}
}

func TestWhatFitsStaysAsItIs(t *testing.T) {
	in := ask([]llm.Message{says(llm.SystemRole, text(46)), says(llm.UserRole, text(96))}, tool("b", 200, 0), tool("a", 300, 1))
	plan, err := contextbudget.Fit(contextbudget.Config{Counter: words{}}, small, in)
	require.NoError(t, err)
	require.Equal(t, contextbudget.Usage{Window: 1000, Tools: 500, System: 50, Messages: 100, Reserved: 100}, plan.Usage)
	require.Equal(t, 250, plan.Usage.Available())
	require.Equal(t, []string{"b", "a"}, names(plan.Tools))
	require.Equal(t, in.Request.Messages, plan.Messages)
	require.Equal(t, small, plan.Model)
}

func TestDefaults(t *testing.T) {
	in := ask(nil, contextbudget.Tool{Tool: llm.Tool{Name: "unknown"}})
	in.Request.MaxTokens = 0
	plan, err := contextbudget.Fit(contextbudget.Config{}, contextbudget.Model{Name: "m", Window: 10_000}, in)
	require.NoError(t, err)
	require.Equal(t, 100, plan.Usage.Tools, "nothing is known of it")
	require.Equal(t, 4096, plan.Usage.Reserved)
	plan, err = contextbudget.Fit(contextbudget.Config{}, contextbudget.Model{Name: "m", Window: 10_000, MaxOutput: 1000}, in)
	require.NoError(t, err)
	require.Equal(t, 1000, plan.Usage.Reserved, "the model gives no longer answers")
}

func TestTheSmallestLargerModelTakesOver(t *testing.T) {
	cfg := contextbudget.Config{Counter: words{}, Models: []contextbudget.Model{{Name: "huge", Window: 9000}, small, {Name: "tiny", Window: 10}, {Name: "large", Window: 2000}, {Name: "large2", Window: 2000}}}
	plan, err := contextbudget.Fit(cfg, small, ask(nil, tool("a", 1500, 0)))
	require.NoError(t, err)
	require.Equal(t, "large", plan.Model.Name)
	require.Equal(t, []string{"a"}, names(plan.Tools))

	// Where none is large enough for all tools, the model that was asked for
	// has fewer of them.
	plan, err = contextbudget.Fit(cfg, small, ask(nil, tool("a", 800, 0), tool("b", 8500, 1)))
	require.NoError(t, err)
	require.Equal(t, "small", plan.Model.Name)
	require.Equal(t, []string{"a"}, names(plan.Tools))
	require.Equal(t, []string{"b"}, plan.LeftOut)

	// And where the messages alone are too much for it, a larger one.
	plan, err = contextbudget.Fit(cfg, small, ask([]llm.Message{says(llm.UserRole, text(1200))}, tool("b", 8500, 1)))
	require.NoError(t, err)
	require.Equal(t, "large", plan.Model.Name)
	require.Empty(t, plan.Tools)
}

func TestToolsAreLeftOutByPriorityUseAndRelevance(t *testing.T) {
	conversation := []llm.Message{
		says(llm.UserRole, "hello"), calls("1", "old"), answers("1", "ok"), calls("2", "recent"), answers("2", "ok"), says(llm.UserRole, "now plant a tree"),
	}
	tools := []contextbudget.Tool{
		tool("weather", 100, 0), tool("old", 100, 0), tool("plant_tree", 100, 0), tool("recent", 100, 0), tool("first", 100, 5), tool("last", 100, -1),
		{Tool: llm.Tool{Name: "pinned"}, Tokens: 100, Pinned: true},
	}
	for _, c := range []struct {
		window int
		want   []string
	}{
		{900, []string{"weather", "old", "plant_tree", "recent", "first", "last", "pinned"}},
		{760, []string{"weather", "old", "plant_tree", "recent", "first", "pinned"}},
		{660, []string{"old", "plant_tree", "recent", "first", "pinned"}},
		{560, []string{"old", "recent", "first", "pinned"}},
		{460, []string{"recent", "first", "pinned"}},
		{360, []string{"first", "pinned"}},
		{260, []string{"pinned"}},
	} {
		plan, err := contextbudget.Fit(contextbudget.Config{Counter: words{}}, contextbudget.Model{Name: "m", Window: c.window}, ask(conversation, tools...))
		require.NoError(t, err)
		require.Equal(t, c.want, names(plan.Tools), "%d", c.window)
	}
	plan, err := contextbudget.Fit(contextbudget.Config{Counter: words{}, MaxTools: 2}, small, ask(conversation, tools...))
	require.NoError(t, err)
	require.Equal(t, []string{"first", "pinned"}, names(plan.Tools), "never more than there may be")

	in := ask(conversation, tools...)
	in.Request.Choice = &llm.Choice{Mode: llm.ChoiceRequired, ToolNames: []string{"last"}}
	plan, err = contextbudget.Fit(contextbudget.Config{Counter: words{}}, contextbudget.Model{Name: "m", Window: 360}, in)
	require.NoError(t, err)
	require.Equal(t, []string{"last", "pinned"}, names(plan.Tools), "what the choice names stays")
}

func TestWhatDoesNotFitIsAnErrorThatSaysWhy(t *testing.T) {
	in := ask([]llm.Message{says(llm.SystemRole, text(6)), says(llm.UserRole, text(896))}, contextbudget.Tool{Tool: llm.Tool{Name: "p"}, Tokens: 7, Pinned: true}, tool("q", 7, 0))
	_, err := contextbudget.Fit(contextbudget.Config{Counter: words{}}, small, in)
	require.EqualError(t, err, "the request exceeds the 1000 tokens of small: messages 900, system prompt 10, required tools 7, and 100 reserved for the answer; start a new session, shorten the last message, or configure a model with a larger window")
	require.Equal(t, toolerr.LimitReached, toolerr.CodeOf(err))
	var large *contextbudget.TooLargeError
	require.ErrorAs(t, err, &large)
	require.Equal(t, -17, large.Usage.Available())
}

func TestOldResultsAreCutAtSeventyPercent(t *testing.T) {
	var conversation []llm.Message
	for i := range 6 {
		id := fmt.Sprint(i)
		conversation = append(conversation, calls(id, "grep"), answers(id, text(500)))
	}
	before, err := json.Marshal(conversation)
	require.NoError(t, err)
	cfg := contextbudget.Config{Counter: words{}}
	plan, err := contextbudget.Fit(cfg, contextbudget.Model{Name: "m", Window: 4600}, ask(conversation))
	require.NoError(t, err)
	require.Zero(t, plan.Compacted, "69 percent")
	plan, err = contextbudget.Fit(cfg, contextbudget.Model{Name: "m", Window: 4400}, ask(conversation))
	require.NoError(t, err)
	require.Equal(t, 2, plan.Compacted, "the last four stay")
	cut := plan.Messages[1].Parts[0].ToolResult
	require.Equal(t, "0", cut.ID)
	require.Nil(t, cut.Structured)
	require.Regexp(t, `^\[old result, shortened from 505 tokens; call the tool again to see all\]\nword word .*…$`, cut.Content[0].Text)
	require.Equal(t, conversation[4:], plan.Messages[4:])
	after, err := json.Marshal(conversation)
	require.NoError(t, err)
	require.Equal(t, string(before), string(after), "the caller's messages stay as they are")

	// The next turn finds them short, and cuts nothing again.
	again, err := contextbudget.Fit(cfg, contextbudget.Model{Name: "m", Window: 4400}, ask(plan.Messages))
	require.NoError(t, err)
	require.Zero(t, again.Compacted)
	require.Equal(t, plan.Messages, again.Messages)
}

// Whatever is asked: the outcome fits or is an error, is the same each time,
// keeps the order of what it keeps, leaves out nothing that must stay, and of
// the conversation only shortens old results.
func TestFitProperties(t *testing.T) {
	outcomes := map[string]int{}
	for seed := range uint64(800) {
		r := rand.New(rand.NewPCG(seed, 7))
		cfg, model, in := randomAsk(r)
		plan, err := contextbudget.Fit(cfg, model, in)
		again, errAgain := contextbudget.Fit(cfg, model, in)
		require.Equal(t, plan, again, "seed %d", seed)
		require.Equal(t, err, errAgain)
		if err != nil {
			outcomes["error"]++
			var large *contextbudget.TooLargeError
			require.ErrorAs(t, err, &large)
			require.Negative(t, large.Usage.Available())
			continue
		}
		require.GreaterOrEqual(t, plan.Usage.Available(), 0, "seed %d", seed)
		checkTools(t, cfg, in, plan)
		checkMessages(t, cfg, in.Request.Messages, plan)
		switch {
		case len(plan.LeftOut) > 0:
			outcomes["pruned"]++
		case plan.Model.Name != model.Name:
			outcomes["larger"]++
		case plan.Compacted > 0:
			outcomes["compacted"]++
		default:
			outcomes["whole"]++
		}
	}
	t.Log(outcomes)
	require.Len(t, outcomes, 5, "every way out was taken")
}

func randomAsk(r *rand.Rand) (contextbudget.Config, contextbudget.Model, contextbudget.Input) {
	cfg := contextbudget.Config{Counter: words{}, KeepResults: 1 + r.IntN(5), CompactAt: 50 + r.IntN(50)}
	if r.IntN(3) == 0 {
		cfg.MaxTools = 1 + r.IntN(20)
	}
	for i := range r.IntN(3) {
		cfg.Models = append(cfg.Models, contextbudget.Model{Name: fmt.Sprintf("m%d", i), Window: 500 + r.IntN(8000)})
	}
	var in contextbudget.Input
	in.Request.MaxTokens = 1 + r.IntN(500)
	for i := range r.IntN(30) {
		one := tool(fmt.Sprintf("tool_%d", i), r.IntN(150), r.IntN(3))
		one.Pinned = r.IntN(15) == 0
		in.Tools = append(in.Tools, one)
	}
	messages := []llm.Message{says(llm.SystemRole, text(r.IntN(100)))}
	for i := range r.IntN(12) {
		switch r.IntN(3) {
		case 0:
			messages = append(messages, says(llm.UserRole, fmt.Sprintf("use tool %d %s", r.IntN(30), text(r.IntN(100)))))
		default:
			id := fmt.Sprint(i)
			messages = append(messages, calls(id, fmt.Sprintf("tool_%d", r.IntN(30))), answers(id, text(r.IntN(600))))
		}
	}
	in.Request.Messages = messages
	return cfg, contextbudget.Model{Name: "asked", Window: 500 + r.IntN(4000)}, in
}

func checkTools(t *testing.T, cfg contextbudget.Config, in contextbudget.Input, plan contextbudget.Plan) {
	t.Helper()
	kept := names(plan.Tools)
	var all, order []string
	for _, one := range in.Tools {
		all = append(all, one.Name)
		if slices.Contains(kept, one.Name) {
			order = append(order, one.Name)
		}
		require.False(t, one.Pinned && slices.Contains(plan.LeftOut, one.Name), "%s is pinned", one.Name)
	}
	require.Equal(t, order, append([]string(nil), kept...), "the order is that of before")
	require.ElementsMatch(t, all, slices.Concat(kept, plan.LeftOut))
	pinned := 0
	for _, one := range in.Tools {
		if one.Pinned {
			pinned++
		}
	}
	if cfg.MaxTools > 0 {
		require.LessOrEqual(t, len(kept), max(cfg.MaxTools, pinned))
	}
}

func checkMessages(t *testing.T, cfg contextbudget.Config, before []llm.Message, plan contextbudget.Plan) {
	t.Helper()
	require.Len(t, plan.Messages, len(before))
	results, cut := 0, 0
	for i, m := range slices.Backward(plan.Messages) {
		require.Equal(t, before[i].Role, m.Role)
		require.Len(t, m.Parts, len(before[i].Parts))
		for j, p := range m.Parts {
			was := before[i].Parts[j]
			if p.Type != llm.ResultPart {
				require.Equal(t, was, p)
				continue
			}
			results++
			require.Equal(t, was.ToolResult.ID, p.ToolResult.ID)
			require.Equal(t, was.ToolResult.IsError, p.ToolResult.IsError)
			if p.ToolResult != was.ToolResult {
				cut++
				require.Greater(t, results, cfg.KeepResults, "the last are kept")
			}
		}
	}
	require.Equal(t, plan.Compacted, cut)
	require.LessOrEqual(t, contextbudget.MessageTokens(words{}, plan.Messages), contextbudget.MessageTokens(words{}, before))
}

// A result that only says that it was cut is cut, so that none fills the context for good.
func TestAResultThatSaysThatItWasCut(t *testing.T) {
	long := "[old result, shortened from 5 tokens; call the tool again to see all]\n" + text(1000)
	messages := []llm.Message{calls("1", "view"), {Role: llm.ToolRole, Parts: []llm.Part{
		{Type: llm.ResultPart, ToolResult: &llm.ToolResult{ID: "1", Content: []llm.Part{{Type: llm.TextPart, Text: long}}}},
	}}}
	cut, n := contextbudget.Compact(words{}, messages, 0)
	require.Equal(t, 1, n)
	require.Less(t, len(cut[1].Parts[0].ToolResult.Content[0].Text), 500)
	_, n = contextbudget.Compact(words{}, cut, 0)
	require.Zero(t, n)
}
