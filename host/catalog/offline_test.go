package catalog_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/catalog"
)

// fragile is a source that says when it is offline.
type fragile struct {
	*source
	offline atomic.Bool
}

func (f *fragile) Offline() bool { return f.offline.Load() }

func TestWhatIsOfflineIsNotListedAndStillFound(t *testing.T) {
	changed := make(chan struct{}, 10)
	frail := &fragile{source: &source{name: "frail", tools: named("a")}}
	c := open(t, func() { changed <- struct{}{} }, catalog.Entry{Source: frail}, catalog.Entry{Source: &source{name: "firm", tools: named("a")}})
	require.Len(t, c.Snapshot(t.Context()).Tools(), 2)

	frail.set(errors.New("it is down"))
	frail.offline.Store(true)
	c.Refresh("frail")
	<-changed
	s := c.Snapshot(t.Context())
	require.Equal(t, `{"tools":[{"name":"firm__a","inputSchema":{"type":"object"}}]}`, string(s.List(false)))
	require.Len(t, s.Tools(), 1)
	tool, ok := c.Lookup(t.Context(), "frail__a")
	require.True(t, ok, "calling it starts the server again")
	require.Equal(t, "frail", tool.Server)

	frail.offline.Store(false)
	frail.set(nil, named("a")...)
	c.Refresh("frail")
	<-changed
	require.Equal(t, `{"tools":[{"name":"frail__a","inputSchema":{"type":"object"}},{"name":"firm__a","inputSchema":{"type":"object"}}]}`, string(c.Snapshot(t.Context()).List(false)))
}

func TestServersThatHangDoNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	defer close(hang)
	var entries []catalog.Entry
	var slow []*source
	for i := range 5 {
		slow = append(slow, &source{name: fmt.Sprint("slow", i), gate: hang})
		entries = append(entries, catalog.Entry{Source: slow[i]})
	}
	c := open(t, nil, append(entries, catalog.Entry{Source: &source{name: "quick", tools: named("a")}})...)
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
