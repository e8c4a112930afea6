package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/approve"
	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// approvalKeys is a store as approvals use it.
type approvalKeys struct{ keys store.Keys }

// Get calls the method of store.Keys with the types of package approve.
func (k approvalKeys) Get(ctx context.Context, key string) (approve.Entry, error) {
	e, err := k.keys.Get(ctx, key)
	return approve.Entry{Key: e.Key, Value: e.Value, Version: int64(e.Version)}, err
}

// Put calls the method of store.Keys with the types of package approve.
func (k approvalKeys) Put(ctx context.Context, key string, value []byte, was int64, expires time.Time) (int64, error) {
	v, err := k.keys.Put(ctx, key, value, store.Version(was), expires)
	return int64(v), err
}

// Delete calls the method of store.Keys with the types of package approve.
func (k approvalKeys) Delete(ctx context.Context, key string, was int64) error {
	return k.keys.Delete(ctx, key, store.Version(was))
}

// List calls the method of store.Keys with the types of package approve.
func (k approvalKeys) List(ctx context.Context, prefix, after string, limit int) (all []approve.Entry, err error) {
	page, err := k.keys.List(ctx, prefix, after, limit)
	for _, e := range page {
		all = append(all, approve.Entry{Key: e.Key, Value: e.Value, Version: int64(e.Version)})
	}
	return all, err
}

// testApprovals has a hundred callers decide one request at once, half of them to deny,
// through several hosts: one decision counts, the others are told so, and if it was
// approved, exactly one of as many calls runs.
func testApprovals(t *testing.T, backend Backend) {
	again := backend(t, Config{Now: time.Now})
	var ran atomic.Int64
	var books []*approve.Store
	var hosts []call.Handler
	for range 3 {
		book := &approve.Store{Keys: approvalKeys{again().Keys}}
		stage := approve.New(approve.Config{}, book, func(context.Context, *call.Request) error { return nil })
		t.Cleanup(stage.Close)
		books = append(books, book)
		hosts = append(hosts, stage.Stage(func(_ context.Context, req *call.Request) (*call.Result, error) {
			req.Dispatched.Store(true)
			ran.Add(1)
			return &call.Result{Raw: json.RawMessage(`{"content":[]}`)}, nil
		}))
	}
	for round := range 4 {
		ran.Store(0)
		try := func(host int) error {
			_, err := hosts[host](t.Context(), &call.Request{
				Tool: &call.Tool{Name: "t", Server: "s", Original: "t"}, Params: fmt.Appendf(nil, `{"arguments":{"round":%d}}`, round),
			})
			return err
		}
		var waits *call.PendingError
		require.ErrorAs(t, try(0), &waits)
		var all sync.WaitGroup
		won := make(chan bool, 100)
		for i := range cap(won) {
			all.Go(func() {
				d := approve.Decision{Approve: i%2 == 0, By: fmt.Sprint(i)}
				r, err := books[i%len(books)].Decide(t.Context(), waits.Pending.ID, d)
				switch {
				case err == nil:
					if r.By != d.By {
						t.Errorf("%s reports that %s decided", d.By, r.By)
					}
					won <- d.Approve
				case !toolerr.Is(err, toolerr.Conflict):
					t.Error(err)
				}
			})
		}
		all.Wait()
		require.Len(t, won, 1)
		var want int64
		if <-won {
			want = 1
		}
		for i := range 20 {
			all.Go(func() { try(i % len(hosts)) }) //nolint:errcheck // how many ran tells
		}
		all.Wait()
		require.Equal(t, want, ran.Load())
	}
}
