package mcpkit_test

import (
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
)

func named(t testing.TB, name string, aliases ...string) *mcpkit.Tool {
	t.Helper()
	tool, err := mcpkit.NewTool(mcpkit.Def{Name: name, Aliases: aliases}, nothing[struct{}])
	require.NoError(t, err)
	return tool
}

func TestRegistryKeepsItsOrder(t *testing.T) {
	a, b, c := named(t, "a", "A", "x"), named(t, "b", "x", "c"), named(t, "c")
	r := mcpkit.NewRegistry(a, b)
	r.Add(c)
	require.Equal(t, []string{"a", "b", "c"}, r.Names())
	require.Equal(t, 3, r.Len())

	second := named(t, "b")
	before := r.All()
	r.Add(second)
	require.Equal(t, []string{"a", "b", "c"}, r.Names(), "replaced in place")
	got, ok := r.ByName("b")
	require.True(t, ok)
	require.Same(t, second, got)
	require.Same(t, b, before[1], "what was handed out does not change")

	require.True(t, r.Remove("a"))
	require.False(t, r.Remove("a"))
	r.Add(a)
	require.Equal(t, []string{"b", "c", "a"}, r.Names())
}

func TestRegistryFindsAliases(t *testing.T) {
	r := mcpkit.NewRegistry(named(t, "a", "A", "x"), named(t, "b", "x", "c"), named(t, "c"))
	for name, want := range map[string]string{"a": "a", "A": "a", "x": "a", "c": "c"} {
		got, ok := r.ByName(name)
		require.True(t, ok)
		require.Equal(t, want, got.Name(), name)
	}
	_, ok := r.ByName("B")
	require.False(t, ok)
}

func TestRegistryFilterIsItsOwn(t *testing.T) {
	r := mcpkit.NewRegistry(named(t, "a"), named(t, "b"))
	part := r.Filter(func(tool *mcpkit.Tool) bool { return tool.Name() == "b" })
	require.Equal(t, []string{"b"}, part.Names())
	part.Add(named(t, "d"))
	part.Remove("b")
	require.Equal(t, []string{"a", "b"}, r.Names())
	require.Empty(t, (&mcpkit.Registry{}).Names(), "the zero value is empty")
}

func TestRegistryIsSafeForConcurrentUse(t *testing.T) {
	r := mcpkit.NewRegistry(named(t, "a"))
	var wg sync.WaitGroup
	for i := range 8 {
		tool := named(t, "t"+strconv.Itoa(i))
		wg.Go(func() {
			for range 200 {
				r.Add(tool)
				r.ByName("a")
				for _, other := range r.All() {
					_ = other.Name()
				}
				r.Filter(func(*mcpkit.Tool) bool { return true }).Remove("a")
				r.Remove(tool.Name())
			}
		})
	}
	wg.Wait()
	require.Equal(t, []string{"a"}, r.Names())
}
