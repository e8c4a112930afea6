package catalog_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
)

// fragile is a source that says when it is offline.
type fragile struct {
	*source
	offline atomic.Bool
}

func (f *fragile) IsGivenUp() bool { return f.offline.Load() }

func TestWhatIsOfflineIsNotListedAndStillFound(t *testing.T) {
	changed := make(chan struct{}, 10)
	frail := &fragile{source: &source{name: "frail", tools: nameMember("a")}}
	c := open(t, func() { changed <- struct{}{} }, catalog.SourceConfig{Source: frail}, catalog.SourceConfig{Source: &source{name: "firm", tools: nameMember("a")}})
	require.Len(t, c.Snapshot(t.Context()).Tools(), 2)

	frail.set(errors.New("it is down"))
	frail.offline.Store(true)
	c.Refresh("frail")
	<-changed
	s := c.Snapshot(t.Context())
	require.Equal(t, `{"tools":[{"name":"firm__a","inputSchema":{"type":"object"}}]}`, string(s.ToolList(false)))
	require.Len(t, s.Tools(), 1)
	tool, ok := c.Lookup(t.Context(), "frail__a")
	require.True(t, ok, "calling it starts the server again")
	require.Equal(t, "frail", tool.Server)

	frail.offline.Store(false)
	frail.set(nil, nameMember("a")...)
	c.Refresh("frail")
	<-changed
	require.Equal(t, `{"tools":[{"name":"frail__a","inputSchema":{"type":"object"}},{"name":"firm__a","inputSchema":{"type":"object"}}]}`, string(c.Snapshot(t.Context()).ToolList(false)))
}

func TestServersThatHangDoNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	defer close(hang)
	var entries []catalog.SourceConfig
	var slow []*source
	for i := range 5 {
		slow = append(slow, &source{name: fmt.Sprint("slow", i), gate: hang})
		entries = append(entries, catalog.SourceConfig{Source: slow[i]})
	}
	c := open(t, nil, append(entries, catalog.SourceConfig{Source: &source{name: "quick", tools: nameMember("a")}})...)
	for i := range 5 {
		go c.Lookup(t.Context(), fmt.Sprintf("slow%d__a", i)) //nolint:errcheck // it never comes
	}
	require.Eventually(t, func() bool {
		asked := 0
		for _, s := range slow {
			asked += s.count()
		}
		return asked >= 4 // they hold all turns
	}, time.Minute, time.Millisecond)
	_, ok := c.Lookup(t.Context(), "quick__a")
	require.True(t, ok)
}

// Servers that have too much to list together cost the others nothing: clients would
// end the connection that brings such a list.
func TestWhatIsTooMuchTogetherIsNotListedAndStillFound(t *testing.T) {
	of := func(name string, bytes int) *source {
		s := &source{name: name, others: map[call.ListKind][]string{call.Prompts: {`{"name":"p"}`}}}
		for ; bytes > 0; bytes -= 1 << 20 {
			s.tools = append(s.tools, fmt.Sprintf(`{"name":"t%d","description":%q,"inputSchema":{"type":"object"}}`, bytes, strings.Repeat("d", min(bytes, 1<<20))))
		}
		return s
	}
	two := of("two", 7<<20)
	two.gate = make(chan struct{})
	c := open(t, nil, catalog.SourceConfig{Source: of("one", 6<<20)}, catalog.SourceConfig{Source: two}, catalog.SourceConfig{Source: of("small", 10)}, catalog.SourceConfig{Source: of("third", 2<<20)})
	v := c.View()
	_, ok := v.Lookup(t.Context(), "one__t1048576")
	require.True(t, ok)
	close(two.gate) // it is the last that is listed
	list := string(v.List(t.Context(), call.Tools, false))
	require.Less(t, len(list), 9<<20)
	for name, listed := range map[string]bool{"one__t": true, "two__t": false, "small__t": true, "third__t": true} {
		require.Equal(t, listed, strings.Contains(list, name), name)
	}
	_, ok = v.Lookup(t.Context(), "two__t1048576")
	require.True(t, ok)
	require.Len(t, c.Errors(), 1)
	require.ErrorContains(t, c.Errors()[0], "server two: its tools are served but not listed")
	require.Contains(t, string(v.List(t.Context(), call.Prompts, false)), "two__p")
}
