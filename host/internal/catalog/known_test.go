package catalog_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
)

// known is a source whose tool is there from the start.
type known struct{ name string }

func (k known) Name() string { return k.name }

func (k known) List(context.Context, call.ListKind) ([]json.RawMessage, error) {
	return nil, errors.New("it was asked")
}

func (k known) Known(kind call.ListKind) []json.RawMessage {
	if kind != call.Tools {
		return nil
	}
	return []json.RawMessage{json.RawMessage(`{"name":"` + k.name + `"}`)}
}

func TestWhatIsKnownIsNotAskedFor(t *testing.T) {
	var changes []call.ListKind
	c := catalog.New([]catalog.SourceConfig{{Source: known{"a"}, Plain: true}}, nil, func(ch catalog.Change) { changes = append(changes, ch.Kind) })
	defer c.Close()
	require.Len(t, c.KnownSnapshot().Tools(), 1)
	tool, ok := c.Lookup(t.Context(), "a")
	require.True(t, ok)
	require.Equal(t, "a", tool.Server)
	require.Len(t, c.Snapshot(t.Context()).Tools(), 1)

	c.Update([]catalog.SourceConfig{{Source: known{"a"}, Plain: true}, {Source: known{"b"}, Plain: true}})
	require.Len(t, c.KnownSnapshot().Tools(), 2)
	require.Equal(t, []call.ListKind{call.Tools}, changes)
	again, ok := c.Lookup(t.Context(), "a")
	require.True(t, ok)
	require.Same(t, tool, again, "what stays is the same")
	c.Update([]catalog.SourceConfig{{Source: known{"b"}, Plain: true}})
	_, ok = c.Lookup(t.Context(), "a")
	require.False(t, ok)
	require.Empty(t, c.Errors())
}

func TestAMissingToolIsLookedForOnce(t *testing.T) {
	c := catalog.New(nil, nil, nil)
	defer c.Close()
	asked := 0
	c.OnMissing(func(_ context.Context, name string) bool {
		asked++
		if name != "late" {
			return false
		}
		c.Update([]catalog.SourceConfig{{Source: known{"late"}, Plain: true}})
		return true
	})
	_, ok := c.Lookup(t.Context(), "late")
	require.True(t, ok)
	_, ok = c.Lookup(t.Context(), "late")
	require.True(t, ok)
	_, ok = c.Lookup(t.Context(), "never")
	require.False(t, ok)
	require.Equal(t, 2, asked)
}
