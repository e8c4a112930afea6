package catalog_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/host/internal/store/memory"
)

func TestPinsAreKeptInAStore(t *testing.T) {
	s := memory.New(memory.Config{})
	defer s.Close()
	pins := catalog.NewPinStore(s.Keys)
	for i := range 2500 { // more than a page
		require.NoError(t, pins.Pin(t.Context(), "a", fmt.Sprint("tool ", i), json.RawMessage(`{"d":"<&>"}`)))
	}
	odd := strings.Repeat("x", 300) + "\n*/"
	require.NoError(t, pins.Pin(t.Context(), "b/\n", odd, json.RawMessage(`{}`)))
	known, err := pins.Pinned(t.Context(), "a")
	require.NoError(t, err)
	require.Len(t, known, 2500)
	require.Equal(t, `{"d":"<&>"}`, string(known["tool 7"]))
	known, err = pins.Pinned(t.Context(), "b/\n")
	require.NoError(t, err)
	require.Equal(t, map[string]json.RawMessage{odd: json.RawMessage(`{}`)}, known)

	large := strings.Repeat("y", 2<<20)
	for i, definition := range []string{`{"name":"t","d":"` + large + `"}`, `{"d":"` + large + `","name":"t"}`, `{"name":"t","d":"` + large + `!"}`} {
		c := open(t, nil, catalog.SourceConfig{Source: with("large", nil, definition)})
		c.SetPins(catalog.PinsEnforce, pins)
		require.Len(t, c.Snapshot(t.Context()).Tools(), min(1, 2-i))
		c.WaitForPinChecks(t.Context()) // the first is pinned, which the next are compared with
	}
}
