package mcpkit_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
)

// Defect 7: all four hints are sent, including false ones.
func TestDefinition(t *testing.T) {
	tool, err := mcpkit.NewTool(mcpkit.Def{
		Name: "ls", Title: "List directory", Description: "Lists < & >.\n", Aliases: []string{"LS"},
		Hints: mcpkit.Hints{ReadOnly: true, Idempotent: true}, Timeout: 10 * time.Second, MaxConcurrent: 4,
		Output: counts{}, Meta: map[string]any{"anthropic/maxResultSizeChars": 100_000},
	}, nothing[page])
	require.NoError(t, err)
	require.Equal(t, `{"name":"ls","title":"List directory","description":"Lists < & >.","inputSchema":{"type":"object","properties":{"limit":{"type":"integer","default":100},"offset":{"type":"integer"}}},"annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false},"_meta":{"anthropic/maxResultSizeChars":100000,"toolroom/call":{"validates":true,"timeoutMs":10000,"concurrency":4}}}`,
		string(tool.Definition()))
	require.Equal(t, "ls", tool.Name())
	require.Equal(t, 4, tool.Def().MaxConcurrent)

	_, err = mcpkit.NewTool(mcpkit.Def{Name: "x", Meta: map[string]any{"f": func() {}}}, nothing[page])
	require.ErrorContains(t, err, "the definition cannot be sent as JSON")
	_, err = mcpkit.NewTool(mcpkit.Def{Name: "x", Meta: map[string]any{"toolroom/call": 1}}, nothing[page])
	require.ErrorContains(t, err, "is reserved")
}

func TestDefaultsArriveWhereNothingWasSaid(t *testing.T) {
	c := recorder[page](t, mcpkit.Def{})
	require.False(t, c.call(`{}`).IsError)
	require.Equal(t, page{Limit: 100}, *c.got)
	require.False(t, c.call(`{"limit":0}`).IsError)
	require.Equal(t, page{Limit: 0}, *c.got, "a zero that was said is a zero")
}

// A default is shared by all calls and must not be changed by one of them.
func TestDefaultsAreNotShared(t *testing.T) {
	type args struct {
		List []string `json:"list,omitempty" default:"a,b"`
	}
	c := recorder[args](t, mcpkit.Def{})
	require.False(t, c.call(`{}`).IsError)
	c.got.List[0] = "changed"
	require.False(t, c.call(`{}`).IsError)
	require.Equal(t, []string{"a", "b"}, c.got.List)
}

func TestArgumentsAsPointerAndAsMap(t *testing.T) {
	p := recorder[*page](t, mcpkit.Def{})
	require.False(t, p.call(``).IsError)
	require.Equal(t, 100, (*p.got).Limit)
	m := recorder[map[string]any](t, mcpkit.Def{})
	require.False(t, m.call(`{"Any":{"x":[1]}}`).IsError)
	require.Equal(t, map[string]any{"Any": map[string]any{"x": []any{1.0}}}, *m.got)
	require.True(t, m.call(`{"a":1,"a":2}`).IsError)
}

func TestConcurrentCalls(t *testing.T) {
	tool, err := mcpkit.NewTool(mcpkit.Def{Name: "t", Output: counts{}}, func(ctx context.Context, a searchArgs) (*mcpkit.Result, error) {
		mcpkit.Notef(ctx, "%s", a.Pattern)
		return &mcpkit.Result{Text: a.Pattern, Meta: counts{Count: len(a.Pattern)}}, nil
	})
	require.NoError(t, err)
	var wg sync.WaitGroup
	for _, pattern := range []string{"a", "bb", "ccc", "dddd"} {
		wg.Go(func() {
			args := json.RawMessage(`{"pattern":"` + pattern + `","limit":"5","tree":{"name":"x"}}`)
			for range 100 {
				res := tool.Call(context.Background(), args)
				if want := "note: /limit: \"5\" taken as the number 5\n" + pattern + "\nnote: " + pattern; res.Text != want {
					t.Errorf("got %q, want %q", res.Text, want)
					return
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkNewTool(b *testing.B) {
	for b.Loop() {
		if _, err := mcpkit.NewTool(mcpkit.Def{Name: "t"}, nothing[searchArgs]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCall(b *testing.B) {
	tool := makeOne[searchArgs](b)
	args := json.RawMessage(`{"pattern":"func main","path":"src","limit":50,"globs":["*.go","*.md"],"-i":true}`)
	for b.Loop() {
		if res := tool.Call(context.Background(), args); res.IsError {
			b.Fatal(res.Text)
		}
	}
}

// The definition marks a tool whose calls must not wait for other calls.
func TestControl(t *testing.T) {
	control, err := mcpkit.NewTool(mcpkit.Def{Name: "kill", Control: true}, nothing[page])
	require.NoError(t, err)
	require.Contains(t, string(control.Definition()), `"control":true`)
}
