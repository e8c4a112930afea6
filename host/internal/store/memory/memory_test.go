package memory_test

import (
	"testing"

	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/host/internal/store/memory"
	"github.com/toolroom-mcp/toolroom/host/internal/store/storetest"
)

func TestSuite(t *testing.T) {
	storetest.Run(t, func(t *testing.T, c storetest.Config) func() *store.Store {
		s := memory.New(memory.Config{Now: c.Now, Quota: c.Quota})
		t.Cleanup(func() { _ = s.Close() })
		return func() *store.Store { return s } // there is no other way to share it
	})
}

func Benchmark(b *testing.B) { storetest.Benchmark(b, memory.New(memory.Config{})) }
