package catalog_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/host/internal/store/memory"
)

// told gathers the changes that a catalogue tells of.
type told struct {
	mu  sync.Mutex
	all []catalog.Change
}

func (c *told) add(ch catalog.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, ch)
}

func (c *told) take() (all []catalog.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all, c.all = c.all, nil
	return all
}

func TestEntriesAreReplaced(t *testing.T) {
	var changes told
	one, two := with("one", nil, nameMember("a", "b")...), with("two", nil, nameMember("c")...)
	c := catalog.New([]catalog.SourceConfig{{Source: one}, {Source: two}}, nil, changes.add)
	defer c.Close()
	listed := func() []string { return names(c.Snapshot(t.Context()).Items(call.Tools)) }
	eventually := func(want ...string) {
		t.Helper()
		require.Eventually(t, func() bool { return slices.Equal(want, listed()) }, time.Minute, time.Millisecond)
	}
	require.Equal(t, []string{"one__a", "one__b", "two__c"}, listed())

	// The same again: nobody is asked, nobody is told.
	c.Update([]catalog.SourceConfig{{Source: one}, {Source: two}})
	require.Equal(t, 2, one.count()+two.count())
	require.Empty(t, changes.take())

	// What may not be served any more is gone at once, without the server.
	one.set(errors.New("down"), nameMember("a", "b")...)
	c.Update([]catalog.SourceConfig{{Source: one, Filter: catalog.Filter{Block: []string{"b"}}}, {Source: two}})
	require.Equal(t, []string{"one__a", "two__c"}, listed())
	require.Len(t, changes.take(), 1)
	one.set(nil, nameMember("a", "b")...)

	// A profile that shows none of it is not concerned.
	aside, all := c.Profile(catalog.Profile{Name: "aside", Servers: []string{"two"}}), c.View()
	c.Update([]catalog.SourceConfig{{Source: two}})
	require.Equal(t, []string{"two__c"}, listed())
	gone := changes.take()
	require.Len(t, gone, 1)
	require.Equal(t, call.Tools, gone[0].Kind)
	require.False(t, gone[0].Affects(aside))
	require.True(t, gone[0].Affects(all))

	// One that is new is listed, since somebody has seen a list; one in the
	// place of another serves what that did until it has been listed.
	three, twoAgain := with("three", nil, nameMember("d")...), with("two", nil, nameMember("c", "e")...)
	twoAgain.gate = make(chan struct{})
	c.Update([]catalog.SourceConfig{{Source: three}, {Source: twoAgain}})
	require.Contains(t, listed(), "two__c")
	eventually("three__d", "two__c")
	close(twoAgain.gate)
	eventually("three__d", "two__c", "two__e")
	_, ok := c.Lookup(t.Context(), "one__a")
	require.False(t, ok)
}

func TestACallWaitsForTheServerThatReplacesOne(t *testing.T) {
	old, next := with("s", nil, nameMember("a")...), with("s", nil, nameMember("a", "b")...)
	old.gate, next.gate = make(chan struct{}), make(chan struct{})
	c := open(t, nil, catalog.SourceConfig{Source: old})
	found := make(chan bool)
	go func() {
		_, ok := c.Lookup(t.Context(), "s__b")
		found <- ok
	}()
	require.Eventually(t, func() bool { return old.count() == 1 }, time.Minute, time.Millisecond)
	c.Update([]catalog.SourceConfig{{Source: next}})
	close(old.gate)
	require.Eventually(t, func() bool { return next.count() == 1 }, time.Minute, time.Millisecond)
	close(next.gate)
	require.True(t, <-found)
}

// A definition that was approved elsewhere is served again; without a store
// nothing is withheld only where that was not asked for.
func TestPinsAreRechecked(t *testing.T) {
	keep := memory.New(memory.Config{})
	defer keep.Close()
	pins := catalog.NewPinStore(keep.Keys)
	require.NoError(t, pins.Pin(t.Context(), "s", "a", json.RawMessage(`{"name":"a"}`)))
	var told []string
	c := open(t, nil, catalog.SourceConfig{Source: with("s", nil, `{"name":"a","x":1}`, `{"name":"b"}`)}, catalog.SourceConfig{Source: with("ours", nil, `{"name":"a"}`), Plain: true})
	c.OnDrift(func(e *catalog.ChangedError) { told = append(told, e.Name) })
	c.SetPins(catalog.PinsEnforce, pins)
	require.Equal(t, []string{"s__b", "a"}, names(c.Snapshot(t.Context()).Items(call.Tools)))
	c.WaitForPinChecks(t.Context())
	require.Equal(t, []string{"s__a"}, told)
	c.RelistApproved(t.Context())
	require.Len(t, c.Changed(), 1)
	known, err := pins.Pinned(t.Context(), "ours")
	require.NoError(t, err)
	require.Empty(t, known, "bundled tools change with the host")

	require.NoError(t, pins.Pin(t.Context(), "s", "a", json.RawMessage(`{"name":"a","x":1}`)))
	c.RelistApproved(t.Context())
	require.Len(t, c.Changed(), 1, "who sees it later does not pin it again")
	require.NoError(t, pins.Repin(t.Context(), "s", "a", json.RawMessage(`{"name":"a","x":1}`)))
	c.RelistApproved(t.Context())
	require.Eventually(t, func() bool { return len(c.Snapshot(t.Context()).Tools()) == 3 }, time.Minute, time.Millisecond)
	require.Empty(t, c.Changed())

	require.NoError(t, keep.Close())
	for mode, want := range map[catalog.PinMode]int{catalog.PinsWarn: 1, catalog.PinsEnforce: 0} {
		c := open(t, nil, catalog.SourceConfig{Source: with("s", nil, `{"name":"a"}`)})
		c.SetPins(mode, broken{})
		require.Len(t, c.Snapshot(t.Context()).Tools(), want)
		c.WaitForPinChecks(t.Context())
		require.ErrorContains(t, c.Errors()[0], "cannot be compared with their first use: the disk is on fire")
	}
}

// broken is a store that does not work.
type broken struct{ catalog.PinStore }

func (broken) Pinned(context.Context, string) (map[string]json.RawMessage, error) {
	return nil, errors.New("the disk is on fire")
}

// A list that was asked for before definitions were to be withheld is not served
// as if they were not.
func TestWhatIsListedWhenPinsAreSetIsCompared(t *testing.T) {
	keep := memory.New(memory.Config{})
	defer keep.Close()
	pins := catalog.NewPinStore(keep.Keys)
	require.NoError(t, pins.Pin(t.Context(), "s", "a", json.RawMessage(`{"name":"a"}`)))
	s := with("s", nil, `{"name":"a","x":1}`, `{"name":"b"}`)
	s.gate = make(chan struct{})
	c := open(t, nil, catalog.SourceConfig{Source: s})
	c.StartListing("s")
	require.Eventually(t, func() bool { return s.count() == 1 }, time.Minute, time.Millisecond)
	c.SetPins(catalog.PinsEnforce, pins)
	close(s.gate)
	require.Equal(t, []string{"s__b"}, names(c.Snapshot(t.Context()).Items(call.Tools)))
}
