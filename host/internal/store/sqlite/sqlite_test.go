package sqlite_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/host/internal/store/sqlite"
	"github.com/toolroom-mcp/toolroom/host/internal/store/storetest"
)

func TestSuite(t *testing.T) {
	storetest.Run(t, func(t *testing.T, c storetest.Config) func() *store.Store {
		dir := t.TempDir()
		return func() *store.Store {
			s := sqlite.New(sqlite.Config{Dir: dir, Now: c.Now, Quota: c.Quota, NoSync: true})
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			return s
		}
	})
}

func Benchmark(b *testing.B) {
	for name, noSync := range map[string]bool{"synced": false, "not synced": true} {
		b.Run(name, func(b *testing.B) {
			s := sqlite.New(sqlite.Config{Dir: b.TempDir(), NoSync: noSync})
			defer s.Close()
			storetest.Benchmark(b, s)
		})
	}
}
