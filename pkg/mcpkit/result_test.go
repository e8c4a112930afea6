package mcpkit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/callerror"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// counts is metadata with every case in which Go and JSON Schema disagree.
type counts struct {
	Count   int               `json:"count"`
	Names   []string          `json:"names"`
	By      map[string]int    `json:"by"`
	Next    *int              `json:"next"`
	Mode    string            `json:"mode,omitempty" enum:"a,b"`
	Took    time.Duration     `json:"took"`
	Nested  struct{ N []int } `json:"nested"`
	Comment any               `json:"comment"`
}

// returning makes a tool that always returns r and err.
func returning(t testing.TB, d mcpkit.Def, r *mcpkit.Result, err error) *mcpkit.Tool {
	t.Helper()
	d.Name = "count"
	tool, fault := mcpkit.NewTool(d, func(context.Context, struct{}) (*mcpkit.Result, error) { return r, err })
	require.NoError(t, fault)
	return tool
}

type answer struct {
	Content []struct {
		Type, Text, MIMEType string
		Data                 []byte
	}
	StructuredContent json.RawMessage
	Meta              struct {
		Result json.RawMessage `json:"toolroom/result"`
		Code   toolerr.Code    `json:"toolroom/code"`
	} `json:"_meta"`
	IsError bool
}

// call returns the result as a client decodes it, checked against the
// outputSchema as strict clients do, including errors.
func call(t testing.TB, ctx context.Context, tool *mcpkit.Tool, args string) (answer, *mcpkit.CallResult) {
	t.Helper()
	res := tool.Call(ctx, json.RawMessage(args))
	raw := res.JSON()
	require.LessOrEqual(t, len(raw), mcpkit.MaxMessage)
	require.NotContains(t, string(raw), "\n")
	require.True(t, utf8.Valid(raw))
	var w answer
	require.NoError(t, json.Unmarshal(raw, &w))
	require.NotEmpty(t, w.Content)
	for _, c := range w.Content {
		require.True(t, c.Type != "text" || c.Text != "", "model APIs refuse an empty text")
	}
	if schema := tool.OutputSchema(); schema != nil {
		if w.StructuredContent != nil || !w.IsError {
			requireValid(t, schema, w.StructuredContent)
		}
	} else {
		require.Nil(t, w.StructuredContent, "some clients pass it to the model instead of the text")
	}
	require.Equal(t, w.IsError, w.Meta.Code != "", "errors have a code")
	return w, res
}

func TestMetadataFitsTheOutputSchema(t *testing.T) {
	ctx := context.Background()
	d := mcpkit.Def{Output: counts{}}
	seven := 7
	for name, tc := range map[string]struct {
		meta any
		err  error
		want string
	}{
		"zero":            {counts{}, nil, `{"count":0,"names":[],"by":{},"took":"0s","nested":{"N":[]},"comment":null}`},
		"full":            {&counts{Next: &seven, Names: []string{"x"}, Took: 90 * time.Second}, nil, `{"count":0,"names":["x"],"by":{},"next":7,"took":"1m30s","nested":{"N":[]},"comment":null}`},
		"none":            {nil, nil, ``},
		"typed nil":       {(*counts)(nil), nil, ``},
		"a map":           {map[string]any{"count": 3, "more": true}, nil, `{"count":3,"more":true}`},
		"does not fit":    {map[string]any{"count": "three", "mode": "z", "names": []any{1}, "took": 5}, nil, `{"took":"5ns"}`},
		"no object":       {[]int{1}, nil, ``},
		"not JSON":        {map[string]any{"f": math.NaN()}, nil, ``},
		"too much":        {map[string]any{"s": strings.Repeat("x", 1<<20)}, nil, ``},
		"error":           {nil, errors.New("boom"), ``},
		"error with more": {nil, toolerr.New(toolerr.NotUnique, "2").With("count", 2).With("line", 7), `{"count":2,"line":7}`},
		"error misfit":    {nil, toolerr.New(toolerr.NotUnique, "2").With("count", "two").With("f", math.Inf(1)), ``},
		"error and meta":  {counts{Count: 4}, toolerr.New(toolerr.Timeout, "late").With("count", 5), `{"count":5,"names":[],"by":{},"took":"0s","nested":{"N":[]},"comment":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			tool := returning(t, d, &mcpkit.Result{Text: "x", Meta: tc.meta}, tc.err)
			w, _ := call(t, ctx, tool, `{}`)
			require.Equal(t, tc.want, string(w.Meta.Result))
			require.Equal(t, tc.err != nil, w.IsError)

			whole, err := tool.Structured()
			require.NoError(t, err)
			w, _ = call(t, ctx, whole, `{}`)
			var got map[string]any
			require.NoError(t, json.Unmarshal(w.StructuredContent, &got))
			require.Equal(t, w.Content[0].Text, got["text"], "structuredContent is complete")
			require.Equal(t, tc.err != nil, got["code"] != nil)
			require.Equal(t, tc.want, string(w.Meta.Result))
		})
	}
	tool := returning(t, mcpkit.Def{}, &mcpkit.Result{Text: "x", Meta: counts{}}, nil)
	w, _ := call(t, ctx, tool, `{}`)
	require.Nil(t, w.Meta.Result, "none declared, none sent")
	w, _ = call(t, ctx, returning(t, mcpkit.Def{}, nil, errors.New("boom")), `{}`)
	require.Equal(t, toolerr.ExecutionError, w.Meta.Code, "an error has its code all the same")
}

func TestStructuredRows(t *testing.T) {
	type row struct {
		Path string `json:"path"`
		Line int    `json:"line,omitempty"`
	}
	d := mcpkit.Def{Output: counts{}, Row: row{}}
	rows := []row{{"a", 1}, {"b", 0}}
	for name, given := range map[string]any{"slice": rows, "function": func() any { return rows }} {
		t.Run(name, func(t *testing.T) {
			tool, err := returning(t, d, &mcpkit.Result{Text: "2 rows", Rows: given, Meta: counts{Count: 2}}, nil).Structured()
			require.NoError(t, err)
			w, _ := call(t, context.Background(), tool, `{}`)
			require.Equal(t, "2 rows", w.Content[0].Text)
			require.Equal(t, `{"results":[{"path":"a","line":1},{"path":"b"}],"count":2,"names":[],"by":{},"took":"0s","nested":{"N":[]},"comment":null}`, string(w.StructuredContent))
			require.Contains(t, string(tool.Definition()), `"outputSchema":{"type":"object","properties":{"results":{"type":"array","items":{"type":"object","properties":{"path":`)
		})
	}
	t.Run("more than a message holds", func(t *testing.T) {
		many := make([]row, 200_000)
		tool, err := returning(t, d, &mcpkit.Result{Text: "many rows", Rows: many}, nil).Structured()
		require.NoError(t, err)
		raw := tool.Call(context.Background(), json.RawMessage(`{}`)).JSON()
		require.LessOrEqual(t, len(raw), mcpkit.MaxMessage)
		require.JSONEq(t, `{"text":"many rows"}`, string(decoded(t, raw).StructuredContent), "complete, as far as the text is")
	})
	type tree struct{ Kids []tree }
	_, err := mcpkit.NewTool(mcpkit.Def{Name: "x", Row: tree{}}, func(context.Context, struct{}) (*mcpkit.Result, error) { return nil, nil })
	require.ErrorContains(t, err, "Row cannot be a recursive type")
}

func decoded(t *testing.T, raw json.RawMessage) (w answer) {
	t.Helper()
	require.NoError(t, json.Unmarshal(raw, &w))
	return w
}

func TestOutputSchema(t *testing.T) {
	tool := returning(t, mcpkit.Def{Output: counts{}}, nil, nil)
	require.Nil(t, tool.OutputSchema())
	require.NotContains(t, string(tool.Definition()), "outputSchema")
	tool, err := tool.Structured()
	require.NoError(t, err)
	require.Equal(t, `{"type":"object","properties":{"text":{"type":"string","description":"the answer as text, if it has no rows"},"code":{"type":"string","description":"stable code of an error"},"count":{"type":"integer"},"names":{"type":"array","items":{"type":"string"}},"by":{"type":"object","properties":{},"additionalProperties":{"type":"integer"}},"next":{"type":"integer"},"mode":{"type":"string","enum":["a","b"]},"took":{"type":"string","description":"a duration like \"30s\" or \"1m30s\""},"nested":{"type":"object","properties":{"N":{"type":"array","items":{"type":"integer"}}},"required":["N"]},"comment":{}}}`,
		string(tool.OutputSchema()), "the root requires nothing, since errors are held against it too")
}

// Defect 6: an error, no result and a panic are results, not -32603.
func TestFailuresAreResults(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	for _, tc := range []struct {
		name string
		err  error
		code toolerr.Code
		text string
	}{
		{"coded", fmt.Errorf("view: %w", toolerr.New(toolerr.NotFound, "no file x; try y")), toolerr.NotFound, "view: no file x; try y"},
		{"system", &fs.PathError{Op: "open", Path: "x", Err: fs.ErrPermission}, toolerr.PermissionDenied, "open x: permission denied"},
		{"plain", errors.New("boom"), toolerr.ExecutionError, "boom"},
		{"no text", errors.New(""), toolerr.ExecutionError, "failed with EXECUTION_ERROR"},
		{"invalid text", errors.New("a\xffb"), toolerr.ExecutionError, "a\uFFFDb"},
		{"deadline", fmt.Errorf("walk: %w", context.DeadlineExceeded), toolerr.Timeout, "count did not finish within 3s: narrow"},
		{"nothing", nil, toolerr.Internal, "count returned neither a result nor an error"},
		{"typed nil", (*toolerr.Error)(nil), toolerr.Internal, "internal error"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w, res := call(t, ctx, returning(t, mcpkit.Def{Timeout: 3 * time.Second}, nil, tc.err), `{}`)
			require.True(t, w.IsError)
			require.Equal(t, tc.code, res.Code)
			require.Contains(t, w.Content[0].Text, tc.text)
			require.Equal(t, tc.code, w.Meta.Code)
			if tc.err != nil && tc.code != toolerr.Internal {
				require.ErrorIs(t, res.Err, errors.Unwrap(fmt.Errorf("%w", tc.err)))
			}
		})
	}
	cancel()
	_, res := call(t, ctx, returning(t, mcpkit.Def{}, nil, context.Canceled), `{}`)
	require.Equal(t, toolerr.Cancelled, res.Code)
	require.Contains(t, res.Text, "count was cancelled")
}

func TestPanicIsInternalWithoutStack(t *testing.T) {
	tool, err := mcpkit.NewTool(mcpkit.Def{Name: "bad", Output: counts{}}, func(context.Context, struct{}) (*mcpkit.Result, error) {
		panic("secret value")
	})
	require.NoError(t, err)
	w, res := call(t, context.Background(), tool, `{}`)
	require.Equal(t, toolerr.Internal, res.Code)
	require.NotContains(t, w.Content[0].Text+string(w.Meta.Result), "secret")
	require.NotContains(t, w.Content[0].Text, ".go:")
	var p *callerror.Panic
	require.ErrorAs(t, res.Err, &p)
	require.Equal(t, "secret value", p.Value)
	require.Contains(t, string(p.Stack), "result_test.go")
}

func TestErrorKeepsWhatWasDone(t *testing.T) {
	r := &mcpkit.Result{Text: "3 lines of output", Meta: counts{Count: 3}}
	w, _ := call(t, context.Background(), returning(t, mcpkit.Def{Output: counts{}}, r, toolerr.New(toolerr.Timeout, "killed after 2s")), `{}`)
	require.Equal(t, "killed after 2s\n\n3 lines of output", w.Content[0].Text)
	require.Equal(t, toolerr.Timeout, w.Meta.Code)
	require.Contains(t, string(w.Meta.Result), `{"count":3`)
}

func TestTextIsCutToTheBudget(t *testing.T) {
	lines := strings.Repeat("é line of text\n", 10_000)
	for _, tokens := range []int{1, 10, 50, 1000, 12_000} {
		for name, text := range map[string]string{"lines": lines, "one line": strings.Repeat("é", 100_000)} {
			ctx := wire.WithBudget(context.Background(), tokens)
			w, _ := call(t, ctx, returning(t, mcpkit.Def{}, &mcpkit.Result{Text: text}, nil), `{"extra":1}`)
			got := w.Content[0].Text
			require.LessOrEqual(t, len(got), max(tokens*4, 250), "%s at %d tokens", name, tokens)
			require.Contains(t, got, "[cut to the result limit: ")
			require.Contains(t, got, fmt.Sprintf(" of %d bytes shown", len(text)))
			rest, whole := strings.CutPrefix(got, "note: /extra: unknown argument ignored\n")
			require.True(t, whole, "notes are never cut: %s", got)
			body, _, _ := strings.Cut(rest, "[cut")
			if body != "" && name == "lines" {
				require.True(t, strings.HasSuffix(body, "text\n"), "between lines")
			}
		}
	}
	w, _ := call(t, context.Background(), returning(t, mcpkit.Def{MaxTokens: 100}, &mcpkit.Result{Text: lines}, nil), `{}`)
	require.LessOrEqual(t, len(w.Content[0].Text), 400, "the tool's own budget")
	w, _ = call(t, context.Background(), returning(t, mcpkit.Def{MaxTokens: 100}, nil, errors.New(lines)), `{}`)
	require.LessOrEqual(t, len(w.Content[0].Text), 400, "errors as well")
}

func TestMessageStaysUnderTheHardBound(t *testing.T) {
	ctx := wire.WithBudget(context.Background(), math.MaxInt32)
	image := func(n int) mcpkit.Image {
		return mcpkit.Image{Data: bytes.Repeat([]byte{7}, n), MIME: "image/png"}
	}
	w, _ := call(t, ctx, returning(t, mcpkit.Def{}, &mcpkit.Result{Text: "two", Images: []mcpkit.Image{image(700 << 10), image(200 << 10)}}, nil), `{}`)
	require.Len(t, w.Content, 2)
	require.Equal(t, "two\nimage 2 (image/png, 204800 bytes) omitted: the message would exceed 1048576 bytes", w.Content[0].Text)
	require.Len(t, w.Content[1].Data, 700<<10)

	w, _ = call(t, ctx, returning(t, mcpkit.Def{}, &mcpkit.Result{Images: []mcpkit.Image{image(10)}}, nil), `{}`)
	require.Equal(t, "image", w.Content[0].Type)

	many := &mcpkit.Result{Text: "many"}
	for range 1000 {
		many.Images = append(many.Images, image(5000))
	}
	w, _ = call(t, ctx, returning(t, mcpkit.Def{}, many, nil), `{}`)
	require.Greater(t, len(w.Content), 100)

	// Six bytes each on the wire.
	w, _ = call(t, ctx, returning(t, mcpkit.Def{Output: counts{}}, &mcpkit.Result{Text: strings.Repeat("\x01", 1<<20)}, nil), `{}`)
	require.Contains(t, w.Content[0].Text, "[cut to the result limit")
	w, _ = call(t, ctx, returning(t, mcpkit.Def{}, &mcpkit.Result{Text: "a\xff\u2028<&>"}, nil), `{}`)
	require.Equal(t, "a\uFFFD\u2028<&>", w.Content[0].Text)
	w, _ = call(t, ctx, returning(t, mcpkit.Def{}, &mcpkit.Result{}, nil), `{}`)
	require.Equal(t, "(no output)", w.Content[0].Text)
}

func TestNotes(t *testing.T) {
	mcpkit.Notef(context.Background(), "nobody listens")
	tool, err := mcpkit.NewTool(mcpkit.Def{Name: "n"}, func(ctx context.Context, _ struct{}) (*mcpkit.Result, error) {
		for i := range 100 {
			mcpkit.Notef(ctx, "line\n%d", i/2)
		}
		mcpkit.Notef(ctx, "%s", strings.Repeat("é", 1000))
		return &mcpkit.Result{Text: "header\nbody\n"}, nil
	})
	require.NoError(t, err)
	w, _ := call(t, context.Background(), tool, `{}`)
	require.True(t, strings.HasPrefix(w.Content[0].Text, "header\nbody\nnote: line 0\nnote: line 1\n"), w.Content[0].Text)
	require.Equal(t, 20, strings.Count(w.Content[0].Text, "note: "))
}

type report struct {
	Total int      `json:"total"`
	Items []string `json:"items"`
}

type stringed struct{ report }

func (stringed) String() string { return "3 items" }

func structuredTool[R any](t testing.TB, r R, err error) *mcpkit.Tool {
	t.Helper()
	tool, fault := mcpkit.NewStructuredTool(mcpkit.Def{Name: "s"}, func(context.Context, page) (R, error) { return r, err })
	require.NoError(t, fault)
	return tool
}

func TestStructuredTools(t *testing.T) {
	ctx := context.Background()
	for name, tc := range map[string]struct {
		tool             *mcpkit.Tool
		text, structured string
		code             toolerr.Code
	}{
		"struct":   {structuredTool(t, report{Total: 1}, nil), `{"total":1,"items":null}`, `{"total":1,"items":[]}`, ""},
		"pointer":  {structuredTool(t, &report{Total: 1}, nil), `{"total":1,"items":null}`, `{"total":1,"items":[]}`, ""},
		"stringer": {structuredTool(t, stringed{report{Total: 3}}, nil), "3 items", `{"total":3,"items":[]}`, ""},
		"list":     {structuredTool(t, []int{1, 2}, nil), `[1,2]`, `{"result":[1,2]}`, ""},
		"no list":  {structuredTool(t, []int(nil), nil), `null`, `{"result":[]}`, ""},
		"text":     {structuredTool(t, "x", nil), `"x"`, `{"result":"x"}`, ""},
		"map":      {structuredTool(t, map[string]any{"a": 1}, nil), `{"a":1}`, `{"a":1}`, ""},
		"error":    {structuredTool(t, report{}, toolerr.New(toolerr.Stale, "old")), "old", ``, toolerr.Stale},
		"nil":      {structuredTool[*report](t, nil, nil), "neither a result nor an error", ``, toolerr.Internal},
		"misfit":   {structuredTool(t, bad{Mode: "z"}, nil), "does not fit its outputSchema: /mode must be one of", ``, toolerr.ResultInvalid},
		"NaN":      {structuredTool(t, math.NaN(), nil), "cannot be sent as JSON", ``, toolerr.ResultInvalid},
		"too much": {structuredTool(t, strings.Repeat("x", 50_000), nil), "50013 bytes, more than the limit of 48000", ``, toolerr.TooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			w, res := call(t, ctx, tc.tool, `{}`)
			require.Contains(t, w.Content[0].Text, tc.text)
			require.Equal(t, tc.structured, string(w.StructuredContent))
			require.Equal(t, tc.code, res.Code)
		})
	}
	w, _ := call(t, ctx, structuredTool(t, report{}, nil), `{"limit":"5"}`)
	require.Len(t, w.Content, 2, "a note does not spoil the data")
	require.JSONEq(t, `{"total":0,"items":null}`, w.Content[0].Text)
	require.Equal(t, `note: /limit: "5" taken as the number 5`, w.Content[1].Text)

	_, err := mcpkit.NewStructuredTool(mcpkit.Def{Name: "s", Output: counts{}}, func(context.Context, page) (report, error) { return report{}, nil })
	require.ErrorContains(t, err, "Output is for NewTool")
	_, err = mcpkit.NewStructuredTool(mcpkit.Def{Name: "s"}, func(context.Context, page) (map[string]int, error) { return nil, nil })
	require.ErrorContains(t, err, "does not fit into a map of integers")
}

type bad struct {
	Mode string `json:"mode" enum:"a,b"`
}
