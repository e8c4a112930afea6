package approve_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/approve"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// shelf is a store that lives as long as the test: what a host that is killed
// leaves behind.
type shelf struct {
	mu      sync.Mutex
	entries map[string]approve.Entry
	last    int64
}

func (s *shelf) Get(_ context.Context, key string) (approve.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[key]
	if !ok {
		return e, toolerr.New(toolerr.NotFound, "%s", key)
	}
	return e, nil
}

func (s *shelf) Put(_ context.Context, key string, value []byte, was int64, _ time.Time) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entries[key].Version != was {
		return 0, toolerr.New(toolerr.Conflict, "%s", key)
	}
	if s.entries == nil {
		s.entries = map[string]approve.Entry{}
	}
	s.last++
	s.entries[key] = approve.Entry{Key: key, Value: slices.Clone(value), Version: s.last}
	return s.last, nil
}

func (s *shelf) Delete(_ context.Context, key string, was int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.entries[key].Version != was {
		return toolerr.New(toolerr.Conflict, "%s", key)
	}
	delete(s.entries, key)
	return nil
}

func (s *shelf) List(_ context.Context, prefix, after string, limit int) ([]approve.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var page []approve.Entry
	for key, e := range s.entries {
		if strings.HasPrefix(key, prefix) && key > after {
			page = append(page, e)
		}
	}
	slices.SortFunc(page, func(a, b approve.Entry) int { return strings.Compare(a.Key, b.Key) })
	return page[:min(limit, len(page))], nil
}

// clock is a clock that moves when it is told to.
type clock struct{ nanos atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.nanos.Store(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) now() time.Time          { return time.Unix(0, c.nanos.Load()).UTC() }
func (c *clock) advance(d time.Duration) { c.nanos.Add(int64(d)) }

// fate kills a process at one of its steps: before it or after it.
type fate struct {
	at    int // the step; 0: never
	after bool
	steps atomic.Int64
	dead  atomic.Bool
}

// step does one thing, unless the process is dead then. A dead process does
// nothing any more: its goroutines end where they are.
func (f *fate) step(do func()) {
	if f.dead.Load() {
		runtime.Goexit()
	}
	now := int(f.steps.Add(1)) == f.at
	if now && !f.after {
		f.dead.Store(true)
		runtime.Goexit()
	}
	do()
	if now {
		f.dead.Store(true)
		runtime.Goexit()
	}
}

// mortal is a store as a process sees it that is killed.
type mortal struct {
	*shelf
	fate *fate
}

func (m mortal) Get(ctx context.Context, key string) (e approve.Entry, err error) {
	m.fate.step(func() { e, err = m.shelf.Get(ctx, key) })
	return e, err
}

func (m mortal) Put(ctx context.Context, key string, value []byte, was int64, expires time.Time) (v int64, err error) {
	m.fate.step(func() { v, err = m.shelf.Put(ctx, key, value, was, expires) })
	return v, err
}

func (m mortal) Delete(ctx context.Context, key string, was int64) (err error) {
	m.fate.step(func() { err = m.shelf.Delete(ctx, key, was) })
	return err
}

func (m mortal) List(ctx context.Context, prefix, after string, limit int) (page []approve.Entry, err error) {
	m.fate.step(func() { page, err = m.shelf.List(ctx, prefix, after, limit) })
	return page, err
}
