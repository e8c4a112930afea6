package mcpkit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// shop is a server's session; a program would use a host's (app.Session).
type shop struct {
	list   []string
	answer func(name string, args json.RawMessage) (string, error)
}

func (s shop) ListTools(context.Context) (all []json.RawMessage, err error) {
	for _, d := range s.list {
		all = append(all, json.RawMessage(d))
	}
	return all, nil
}

func (s shop) CallTool(_ context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	text, err := s.answer(name, args)
	return json.RawMessage(text), err
}

// counted is a decorator: it embeds a session and overrides one method.
type counted struct {
	mcpkit.Session
	calls *int
}

func (c counted) CallTool(ctx context.Context, name string, args json.RawMessage) (json.RawMessage, error) {
	*c.calls++
	return c.Session.CallTool(ctx, name, args)
}

// Imports a server's tools: one under another name and description, the other
// omitted, with the session decorated.
func ExampleImport() {
	calls := 0
	session := counted{shop{
		list: []string{`{"name":"lookup","description":"?","inputSchema":{"type":"object"}}`, `{"name":"drop_everything","inputSchema":{"type":"object"}}`},
		answer: func(name string, args json.RawMessage) (string, error) {
			return fmt.Sprintf(`{"content":[{"type":"text","text":%q}]}`, name+string(args)), nil
		},
	}, &calls}
	tools, err := mcpkit.Import(context.Background(), session, func(d *mcpkit.ToolOverride) bool {
		if d.Name == "lookup" {
			d.Name, d.Description, d.Hints = "find_item", "Finds an item of the shop.", mcpkit.Hints{ReadOnly: true}
		}
		return d.Hints.ReadOnly
	})
	if err != nil {
		panic(err)
	}
	for _, t := range tools {
		fmt.Println(string(t.Definition()))
		fmt.Println(t.Call(context.Background(), json.RawMessage(`{"id":7}`)).Text, calls)
	}
	// Output:
	// {"name":"find_item","description":"Finds an item of the shop.","inputSchema":{"type":"object"},"annotations":{"destructiveHint":false,"idempotentHint":false,"openWorldHint":false,"readOnlyHint":true,"title":""}}
	// lookup{"id":7} 1
}

func TestWhatAnImportedToolAnswers(t *testing.T) {
	offline := toolerr.New(toolerr.ServerOffline, "it is gone")
	var said string
	var fault error
	s := shop{list: []string{`{"name":"a","inputSchema":{"type":"object"},"_meta":{"toolroom/call":{"timeoutMs":1500,"concurrency":2,"control":true},"x":1}}`},
		answer: func(string, json.RawMessage) (string, error) { return said, fault }}
	tools, err := mcpkit.Import(t.Context(), s, nil)
	require.NoError(t, err)
	require.Equal(t, s.list[0], string(tools[0].Definition()), "as it came")
	def := tools[0].Def()
	require.Equal(t, 1500*time.Millisecond, def.Timeout)
	require.Equal(t, mcpkit.Hints{Destructive: true, OpenWorld: true}, def.Hints, "the worst case")
	for _, c := range []struct {
		result, want, text string
		code               toolerr.Code
	}{
		{`{"content":[{"type":"text","text":"a"},{"type":"image","data":"","mimeType":"x"},{"type":"text","text":"b"}],"structuredContent":{"n":1.0}}`, "", "a\nb", ""},
		{`{"content":[{"type":"text","text":"no"}],"isError":true,"_meta":{"toolroom/code":"NOT_FOUND"}}`, "", "no", toolerr.NotFound},
		{`{"content":[{"type":"text","text":"no"}],"isError":true}`, "", "no", toolerr.ExecutionError},
		{`{"resultType":"complete","content":[],"_meta":{}}`, `{"content":[]}`, "", ""},
		{`{}`, `{"content":[]}`, "", ""},
	} {
		said = c.result
		res := tools[0].Call(t.Context(), nil)
		want := c.want
		if want == "" {
			want = c.result
		}
		require.Equal(t, want, string(res.JSON()))
		require.Equal(t, c.text, res.Text)
		require.Equal(t, c.code, res.Code)
		require.Equal(t, c.code != "", res.IsError)
	}
	for _, said = range []string{``, `[]`, `{"content":1}`} {
		require.Equal(t, toolerr.ResultInvalid, tools[0].Call(t.Context(), nil).Code, said)
	}
	said, fault = "", offline
	require.ErrorIs(t, tools[0].Call(t.Context(), nil).Err, offline)
	said, fault = `{"content":[{"type":"text","text":"`+strings.Repeat("x", 2<<20)+`"}]}`, nil
	require.LessOrEqual(t, len(tools[0].Call(t.Context(), nil).JSON()), mcpkit.MaxMessage)
}

func TestImportRefuses(t *testing.T) {
	for want, list := range map[string][]string{
		"malformed":         {`[]`},
		"clients refuse":    {`{"name":"a b"}`},
		"both read-only":    {`{"name":"a","annotations":{"readOnlyHint":true}}`},
		"cannot be sent as": nil,
	} {
		change := func(d *mcpkit.ToolOverride) bool { d.Hints.Destructive = true; return true }
		if list == nil {
			list = []string{`{"name":"a"}`}
			change = func(d *mcpkit.ToolOverride) bool { d.Input = json.RawMessage(`{`); return true }
			want = "its inputSchema"
		}
		_, err := mcpkit.Import(t.Context(), shop{list: list}, change)
		require.ErrorContains(t, err, want)
	}
	_, err := mcpkit.Import(t.Context(), deaf{}, nil)
	require.ErrorIs(t, err, errDeaf)
}

var errDeaf = errors.New("deaf")

type deaf struct{ mcpkit.Session }

func (deaf) ListTools(context.Context) ([]json.RawMessage, error) { return nil, errDeaf }

// Imported tools are served like any other, in both eras.
func TestImportedToolsAreServed(t *testing.T) {
	tools, err := mcpkit.Import(t.Context(), shop{
		list: []string{`{"name":"a","inputSchema":{"type":"object"}}`},
		answer: func(_ string, args json.RawMessage) (string, error) {
			return `{"resultType":"complete","_meta":{"a":1,"io.modelcontextprotocol/serverInfo":{}},"structuredContent":` + string(args) + `}`, nil
		},
	}, nil)
	require.NoError(t, err)
	s := mcpkit.NewServer("shop", "Shop")
	require.NoError(t, s.Add(tools...))
	var out strings.Builder
	in := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"n":1.0}}}` + "\n" +
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`
	require.NoError(t, s.Serve(t.Context(), strings.NewReader(in), &out, wire.ServeOptions{}))
	require.Contains(t, out.String(), `{"jsonrpc":"2.0","id":1,"result":{"_meta":{"a":1},"structuredContent":{"n":1.0},"content":[]}}`)
	for line := range strings.Lines(out.String()) {
		require.NoError(t, json.Unmarshal([]byte(line), &struct{}{}))
		require.LessOrEqual(t, strings.Count(line, `"_meta"`), 1)
	}
}
