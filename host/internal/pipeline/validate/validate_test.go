package validate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/stagetest"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/validate"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func TestStage(t *testing.T) {
	t.Run("arguments", func(t *testing.T) {
		stagetest.Run(t, func(*testing.T) (call.Stage, func()) { return validate.New(validate.Config{}).Arguments, func() {} })
	})
	t.Run("results", func(t *testing.T) {
		stagetest.Run(t, func(*testing.T) (call.Stage, func()) { return validate.New(validate.Config{}).Results, func() {} })
	})
}

func BenchmarkArguments(b *testing.B) { stagetest.Bench(b, validate.New(validate.Config{}).Arguments) }
func BenchmarkResults(b *testing.B)   { stagetest.Bench(b, validate.New(validate.Config{}).Results) }

// pass makes a call through both stages.
func pass(t *testing.T, v *validate.Validator, tool *call.Tool, arguments, result string) error {
	t.Helper()
	h := call.Chain(func(context.Context, *call.Request) (*call.Result, error) {
		return &call.Result{Raw: json.RawMessage(result)}, nil
	}, v.Arguments, v.Results)
	res, err := h(t.Context(), &call.Request{Tool: tool, Params: []byte(`{"name":"t","arguments":` + arguments + `}`)})
	if err == nil {
		require.Equal(t, result, string(res.Raw))
	}
	return err
}

func taking(input string) *call.Tool {
	return &call.Tool{Name: "s__t", Traits: call.Traits{Input: json.RawMessage(input)}}
}

func giving(output string) *call.Tool {
	return &call.Tool{Name: "s__t", Traits: call.Traits{Output: json.RawMessage(output)}}
}

func TestArgumentsAreHeldAgainstTheSchema(t *testing.T) {
	const schema = `{"type":"object","properties":{
		"path":{"type":"string","minLength":1},"n":{"type":"integer","minimum":1},"mode":{"enum":["a","b"]},
		"list":{"type":"array","prefixItems":[{"type":"string"},{"type":"number"}],"items":false},
		"deep":{"$ref":"#/$defs/deep"}},
		"required":["path"],"additionalProperties":false,"$defs":{"deep":{"type":"object","properties":{"a/b":{"type":"boolean"}}}}}`
	for _, c := range []struct{ arguments, want, path string }{
		{`{"path":"x"}`, "", ""},
		{`{"path":"x","n":1.0,"mode":"b","list":["x",1.5],"deep":{"a/b":true,"c":1}}`, "", ""},
		{`{}`, "MISSING_PARAMETER s__t: missing property 'path'; correct the arguments and call again", ""},
		{`{"path":7}`, "INVALID_PARAMS s__t: /path: got number, want string; correct the arguments and call again", "/path"},
		{`{"path":"x","n":0}`, "INVALID_PARAMS s__t: /n: minimum: got 0, want 1; correct the arguments and call again", "/n"},
		{`{"path":"x","mode":"c"}`, "INVALID_PARAMS s__t: /mode: value must be one of 'a', 'b'; correct the arguments and call again", "/mode"},
		{`{"path":"x","list":["x",1,2]}`, "INVALID_PARAMS s__t: /list/2: false schema; correct the arguments and call again", "/list/2"},
		{`{"path":"x","deep":{"a/b":1}}`, "INVALID_PARAMS s__t: /deep/a~1b: got number, want boolean; correct the arguments and call again", "/deep/a~1b"},
		{`{"path":"x","pth":1}`, "INVALID_PARAMS s__t: additional properties 'pth' not allowed; correct the arguments and call again", ""},
		{`[]`, "INVALID_PARAMS s__t: got array, want object; correct the arguments and call again", ""},
		{`{"n":"x"}`, "INVALID_PARAMS s__t: ", ""},
	} {
		v := validate.New(validate.Config{OnUnusable: func(_ *call.Tool, err error) { t.Error(err) }})
		err := pass(t, v, taking(schema), c.arguments, `{}`)
		if c.want == "" {
			require.NoError(t, err, c.arguments)
			continue
		}
		require.Error(t, err, c.arguments)
		require.Contains(t, fmt.Sprintf("%s %v", toolerr.CodeOf(err), err), c.want)
		var invalid *call.ValidationError
		require.ErrorAs(t, err, &invalid)
		require.Equal(t, call.ArgsInvalid, invalid.Type)
		if c.path != "" {
			require.Equal(t, c.path, invalid.Path)
		}
	}
}

func TestManyFaultsGiveAShortAnswer(t *testing.T) {
	v := validate.New(validate.Config{})
	err := pass(t, v, taking(`{"additionalProperties":{"enum":["`+strings.Repeat("é", 5000)+`"]}}`),
		`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1}`, `{}`)
	require.ErrorContains(t, err, "; and 2 more; correct")
	require.Less(t, len(err.Error()), 8*320+100)
}

func TestResultsAreHeldAgainstTheSchema(t *testing.T) {
	const schema = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`
	for result, want := range map[string]string{
		`{"content":[],"structuredContent":{"n":1}}`: "",
		`{"content":[]}`: "",
		`{"content":[],"structuredContent":null}`:                                                     "",
		`{"content":[],"structuredContent":{"n":"x"},"isError":true}`:                                 "",
		`{"resultType":"input_required","structuredContent":{}}`:                                      "",
		`{"resultType":"complete","structuredContent":{}}`:                                            "missing property 'n'",
		`{"content":[],"structuredContent":{"n":"x"}}`:                                                "/n: got string, want integer",
		`{"content":[],"structuredContent":{"n":1,"x":"` + strings.Repeat("x", 1<<20) + `","n":"x"}}`: "", // too large to be looked at
	} {
		err := pass(t, validate.New(validate.Config{}), giving(schema), `{}`, result)
		if want == "" {
			require.NoError(t, err, "%.80s", result)
			continue
		}
		require.Equal(t, toolerr.ResultInvalid, toolerr.CodeOf(err))
		require.EqualError(t, err, "s__t: the server's result does not fit its outputSchema: "+want+"; the call was executed, but its result is unreliable")
		require.NoError(t, pass(t, validate.New(validate.Config{ResultsOff: true}), giving(schema), `{}`, result))
	}
}

func TestWhoChecksItselfIsLeftAlone(t *testing.T) {
	tool := taking(`{"required":["x"]}`)
	require.Error(t, pass(t, validate.New(validate.Config{}), tool, `{}`, `{}`))
	require.NoError(t, pass(t, validate.New(validate.Config{ArgumentsOff: true}), tool, `{}`, `{}`))
	own := *tool
	own.Validates, own.Output = true, json.RawMessage(`{"required":["x"]}`)
	require.NoError(t, pass(t, validate.New(validate.Config{}), &own, `{}`, `{"structuredContent":{}}`))
}

func TestASchemaThatCannotBeUsedRefusesNothing(t *testing.T) {
	doubled := func(applicator string, leaf string) string { // 2^40 leaves
		defs := []string{`"d0":` + leaf}
		for n := 1; n <= 40; n++ {
			ref := fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, n-1)
			defs = append(defs, fmt.Sprintf(`"d%d":{%q:[%s,%s]}`, n, applicator, ref, ref))
		}
		return `{"$ref":"#/$defs/d40","$defs":{` + strings.Join(defs, ",") + `}}`
	}
	for name, schema := range map[string]string{
		"not JSON":          `{`,
		"no schema":         `{"type":7}`,
		"another document":  `{"$ref":"https://example.com/schema.json"}`,
		"a file":            `{"$ref":"file:///etc/hostname"}`,
		"nowhere":           `{"$ref":"#/$defs/none"}`,
		"allOf":             doubled("allOf", `true`),
		"allOf, objects":    doubled("allOf", `{"type":"object"}`),
		"anyOf, in vain":    doubled("anyOf", `{"type":"string"}`),
		"oneOf, in vain":    doubled("oneOf", `{"const":1}`),
		"oneOf":             doubled("oneOf", `{"minProperties":1}`),
		"properties":        `{"$ref":"#/$defs/x","$defs":{"x":{"properties":{"a":{"allOf":[{"$ref":"#/$defs/x"},{"$ref":"#/$defs/x"}]}}}}}`,
		"properties, anyOf": `{"$ref":"#/$defs/x","$defs":{"x":{"required":["z"],"properties":{"a":{"anyOf":[{"$ref":"#/$defs/x"},{"$ref":"#/$defs/x"}]}}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			var unusable []error
			v := validate.New(validate.Config{OnUnusable: func(_ *call.Tool, err error) { unusable = append(unusable, err) }})
			tool := taking(schema)
			arguments := strings.Repeat(`{"a":`, 40) + "1" + strings.Repeat(`}`, 40)
			for range 3 {
				require.NoError(t, pass(t, v, tool, arguments, `{}`))
			}
			require.Len(t, unusable, 1, "it is said once: %v", unusable)
		})
	}
}

func TestPatternsThatGoDoesNotHaveMatchAnything(t *testing.T) {
	v := validate.New(validate.Config{})
	tool := taking(`{"properties":{"a":{"pattern":"^(?!x)"},"b":{"pattern":"^[0-9]+$"}}}`)
	require.NoError(t, pass(t, v, tool, `{"a":"x","b":"1"}`, `{}`))
	require.ErrorContains(t, pass(t, v, tool, `{"b":"y"}`, `{}`), "/b: 'y' does not match pattern '^[0-9]+$'")
}

func TestDraft7IsRead(t *testing.T) {
	v := validate.New(validate.Config{})
	tool := taking(`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"items":[{"type":"string"}]}}}`)
	require.NoError(t, pass(t, v, tool, `{"a":["x"]}`, `{}`))
	require.ErrorContains(t, pass(t, v, tool, `{"a":[1]}`, `{}`), "/a/0: got number, want string")
}

func TestAToolThatIsListedAnewIsCheckedAnew(t *testing.T) {
	v := validate.New(validate.Config{})
	require.Error(t, pass(t, v, taking(`{"required":["x"]}`), `{}`, `{}`))
	require.Error(t, pass(t, v, taking(`{"required":["x"]}`), `{}`, `{}`))
	require.NoError(t, pass(t, v, taking(`{"required":["y"]}`), `{"y":1}`, `{}`))
	require.NoError(t, validate.Config{}.Validate())
}

func TestALargeValueDoesNotSpoilASchema(t *testing.T) {
	v := validate.New(validate.Config{OnUnusable: func(_ *call.Tool, err error) { t.Error(err) }})
	tool := taking(`{"properties":{"a":{"items":{"type":"integer"}}}}`)
	require.NoError(t, pass(t, v, tool, `{"a":[`+strings.Repeat("1,", 250_000)+`"x"]}`, `{}`), "too much to be checked")
	require.NoError(t, pass(t, v, tool, `{"a":[`+strings.Repeat("1,", 20_000)+`1]}`, `{}`))
	require.Error(t, pass(t, v, tool, `{"a":[`+strings.Repeat("1,", 20_000)+`"x"]}`, `{}`))
}
