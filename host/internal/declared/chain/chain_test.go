package chain_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/chain"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/executor"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func raw(text string) json.RawMessage { return json.RawMessage(text) }

// tools are those that steps call: echo gives its arguments, fail says that it
// failed, refuse cannot be called, words gives a text, counted a count in _meta.
func tools(_ context.Context, _ *call.Request, tool string, arguments json.RawMessage) (*call.Result, error) {
	switch tool {
	case "fail":
		return executor.Failed("it went wrong"), nil
	case "refuse":
		return nil, toolerr.New(toolerr.PolicyDenied, "not you")
	case "words":
		return executor.Shape{}.Text(tool, "just words")
	case "counted":
		return &call.Result{Raw: raw(`{"content":[{"type":"text","text":"3 files"}],"_meta":{"toolroom/result":{"total":3}}}`)}, nil
	case "picture":
		return &call.Result{Raw: raw(`{"content":[{"type":"image","data":"","mimeType":"image/png"}]}`)}, nil
	}
	return executor.Shape{}.Result(tool, arguments)
}

func do(t *testing.T, c chain.Config, arguments string) (*call.Result, error) {
	t.Helper()
	require.NoError(t, c.Validate())
	h, err := chain.New(c, executor.Shape{}, tools, nil)
	require.NoError(t, err)
	return h(t.Context(), &call.Request{Tool: &call.Tool{Name: "tool"}, Params: fmt.Appendf(nil, `{"arguments":%s}`, arguments)})
}

func TestReferences(t *testing.T) {
	steps := []chain.Step{
		{ID: "a", Tool: "echo", Args: raw(`{"x":"${args.x}","list":[1,{"y":"${args.x}"}]}`)},
		{ID: "w", Tool: "words"},
		{ID: "c", Tool: "counted"},
		{ID: "f", Tool: "fail", Continue: true},
		{If: &chain.Condition{Value: raw(`false`)}, Then: []chain.Step{{ID: "never", Tool: "echo"}}},
	}
	for _, c := range []struct{ result, want, err string }{
		{`"${args.x}"`, `{"deep":[1.50,"s"]}`, ""},
		{`"${args}"`, `{"x":{"deep":[1.50,"s"]}}`, ""},
		{`"${args.x.deep[0]}"`, `1.50`, ""},
		{`"${args.x.deep.1}"`, `"s"`, ""},
		{`"${args[\"x\"].deep[1]}"`, `"s"`, ""},
		{`"<${args.x.deep[0]}|${args.x.deep[1]}|${args.x.deep}>"`, `"<1.50|s|[1.50,\"s\"]>"`, ""},
		{`"${steps.a.result.list[1].y.deep[1]}"`, `"s"`, ""},
		{`"${steps.w.result}"`, `"just words"`, ""},
		{`"${steps.f.text}/${steps.f.is_error}/${steps.w.is_error}"`, `"it went wrong/true/false"`, ""},
		{`"${steps.c.result} ${steps.c.details.total}"`, `"3 files 3"`, ""},
		{`"${steps.w.details}"`, `null`, ""},
		{`"${steps.never.result}"`, `null`, ""},
		{`"${steps.never.result:-else}"`, `"else"`, ""},
		{`"${args.none:-}"`, `""`, ""},
		{`"$${args.x} costs $5 {}"`, `"${args.x} costs $5 {}"`, ""},
		{`{"a":["${args.x.deep[1]}",1.0,null,true]}`, `{"a":["s",1.0,null,true]}`, ""},
		{`"${args.none}"`, ``, "${args.none} does not exist"},
		{`"${args.x.deep[7]}"`, ``, "${args.x.deep[7]} does not exist"},
		{`{"m":"${steps.a.result.nothing}"}`, ``, "m: ${steps.a.result.nothing} does not exist"},
	} {
		res, err := do(t, chain.Config{Steps: steps, Result: raw(c.result)}, `{"x":{"deep":[1.50,"s"]}}`)
		if c.err != "" {
			require.ErrorContains(t, err, c.err)
			continue
		}
		require.NoError(t, err, c.result)
		want, err := executor.Shape{}.Result("tool", raw(c.want))
		require.NoError(t, err)
		require.Equal(t, string(want.Raw), string(res.Raw), c.result)
	}
}

func TestConditions(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		is   chain.Condition
		want bool
	}{
		{chain.Condition{Value: raw(`"${args.t}"`)}, true},
		{chain.Condition{Value: raw(`"${args.zero}"`)}, false},
		{chain.Condition{Value: raw(`"${args.empty}"`)}, false},
		{chain.Condition{Value: raw(`"${args.none:-}"`)}, false},
		{chain.Condition{Value: raw(`"${args.n}"`), Equals: raw(`5`)}, true},
		{chain.Condition{Value: raw(`"${args.o}"`), Equals: raw(`{"b":2,"a":1.0}`)}, false},
		{chain.Condition{Value: raw(`"${args.o}"`), Equals: raw(`{"b":2, "a":1}`)}, true},
		{chain.Condition{Value: raw(`"${args.n}"`), NotEquals: raw(`5`)}, false},
		{chain.Condition{Value: raw(`"${args.n}"`), Above: raw(`4.9`), Below: raw(`6`)}, true},
		{chain.Condition{Value: raw(`"${args.n}"`), Above: raw(`5`)}, false},
		{chain.Condition{Value: raw(`"${args.s}"`), Above: raw(`0`)}, false},
		{chain.Condition{Value: raw(`"${args.s}"`), Contains: raw(`"bc"`)}, true},
		{chain.Condition{Value: raw(`"${args.l}"`), Contains: raw(`"b"`)}, true},
		{chain.Condition{Value: raw(`"${args.l}"`), Contains: raw(`"c"`)}, false},
		{chain.Condition{Value: raw(`"${args.o}"`), Contains: raw(`"a"`)}, true},
		{chain.Condition{Value: raw(`"${args.s}"`), In: []json.RawMessage{raw(`"x"`), raw(`"abcd"`)}}, true},
		{chain.Condition{Value: raw(`"${args.s}"`), In: []json.RawMessage{}}, false},
		{chain.Condition{Value: raw(`"${args.none}"`), Exists: &no}, true},
		{chain.Condition{Value: raw(`"${args.none}"`), Exists: &yes}, false},
		{chain.Condition{Value: raw(`"${args.zero}"`), Exists: &yes}, true},
	} {
		res, err := do(t, chain.Config{Steps: []chain.Step{{
			If: &c.is, Then: []chain.Step{{Tool: "echo", Args: raw(`{"is":true}`)}}, Else: []chain.Step{{Tool: "echo", Args: raw(`{"is":false}`)}},
		}}}, `{"t":true,"zero":0,"empty":[],"n":5.0,"s":"abcd","l":["a","b"],"o":{"a":1,"b":2}}`)
		require.NoError(t, err)
		require.Contains(t, string(res.Raw), fmt.Sprintf(`"text":"{\"is\":%v}"`, c.want), "%s %+v", c.is.Value, c.is)
	}
	_, err := do(t, chain.Config{Steps: []chain.Step{{If: &chain.Condition{Value: raw(`"${args.none}"`)}}}}, `{}`)
	require.Equal(t, toolerr.MissingParameter, toolerr.CodeOf(err))
}

func TestFailures(t *testing.T) {
	res, err := do(t, chain.Config{Steps: []chain.Step{{Tool: "fail"}, {Tool: "echo"}}}, `{}`)
	require.NoError(t, err)
	require.True(t, res.IsError())
	require.Contains(t, string(res.Raw), "step fail failed: it went wrong")

	_, err = do(t, chain.Config{Steps: []chain.Step{{ID: "r", Tool: "refuse"}}}, `{}`)
	require.Equal(t, toolerr.PolicyDenied, toolerr.CodeOf(err))
	require.ErrorContains(t, err, "step r could not be executed: not you")

	res, err = do(t, chain.Config{Steps: []chain.Step{{ID: "r", Tool: "refuse", Continue: true}, {Tool: "echo", Args: raw(`{"why":"${steps.r.text}"}`)}}}, `{}`)
	require.NoError(t, err)
	require.Contains(t, string(res.Raw), `{\"why\":\"POLICY_DENIED: not you\"}`)

	res, err = do(t, chain.Config{Steps: []chain.Step{{Tool: "words"}, {Tool: "picture"}}}, `{}`)
	require.NoError(t, err)
	require.Contains(t, string(res.Raw), `"type":"image"`, "the last step's result is given as it came")
}

// TestParallel meets in the middle: each branch waits for the other.
func TestParallel(t *testing.T) {
	var both sync.WaitGroup
	both.Add(2)
	h, err := chain.New(chain.Config{Steps: []chain.Step{{Parallel: [][]chain.Step{{{ID: "a", Tool: "a"}}, {{ID: "b", Tool: "b"}}}}}, Result: raw(`"${steps.a.result}${steps.b.result}"`)}, executor.Shape{},
		func(_ context.Context, _ *call.Request, tool string, _ json.RawMessage) (*call.Result, error) {
			both.Done()
			both.Wait()
			return executor.Shape{}.Text(tool, tool)
		}, nil)
	require.NoError(t, err)
	res, err := h(t.Context(), &call.Request{Tool: &call.Tool{Name: "tool"}})
	require.NoError(t, err)
	require.Contains(t, string(res.Raw), `"text":"ab"`)
}

func TestABranchThatFailsEndsTheOthers(t *testing.T) {
	broken := errors.New("broken")
	h, err := chain.New(chain.Config{Steps: []chain.Step{{Parallel: [][]chain.Step{{{Tool: "waits"}}, {{Tool: "breaks"}}}}}}, executor.Shape{},
		func(ctx context.Context, _ *call.Request, tool string, _ json.RawMessage) (*call.Result, error) {
			if tool == "breaks" {
				return nil, broken
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}, nil)
	require.NoError(t, err)
	_, err = h(t.Context(), &call.Request{Tool: &call.Tool{Name: "tool"}})
	require.ErrorIs(t, err, broken)
}

func TestBadConfigurations(t *testing.T) {
	step := chain.Step{ID: "a", Tool: "t"}
	deep := step
	for range 12 {
		deep = chain.Step{If: &chain.Condition{Value: raw(`1`)}, Then: []chain.Step{deep}}
	}
	for _, c := range []struct {
		config chain.Config
		want   string
	}{
		{chain.Config{}, "chain.steps: is empty"},
		{chain.Config{Steps: []chain.Step{{}}}, "chain.steps[0]: want one of tool, parallel and if"},
		{chain.Config{Steps: []chain.Step{{Tool: "t", If: &chain.Condition{}}}}, "chain.steps[0]: want one of"},
		{chain.Config{Steps: []chain.Step{step, step}}, "chain.steps[1].id: two steps have the id a"},
		{chain.Config{Steps: []chain.Step{{ID: "a b", Tool: "t"}}}, `chain.steps[0].id: "a b" must have only`},
		{chain.Config{Steps: []chain.Step{{Tool: "t", Args: raw(`[]`)}}}, "chain.steps[0].args: want a map"},
		{chain.Config{Steps: []chain.Step{{Tool: "t", Args: raw(`{"x":"${steps.b.result}"}`)}}}, "chain.steps[0].args: ${steps.b.result} is not an earlier step"},
		{chain.Config{Steps: []chain.Step{{ID: "a", Tool: "t", Args: raw(`{"x":"${steps.a.result}"}`)}}}, "is not an earlier step"},
		{chain.Config{Steps: []chain.Step{{Parallel: [][]chain.Step{{step}, {{Tool: "t", Args: raw(`{"x":"${steps.a.text}"}`)}}}}}}, "chain.steps[0].parallel[1][0].args: ${steps.a.text} is not an earlier step"},
		{chain.Config{Steps: []chain.Step{{Parallel: [][]chain.Step{{step}, {step}}}}}, "chain.steps[0]: two steps have the id a"},
		{chain.Config{Steps: []chain.Step{step}, Result: raw(`"${steps.a.output}"`)}, "chain.result: ${steps.a.output}: a step has result, text, details and is_error"},
		{chain.Config{Steps: []chain.Step{step}, Result: raw(`"${HOME}"`)}, "chain.result: ${HOME} is not a reference"},
		{chain.Config{Steps: []chain.Step{step}, Result: raw(`"${args.x"`)}, "chain.result: unclosed ${"},
		{chain.Config{Steps: []chain.Step{step}, Result: raw(`"${args..x}"`)}, "is not a reference"},
		{chain.Config{Steps: []chain.Step{{If: &chain.Condition{}}}}, "chain.steps[0].if.value: is missing"},
		{chain.Config{Steps: []chain.Step{{If: &chain.Condition{Value: raw(`1`), Above: raw(`"x"`)}}}}, "chain.steps[0].if.above: want a number"},
		{chain.Config{Steps: []chain.Step{deep}}, "steps are nested more than 8 deep"},
		{chain.Config{Steps: make([]chain.Step, 200)}, "chain.steps[0]"},
	} {
		require.ErrorContains(t, c.config.Validate(), c.want)
		_, err := chain.New(c.config, executor.Shape{}, tools, nil)
		require.Error(t, err)
	}
	many := chain.Config{}
	for range 101 {
		many.Steps = append(many.Steps, chain.Step{Tool: "t"})
	}
	require.ErrorContains(t, many.Validate(), "there are more than 100 steps")
}
