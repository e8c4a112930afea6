package catalog_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
)

// A client shows a resource as a user interface by its scheme, and finds it by
// what the tool's _meta says, in any of the forms that are in use.
func TestClashingUserInterfacesKeepTheirScheme(t *testing.T) {
	server := func(name string) *source {
		return with(name, map[call.ListKind][]string{
			call.Resources: {`{"uri":"ui://widget/x","name":"x"}`, `{"uri":"ui://only/` + name + `","name":"only"}`},
			call.Templates: {`{"uriTemplate":"ui://item/{id}","name":"i"}`},
		},
			`{"_meta":{"ui/resourceUri":"ui://widget/x","n":1.50},"name":"flat","inputSchema":{"type":"object"}}`,
			`{"name":"nested","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui:\/\/widget\/x","visibility":["model"]}}}`,
			`{"name":"template","inputSchema":{"type":"object"},"_meta":{"openai/outputTemplate":"ui://widget/x","list":["ui://only/`+name+`","ui://widget/x"]}}`,
			`{"name":"text","description":"see ui://widget/x","inputSchema":{"type":"object","default":"ui://widget/x"}}`,
		)
	}
	c := open(t, nil, catalog.SourceConfig{Source: server("one")}, catalog.SourceConfig{Source: server("t/2")})
	v := c.View()
	const own = "ui://toolroom/t%2F2/"
	require.Equal(t, `{"resources":[{"uri":"ui://widget/x","name":"x"},{"uri":"ui://only/one","name":"only"},{"uri":"`+own+`widget/x","name":"x"},{"uri":"ui://only/t/2","name":"only"}]}`,
		string(v.List(t.Context(), call.Resources, false)))
	require.Equal(t, `{"resourceTemplates":[{"uriTemplate":"ui://item/{id}","name":"i"},{"uriTemplate":"`+own+`item/{id}","name":"i"}]}`,
		string(v.List(t.Context(), call.Templates, false)))

	definition := func(name string) string {
		tool, ok := v.Lookup(t.Context(), name)
		require.True(t, ok, name)
		item := tool.Definition
		require.Contains(t, string(v.List(t.Context(), call.Tools, true)), string(item), "as it is listed")
		return string(item)
	}
	require.Equal(t, `{"_meta":{"ui/resourceUri":"ui://widget/x","n":1.50},"name":"one__flat","inputSchema":{"type":"object"}}`, definition("one__flat"))
	two := "t_2__flat" + suffix(t, v, "flat")
	require.Equal(t, `{"_meta":{"ui/resourceUri":"`+own+`widget/x","n":1.50},"name":"`+two+`","inputSchema":{"type":"object"}}`, definition(two))
	require.Contains(t, definition("t_2__nested"+suffix(t, v, "nested")), `"_meta":{"ui":{"resourceUri":"`+own+`widget/x","visibility":["model"]}}`)
	require.Contains(t, definition("t_2__template"+suffix(t, v, "template")), `{"openai/outputTemplate":"`+own+`widget/x","list":["ui://only/t/2","`+own+`widget/x"]}`)
	require.NotContains(t, definition("t_2__text"+suffix(t, v, "text")), own, "only _meta refers to resources")

	for uri, want := range map[string][2]string{
		"ui://widget/x":                {"one", "ui://widget/x"},
		own + "widget/x":               {"t/2", "ui://widget/x"},
		own + "item/7":                 {"t/2", "ui://item/7"},
		"ui://item/7":                  {"one", "ui://item/7"},
		"ui://only/t/2":                {"t/2", "ui://only/t/2"},
		"ui://toolroom/one/only/one":   {"one", "ui://only/one"},
		"ui://toolroom/nobody/widgets": {"one", "ui://toolroom/nobody/widgets"},
	} {
		server, original, ok := v.Locate(t.Context(), call.Resources, uri)
		require.True(t, ok, uri)
		require.Equal(t, want, [2]string{server, original}, uri)
	}
}

// A resource that no server lists belongs to the first server whose tool
// refers to it.
func TestAUserInterfaceThatIsNotListed(t *testing.T) {
	tool := `{"name":"a","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://w"}}}`
	c := open(t, nil, catalog.SourceConfig{Source: with("zero", nil)}, catalog.SourceConfig{Source: with("one", nil, tool)}, catalog.SourceConfig{Source: with("two", nil, tool)})
	v := c.View()
	require.Contains(t, string(v.List(t.Context(), call.Tools, false)), `"name":"two__a","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://toolroom/two/w"}}`)
	for uri, server := range map[string]string{"ui://w": "one", "ui://toolroom/two/w": "two"} {
		of, original, ok := v.Locate(t.Context(), call.Resources, uri)
		require.True(t, ok, uri)
		require.Equal(t, [2]string{server, "ui://w"}, [2]string{of, original})
	}
}

// suffix returns the digits that end the name of the tool, as the server's name
// has a slash.
func suffix(t *testing.T, v *catalog.View, tool string) string {
	name := catalog.ServedName("t/2", tool, false)
	require.Contains(t, name, "t_2__"+tool)
	_, ok := v.Lookup(t.Context(), name)
	require.True(t, ok)
	return name[len("t_2__"+tool):]
}
