package mock_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/executor"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/mock"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func do(t *testing.T, c mock.Config, arguments string) (*call.Result, error) {
	t.Helper()
	h, err := mock.New(c, executor.Shape{})
	require.NoError(t, err)
	return h(t.Context(), &call.Request{Tool: &call.Tool{Name: "tool"}, Params: fmt.Appendf(nil, `{"arguments":%s}`, arguments)})
}

func TestTemplates(t *testing.T) {
	for _, c := range []struct {
		template, arguments string
		want                string // the text of the result
		err                 string
		code                toolerr.Code
	}{
		{template: `{"city":"{{.city}}"}`, arguments: `{"city":"a\"b\\\n\u0001é<&"}`, want: `{"city":"a\"b\\\n\u0001é<&"}`},
		{template: `{"a":{{.n}},"b":{{.f}},"c":{{.t}},"d":{{.z}},"e":{{.l}},"f":{{.o}},"g":{{.big}}}`,
			arguments: `{"n":7,"f":1.5,"t":true,"z":null,"l":[1,"x"],"o":{"k":"v"},"big":12345678901234567890}`,
			want:      `{"a":7,"b":1.5,"c":true,"d":null,"e":[1,"x"],"f":{"k":"v"},"g":12345678901234567890}`},
		{template: `{{json .city}}`, arguments: `{"city":"\"x\""}`, want: `"x"`},
		{template: `{{if eq .id "1"}}{"ok":true}{{else}}{"ok":false}{{end}}`, arguments: `{"id":"1"}`, want: `{"ok":true}`},
		{template: `{{if gt .n 5}}1{{else}}2{{end}}`, arguments: `{"n":7}`, want: `1`},
		{template: `[{{range $i, $e := .l}}{{if $i}},{{end}}"{{$e}}"{{end}}]`, arguments: `{"l":["a","b\""]}`, want: `["a","b\""]`},
		{template: `{"x":"{{.o.deep}}"}`, arguments: `{"o":{"deep":"d"}}`, want: `{"x":"d"}`},
		{template: `{ {{range $k, $v := .o}}"{{$k}}":{{json $k}}{{end}} }`, arguments: `{"o":{"a\",\"evil\":\"":1}}`, want: `{ "a\",\"evil\":\"":"a\",\"evil\":\"" }`},
		{template: `{{$n := 0}}{{$v := 0}}{{range $n, $v = .o}}"{{$n}}"{{end}}`, arguments: `{"o":{"a\"":1}}`, want: `a"`},
		{template: `[{{range $k, $v := .o}}{{if eq $k "a"}}"{{$k}}{{$v.deep}}"{{end}}{{end}}]`, arguments: `{"o":{"a":{"deep":"d"}}}`, want: `["ad"]`},
		{template: `{"o":{{.o}},"j":{{json .n}},"f":{{.f}},"g":{{.g}},"h":{{.h}},"e":{{.e}}}`,
			arguments: `{"o":{"n":12345678901234567890,"l":[0.12345678901234567890]},"n":12345678901234567890,"f":12345678901234.123456789,"g":0.30000000000000004,"h":1.50,"e":1e400}`,
			want:      `{"o":{"l":[0.12345678901234567890],"n":12345678901234567890},"j":12345678901234567890,"f":12345678901234.123456789,"g":0.30000000000000004,"h":1.5,"e":1e400}`},
		{template: `{{if gt .g 0.2}}1{{end}}`, arguments: `{"g":0.30000000000000004}`, want: `1`},
		{template: `{"city":"{{.city}}"}`, arguments: `{}`, err: "argument city is missing, required by mock_template", code: toolerr.MissingParameter},
		{template: `{"x":"{{.o.deep}}"}`, arguments: `{"o":{}}`, err: "argument deep is missing", code: toolerr.MissingParameter},
		{template: `{"city":{{.city}}}`, arguments: `{"city":"x"}`, err: "the output of mock_template is not JSON", code: toolerr.ResultInvalid},
		{template: `{{index .l 9}}`, arguments: `{"l":[1]}`, err: "mock_template of tool cannot be filled", code: toolerr.ExecutionError},
		{template: `{{range .l}}{{range $.l}}{{range $.l}}{{range $.l}}{{$.s}}{{end}}{{end}}{{end}}{{end}}`,
			arguments: `{"s":"0123456789012345678901234567890123456789","l":[1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7,8,9,0]}`, err: "larger than 10 MiB", code: toolerr.ExecutionError},
	} {
		res, err := do(t, mock.Config{Template: c.template}, c.arguments)
		if c.err != "" {
			require.ErrorContains(t, err, c.err, c.template)
			require.Equal(t, c.code, toolerr.CodeOf(err), c.template)
			continue
		}
		require.NoError(t, err, c.template)
		var r struct {
			Content []struct{ Text string }
		}
		require.NoError(t, json.Unmarshal(res.Raw, &r))
		require.Equal(t, c.want, r.Content[0].Text, c.template)
	}
}

func TestStatic(t *testing.T) {
	res, err := do(t, mock.Config{Result: json.RawMessage(`{"a": 1.0}`), Parts: []json.RawMessage{json.RawMessage(`{"type":"text","text":"before"}`)}}, `{}`)
	require.NoError(t, err)
	require.Equal(t, `{"content":[{"type":"text","text":"before"},{"type":"text","text":"{\"a\": 1.0}"}]}`, string(res.Raw))
}

func TestBadConfigurations(t *testing.T) {
	for _, c := range []struct {
		config mock.Config
		want   string
	}{
		{mock.Config{}, "mock_result: is missing; give it, or a mock_template"},
		{mock.Config{Result: json.RawMessage(`1`), Template: "1"}, "mock_template: mock_result is also given"},
		{mock.Config{Result: json.RawMessage(`{`)}, "mock_result: "},
		{mock.Config{Template: "{{.a"}, "mock_template: :1: unclosed action"},
		{mock.Config{Template: "{{nofunc .a}}"}, `mock_template: :1: function "nofunc" not defined`},
		{mock.Config{Template: "{{if .a}}"}, "mock_template: :1: unexpected EOF"},
	} {
		require.ErrorContains(t, c.config.Validate(), c.want)
		_, err := mock.New(c.config, executor.Shape{})
		require.Error(t, err)
	}
}

func TestUses(t *testing.T) {
	c := mock.Config{Template: `{{.a}}{{if .b}}{{.c.d}}{{else}}{{$.e}}{{end}}{{range .f}}{{.not}}{{$.g}}{{end}}{{with .h}}{{.not}}{{end}}{{json .i}}`}
	require.Equal(t, []string{"a", "b", "c", "e", "f", "g", "h", "i"}, c.Uses())
}

// Calls at the same time have each its own outcome.
func TestCallsAtOnce(t *testing.T) {
	h, err := mock.New(mock.Config{Template: `"{{.city}}"`}, executor.Shape{})
	require.NoError(t, err)
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			for range 20 {
				arguments := []byte(`{"arguments":{}}`)
				if i%2 == 0 {
					arguments = fmt.Appendf(nil, `{"arguments":{"city":"c%d"}}`, i)
				}
				res, err := h(t.Context(), &call.Request{Tool: &call.Tool{Name: "tool"}, Params: arguments})
				if i%2 != 0 {
					assert.Equal(t, toolerr.MissingParameter, toolerr.CodeOf(err))
				} else if assert.NoError(t, err) {
					assert.Contains(t, string(res.Raw), fmt.Sprintf(`"text":"c%d"`, i))
				}
			}
		})
	}
	all.Wait()
}

// A template that runs for ever ends with its call.
func TestALoopEnds(t *testing.T) {
	for name, c := range map[string]string{
		"a loop":          `{{range 1000000000}}{{end}}`,
		"a loop inside":   `{{with .a}}{{range 100000}}{{if true}}{{range 100000}}{{end}}{{end}}{{end}}{{end}}`,
		"the other part":  `{{range .none}}{{else}}{{range 1000000000}}{{end}}{{end}}`,
		"templates":       `{{define "a"}}{{if .a}}{{template "b" .}}{{template "b" .}}{{end}}{{end}}{{define "b"}}{{template "a" .}}{{end}}{{template "a" .}}`,
		"with the assign": `{{$k := 0}}{{range $k = 1000000000}}{{end}}`,
	} {
		t.Run(name, func(t *testing.T) {
			h, err := mock.New(mock.Config{Template: c}, executor.Shape{})
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err = h(ctx, &call.Request{Tool: &call.Tool{Name: "tool"}, Params: []byte(`{"arguments":{"a":1,"none":[]}}`)})
			require.ErrorIs(t, err, context.Canceled)
		})
	}
}
