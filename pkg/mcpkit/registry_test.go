package mcpkit

import (
	"context"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func named(t testing.TB, name string, aliases ...string) *Tool {
	t.Helper()
	tool, err := NewTool(Def{Name: name, Aliases: aliases}, func(context.Context, struct{}) (*Result, error) { return nil, nil })
	require.NoError(t, err)
	return tool
}

func TestRegistryKeepsItsOrder(t *testing.T) {
	a, b, c := named(t, "a", "A", "x"), named(t, "b", "x", "c"), named(t, "c")
	r := newRegistry(a, b)
	r.Put(c)
	require.Equal(t, []string{"a", "b", "c"}, r.Names())
	require.Equal(t, 3, r.Len())

	second := named(t, "b")
	before := r.All()
	r.Put(second)
	require.Equal(t, []string{"a", "b", "c"}, r.Names(), "replaced in place")
	got, ok := r.ByName("b")
	require.True(t, ok)
	require.Same(t, second, got)
	require.Same(t, b, before[1], "what was handed out does not change")

	require.True(t, r.Remove("a"))
	require.False(t, r.Remove("a"))
	r.Put(a)
	require.Equal(t, []string{"b", "c", "a"}, r.Names())
}

func TestRegistryFindsAliases(t *testing.T) {
	r := newRegistry(named(t, "a", "A", "x"), named(t, "b", "x", "c"), named(t, "c"))
	for name, want := range map[string]string{"a": "a", "A": "a", "x": "a", "c": "c"} {
		got, ok := r.ByName(name)
		require.True(t, ok)
		require.Equal(t, want, got.Name(), name)
	}
	_, ok := r.ByName("B")
	require.False(t, ok)
}

func TestRegistryIsSafeForConcurrentUse(t *testing.T) {
	r := newRegistry(named(t, "a"))
	var wg sync.WaitGroup
	for i := range 8 {
		tool := named(t, "t"+strconv.Itoa(i))
		wg.Go(func() {
			for range 200 {
				r.Put(tool)
				r.ByName("a")
				for _, other := range r.All() {
					_ = other.Name()
				}
				r.Remove(tool.Name())
			}
		})
	}
	wg.Wait()
	require.Equal(t, []string{"a"}, r.Names())
}
