package catalog_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
)

// listing is a server with one list.
type listing struct {
	kind call.ListKind
	raw  []string
}

func (listing) Name() string { return "s" }
func (l listing) List(_ context.Context, kind call.ListKind) (raw []json.RawMessage, err error) {
	for _, text := range l.raw {
		if kind == l.kind {
			raw = append(raw, json.RawMessage(text))
		}
	}
	return raw, nil
}

// A client made with the official TypeScript SDK has no list at all of one in
// which an entry is not as it wants it.
func TestOneEntryThatClientsCannotReadCostsNoOther(t *testing.T) {
	const object = `"inputSchema":{"type":"object"}`
	tool := func(members string) string { return `{"name":"t",` + members + `}` }
	input := func(schema string) string { return tool(`"inputSchema":` + schema) }
	output := func(schema string) string { return tool(object + `,"outputSchema":` + schema) }
	resource := func(members string) string { return `{"uri":"x:1",` + members + `}` }
	for _, c := range []struct {
		kind            call.ListKind
		sent, want, why string
	}{
		// As clients want it, it stays the very bytes.
		{call.Tools, `{ "name" : "t", "inputSchema":{"type":"object","properties":{"a":{"type":"strange"}},"x":null}, "y":null, "icons":[{"src":"x:","sizes":["any"],"theme":"dark"}]}`, "", ""},
		{call.Tools, output(`{"type":"object","$defs":{"a/b":{"type":["string","null"]}},"properties":{"$ref":{"$ref":"#/$defs/a~1b"},"type":{"enum":[{"type":"x"}]},"again":{"$ref":"#"}},"allOf":[{"$ref":"#/properties/type"}]}`), "", ""},
		{call.Tools, output(`{"type":"object","$defs":{"a":{"$id":"b"}},"properties":{"x":{"$ref":"b"}}}`), "", ""},
		{call.Resources, resource(`"name":"n","size":1,"annotations":{"audience":["user"],"priority":1,"lastModified":"2026-01-02T03:04:05.6+01:00"}`), "", ""},
		{call.Prompts, `{"name":"t","arguments":[{"name":"a","required":true}]}`, "", ""},

		// null says nothing.
		{call.Tools, tool(`"title":null,"description":null,"inputSchema":{"type":"object","properties":null,"required":null},"outputSchema":null,"annotations":{"readOnlyHint":null,"title":"x"},"icons":null,"execution":null,"_meta":null`),
			tool(`"inputSchema":{"type":"object"},"annotations":{"title":"x"}`), ""},
		{call.Tools, `{"name":"t"}`, tool(object), ""},
		{call.Tools, input(`null`), tool(object), ""},
		{call.Tools, input(`{}`), tool(object), ""},
		{call.Tools, input(`{"properties":{"a":{}},"type":null}`), input(`{"properties":{"a":{}},"type":"object"}`), ""},
		{call.Tools, input(`{"type":"object","properties":{"a":true,"b":false}}`), input(`{"type":"object","properties":{"a":{},"b":{"not":{}}}}`), ""},
		{call.Resources, `{"uri":"x:1","description":null}`, `{"uri":"x:1","name":"x:1"}`, ""},
		{call.Templates, `{"uriTemplate":"x:{a}","name":null}`, `{"uriTemplate":"x:{a}","name":"x:{a}"}`, ""},
		{call.Prompts, `{"name":"t","arguments":[{"name":"a","description":null}]}`, `{"name":"t","arguments":[{"name":"a"}]}`, ""},

		// What is wrong is lost, and told.
		{call.Tools, input(`true`), tool(object), "inputSchema"},
		{call.Tools, input(`["object"]`), tool(object), "inputSchema"},
		{call.Tools, input(`{"type":["object"],"required":true}`), tool(object), "inputSchema"},
		{call.Tools, input(`{"type":"object","properties":[],"required":["a",1]}`), input(`{"type":"object","required":["a"]}`), "inputSchema"},
		{call.Tools, input(`{"type":"object","properties":{"a":"text"}}`), input(`{"type":"object","properties":{"a":{}}}`), "inputSchema"},
		{call.Tools, output(`true`), tool(object), "outputSchema"},
		{call.Tools, output(`{"type":"object","properties":{"a":{"type":"text"}}}`), tool(object), "outputSchema"},
		{call.Tools, output(`{"type":"object","properties":{"a":{"items":[{"$ref":"#/components/A"}]}}}`), tool(object), "outputSchema"},
		{call.Tools, output(`{"type":"object","$ref":"https://a.example/b"}`), tool(object), "outputSchema"},
		{call.Tools, output(`{"type":"object","anyOf":[{"$ref":"#/type/x"}]}`), tool(object), "outputSchema"},
		{call.Tools, tool(object + `,"title":5,"description":["a"],"annotations":{"readOnlyHint":"yes"},"icons":[{"src":"x:","sizes":"any"},{}],"execution":{"taskSupport":"some"},"_meta":[]`),
			tool(object + `,"annotations":{},"icons":[{"src":"x:"}],"execution":{}`), "title, description, annotations, icons, execution, _meta"},
		{call.Resources, resource(`"name":"n","mimeType":1,"size":"big","annotations":{"audience":["nobody","user"],"priority":5,"lastModified":"2026-01-02T03:04:05"}`),
			resource(`"name":"n","annotations":{"audience":["user"]}`), "mimeType, size, annotations"},
		{call.Resources, resource(`"name":1,"size":1e999,"annotations":7`), resource(`"name":"x:1"`), "name, size, annotations"},
		{call.Prompts, `{"name":"t","arguments":{}}`, `{"name":"t"}`, "arguments"},
		{call.Prompts, `{"name":"t","arguments":[{"required":true},{"name":"b","required":"yes"}]}`, `{"name":"t","arguments":[{"name":"b"}]}`, "arguments"},
	} {
		cat := catalog.New([]catalog.SourceConfig{{Source: listing{c.kind, []string{c.sent, c.sent[:1]}}, Plain: true}}, nil, nil)
		cat.View().List(t.Context(), c.kind, false)
		items := cat.KnownSnapshot().Items(c.kind)
		require.Len(t, items, 1, c.sent)
		if c.want == "" {
			c.want = c.sent
		}
		require.Equal(t, c.want, string(items[0].Definition), c.sent)
		faults := cat.Errors()
		require.NotEmpty(t, faults)
		if c.why == "" {
			require.Len(t, faults, 1, c.sent)
		} else {
			require.Len(t, faults, 2, c.sent)
			require.ErrorContains(t, faults[0], "clients cannot read, "+c.why+";")
		}
		cat.Close()
	}
}

// Results of the modern version may be anything, those of the legacy ones objects.
func TestAResultThatIsNoObjectIsForModernClients(t *testing.T) {
	const tool = `{"name":"t","inputSchema":{"type":"object"},"outputSchema":`
	raw := []string{tool + `{"type":"array"}}`, tool + `{"type":"object"},"x":1}`, tool + `{"anyOf":[{}]},"x":1}`}
	for i, name := range []string{"a", "b", "c"} {
		raw[i] = strings.Replace(raw[i], `"t"`, `"`+name+`"`, 1)
	}
	cat := catalog.New([]catalog.SourceConfig{{Source: listing{call.Tools, raw}, Plain: true}}, nil, nil)
	defer cat.Close()
	view := cat.View()
	require.Contains(t, string(view.List(t.Context(), call.Tools, true)), `{"tools":[`+strings.Join(raw, ",")+`]`)
	require.Equal(t, `{"tools":[{"name":"a","inputSchema":{"type":"object"}},`+raw[1]+`,{"name":"c","inputSchema":{"type":"object"},"x":1}]}`,
		string(view.List(t.Context(), call.Tools, false)))
	require.Empty(t, cat.Errors())
}
