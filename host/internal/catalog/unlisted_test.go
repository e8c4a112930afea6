package catalog_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

var errDown = errors.New("it is down")

// serversOf returns the servers that an unlisted tool can belong to, in order.
func serversOf(t *testing.T, tool *call.Tool, ok bool) (servers []string) {
	t.Helper()
	if !ok {
		return nil
	}
	require.NotNil(t, tool.Unlisted)
	servers = []string{tool.Server}
	for _, other := range tool.Unlisted.Others {
		require.Equal(t, tool.Name, other.Name)
		servers = append(servers, other.Server)
	}
	return servers
}

func TestUnlistedToolsByName(t *testing.T) {
	text := func(s string) *string { return &s }
	long := strings.Repeat("t", 70)
	for name, c := range map[string]struct {
		called  string
		entries []catalog.SourceConfig
		servers []string
	}{
		"prefix":                       {"s__a", []catalog.SourceConfig{{}}, []string{"s"}},
		"no prefix in the name":        {"a", []catalog.SourceConfig{{}}, nil},
		"only the prefix":              {"s__", []catalog.SourceConfig{{}}, nil},
		"another server":               {"z__a", []catalog.SourceConfig{{}}, nil},
		"configured prefix":            {"my_a", []catalog.SourceConfig{{Prefix: text("my_")}}, []string{"s"}},
		"name without that prefix":     {"s__a", []catalog.SourceConfig{{Prefix: text("my_")}}, nil},
		"no prefix":                    {"a", []catalog.SourceConfig{{Prefix: text("")}}, []string{"s"}},
		"prefix of a listed server":    {"listed__nothing", []catalog.SourceConfig{{Prefix: text("")}}, nil},
		"renamed":                      {"other", []catalog.SourceConfig{{Filter: catalog.Filter{Rename: map[string]string{"a": "other"}}}}, []string{"s"}},
		"name before it was renamed":   {"s__a", []catalog.SourceConfig{{Filter: catalog.Filter{Rename: map[string]string{"a": "other"}}}}, nil},
		"blocked":                      {"s__a", []catalog.SourceConfig{{Filter: catalog.Filter{Block: []string{"a"}}}}, nil},
		"blocked by its served name":   {"s__a", []catalog.SourceConfig{{Filter: catalog.Filter{Block: []string{"s__*"}}}}, nil},
		"allowed":                      {"s__a", []catalog.SourceConfig{{Filter: catalog.Filter{Allow: []string{"a"}}}}, []string{"s"}},
		"not allowed":                  {"s__b", []catalog.SourceConfig{{Filter: catalog.Filter{Allow: []string{"a"}}}}, nil},
		"blocked after it was renamed": {"other", []catalog.SourceConfig{{Filter: catalog.Filter{Rename: map[string]string{"a": "other"}, Block: []string{"a"}}}}, nil},
		"long":                         {catalog.ServedName("s", long, false), []catalog.SourceConfig{{}}, []string{"s"}},
		"long, perhaps allowed":        {catalog.ServedName("s", long, false), []catalog.SourceConfig{{Filter: catalog.Filter{Allow: []string{long}}}}, []string{"s"}},
		"other characters":             {catalog.ServedName("s", "a.b", false), []catalog.SourceConfig{{}}, []string{"s"}},
		"bundled":                      {"s", []catalog.SourceConfig{{Plain: true}}, []string{"s"}},
		"name like that of a bundled":  {"s_more", []catalog.SourceConfig{{Plain: true}}, nil},
		"longer server name": {catalog.ServedName("s__b", "c", false), []catalog.SourceConfig{{}, {Source: &source{name: "s__b", err: errDown}}},
			[]string{"s__b", "s"}},
		"shorter server name": {"s__b__c", []catalog.SourceConfig{{}, {Source: &source{name: "s__b", err: errDown}}}, []string{"s"}},
		"longer server name, blocked": {catalog.ServedName("s__b", "c", false), []catalog.SourceConfig{{}, {Source: &source{name: "s__b", err: errDown}, Filter: catalog.Filter{Block: []string{"c"}}}},
			[]string{"s"}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.entries[0].Source == nil {
				c.entries[0].Source = &source{name: "s", err: errDown}
			}
			all := open(t, nil, append(c.entries, catalog.SourceConfig{Source: &source{name: "listed", tools: nameMember("a")}})...)
			for range 2 { // while the lists are new, and afterwards
				tool, ok := all.View().Lookup(t.Context(), c.called)
				require.Equal(t, c.servers, serversOf(t, tool, ok))
				_, ok = all.Lookup(t.Context(), c.called)
				require.False(t, ok, "it is not known")
			}
			require.NotContains(t, string(all.View().List(t.Context(), call.Tools, false)), `"`+c.called+`"`)
		})
	}
}

func TestUnlistedToolsOfAProfile(t *testing.T) {
	for name, c := range map[string]struct {
		profile catalog.Profile
		shown   bool
	}{
		"all":           {catalog.Profile{}, true},
		"its server":    {catalog.Profile{Servers: []string{"s"}}, true},
		"other servers": {catalog.Profile{Servers: []string{"listed"}}, false},
		"allowed":       {catalog.Profile{Allow: []string{"s__*"}}, true},
		"not allowed":   {catalog.Profile{Allow: []string{"s__b"}}, false},
		"blocked":       {catalog.Profile{Block: []string{"s__a"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &source{name: "s", err: errDown, others: map[call.ListKind][]string{}}
			all := open(t, nil, catalog.SourceConfig{Source: s}, catalog.SourceConfig{Source: &source{name: "listed", tools: nameMember("a")}})
			v := all.Profile(c.profile)
			tool, ok := v.Lookup(t.Context(), "s__a")
			require.Equal(t, c.shown, ok)
			if ok {
				require.Equal(t, []string{"s"}, serversOf(t, tool, ok))
			}
		})
	}
}

func TestUnlistedToolIsFoundWhenItsServerWasListed(t *testing.T) {
	s := &source{name: "s", err: errDown}
	c := open(t, nil, catalog.SourceConfig{Source: s, Filter: catalog.Filter{Block: []string{"hidden.tool"}}})
	tool, ok := c.View().Lookup(t.Context(), "s__a")
	require.True(t, ok)
	require.ErrorIs(t, tool.Unlisted.Err, errDown, "the list was requested for this call")
	_, err := tool.Unlisted.Find(t.Context())
	require.True(t, toolerr.Is(err, toolerr.ToolNotFound), err)
	require.False(t, c.HasListed("s"))

	hidden := catalog.ServedName("s", "hidden.tool", false)
	blocked, ok := c.View().Lookup(t.Context(), hidden)
	require.True(t, ok, "the name does not tell that it is blocked")
	require.NoError(t, blocked.Unlisted.Err, "the list was requested before")
	byTarget, ok := c.UnlistedTool("s", "a")
	require.True(t, ok)
	require.Equal(t, "s__a", byTarget.Name)
	_, ok = c.UnlistedTool("s", "hidden.tool")
	require.False(t, ok)

	s.set(nil, nameMember("a", "hidden.tool")...)
	c.Relist(t.Context(), "s")
	require.True(t, c.HasListed("s"))
	for _, one := range []*call.Tool{tool, byTarget} {
		listed, err := one.Unlisted.Find(t.Context())
		require.NoError(t, err)
		require.Equal(t, "a", listed.Original)
		require.Nil(t, listed.Unlisted)
	}
	_, err = blocked.Unlisted.Find(t.Context())
	require.True(t, toolerr.Is(err, toolerr.ToolNotFound), err)

	s.set(errDown)
	c.Relist(t.Context(), "s")
	_, ok = c.View().Lookup(t.Context(), "s__other")
	require.False(t, ok, "the server has listed its tools before")
	tool, ok = c.View().Lookup(t.Context(), "s__a")
	require.True(t, ok)
	require.Nil(t, tool.Unlisted)
}

func TestUnlistedToolDoesNotWaitForOtherServers(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	slow := &source{name: "slow", gate: hang}
	c := open(t, nil, catalog.SourceConfig{Source: slow}, catalog.SourceConfig{Source: &source{name: "s", err: errDown}})
	tool, ok := c.View().Lookup(t.Context(), "s__a")
	require.Equal(t, []string{"s"}, serversOf(t, tool, ok))
	require.Zero(t, slow.count())
}

func TestUnlistedToolGivesWayToAToolThatIsFoundLater(t *testing.T) {
	s := &source{name: "s", err: errDown}
	c := open(t, nil, catalog.SourceConfig{Source: s})
	c.OnMissing(func(_ context.Context, name string) bool {
		c.Update([]catalog.SourceConfig{{Source: s}, {Source: &source{name: "s__a", tools: nameMember("s__a")}, Plain: true}})
		return name == "s__a"
	})
	tool, ok := c.View().Lookup(t.Context(), "s__a")
	require.True(t, ok)
	require.Nil(t, tool.Unlisted)
}

func TestPromptsOfServersThatAreNotListed(t *testing.T) {
	s := &source{name: "s", err: errDown}
	c := open(t, nil, catalog.SourceConfig{Source: s}, catalog.SourceConfig{Source: &source{name: "listed"}})
	server, original, ok := c.View().Locate(t.Context(), call.Prompts, "s__p")
	require.Equal(t, []any{"s", "p", true}, []any{server, original, ok})
	for _, name := range []string{"p", "listed__p", "z__p"} {
		_, _, ok = c.View().Locate(t.Context(), call.Prompts, name)
		require.False(t, ok, name)
	}
	_, _, ok = c.Profile(catalog.Profile{Servers: []string{"listed"}}).Locate(t.Context(), call.Prompts, "s__p")
	require.False(t, ok)
	s.set(nil)
	c.Refresh("s", call.Prompts)
	require.Eventually(t, func() bool {
		_, _, ok = c.View().Locate(t.Context(), call.Prompts, "s__p")
		return !ok
	}, time.Minute, time.Millisecond)
}
