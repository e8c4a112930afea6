package storetest

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/host/internal/store"
)

// Benchmark measures what the host does all the time. A record has 300 bytes,
// about what the audit writes of one call.
func Benchmark(b *testing.B, s *store.Store) {
	ctx := b.Context()
	record := bytes.Repeat([]byte("r"), 300)
	for _, size := range []int{1, 64} {
		batch := make([][]byte, size)
		for i := range batch {
			batch[i] = record
		}
		b.Run(map[int]string{1: "append", 64: "append 64"}[size], func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := s.Log.Append(ctx, "log", batch...)
				require.NoError(b, err)
			}
			b.ReportMetric(float64(size*b.N)/b.Elapsed().Seconds(), "records/s")
			require.NoError(b, s.Log.Drop(ctx, "log"))
		})
	}
	b.Run("get", func(b *testing.B) {
		_, err := s.Keys.Put(ctx, "get", record, store.Any, time.Time{})
		require.NoError(b, err)
		b.ReportAllocs()
		for b.Loop() {
			_, err := s.Keys.Get(ctx, "get")
			require.NoError(b, err)
		}
	})
	b.Run("swap", func(b *testing.B) {
		b.ReportAllocs()
		was, err := s.Keys.Put(ctx, "swap", record, store.Any, time.Time{})
		require.NoError(b, err)
		for b.Loop() {
			was, err = s.Keys.Put(ctx, "swap", record, was, time.Time{})
			require.NoError(b, err)
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "swaps/s")
	})
	b.Run("count by 8", func(b *testing.B) { // read, add one, swap: until it succeeds
		b.ReportAllocs()
		steps := make(chan struct{})
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range steps {
					if err := Increment(ctx, s.Keys, "counter"); err != nil {
						b.Error(err)
					}
				}
			})
		}
		for b.Loop() {
			steps <- struct{}{}
		}
		close(steps)
		all.Wait()
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "steps/s")
	})
}
