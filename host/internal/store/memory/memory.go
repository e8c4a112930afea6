// Package memory is the store that forgets: for tests, and for a host that is
// to leave nothing behind. It is bounded by what its user puts in and trims.
package memory

import (
	"bytes"
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/store"
)

// Config describes a store. The zero value is usable.
type Config struct {
	Quota store.Quota
	Now   func() time.Time // nil: time.Now
}

// New returns an empty store.
func New(c Config) *store.Store {
	if c.Now == nil {
		c.Now = time.Now
	}
	m := &memory{now: c.Now, quota: c.Quota.WithDefaults(), keys: map[string]store.Entry{}, blobs: map[string]blob{}}
	return store.New((*keys)(m), (*log)(m), (*blobs)(m), func() error { return nil })
}

// memory holds the content of a store in memory.
type memory struct {
	now   func() time.Time
	quota store.Quota

	mu      sync.Mutex
	version store.Version
	cursor  store.Cursor
	keys    map[string]store.Entry
	records []record // of all logs, oldest first
	blobs   map[string]blob
}

// record is a record of a log.
type record struct {
	log string
	store.Record
}

// blob is a blob with its content.
type blob struct {
	store.Blob
	content []byte
}

// keys is the store.Keys of a memory.
type keys memory

// get returns the entry of key; the zero entry, whose version is Absent, if it does not
// exist or has expired. The caller holds mu.
func (m *keys) get(key string) store.Entry {
	e, ok := m.keys[key]
	if ok && !e.Expires.IsZero() && !e.Expires.After(m.now()) {
		delete(m.keys, key)
		return store.Entry{}
	}
	return e
}

// Get implements store.Keys.
func (m *keys) Get(ctx context.Context, key string) (store.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.get(key)
	if e.Version == store.Absent {
		return e, store.NotFoundError(key)
	}
	e.Value = slices.Clone(e.Value)
	return e, ctx.Err()
}

// Put implements store.Keys.
func (m *keys) Put(ctx context.Context, key string, value []byte, was store.Version, expires time.Time) (store.Version, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if was != store.Any && was != m.get(key).Version {
		return 0, store.ConflictError(key)
	}
	m.version++
	m.keys[key] = store.Entry{Key: key, Value: append([]byte{}, value...), Version: m.version, Expires: store.RoundExpiry(expires)}
	return m.version, nil
}

// Delete implements store.Keys.
func (m *keys) Delete(ctx context.Context, key string, was store.Version) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if was != store.Any && was != m.get(key).Version {
		return store.ConflictError(key)
	}
	delete(m.keys, key)
	return nil
}

// List implements store.Keys.
func (m *keys) List(ctx context.Context, prefix, after string, limit int) ([]store.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var page []store.Entry
	bytes := 0
	for _, key := range slices.Sorted(maps.Keys(m.keys)) {
		if len(page) == limit || bytes > store.MaxPageBytes {
			break
		}
		if !strings.HasPrefix(key, prefix) || key <= after {
			continue
		}
		if e := m.get(key); e.Version != store.Absent {
			e.Value = slices.Clone(e.Value)
			page = append(page, e)
			bytes += len(e.Value)
		}
	}
	return page, ctx.Err()
}

// log is the store.Log of a memory.
type log memory

// Append implements store.Log.
func (m *log) Append(ctx context.Context, name string, batch ...[]byte) (store.Cursor, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	now := m.now().Truncate(time.Millisecond)
	for _, data := range batch {
		m.cursor++
		m.records = append(m.records, record{name, store.Record{Cursor: m.cursor, Time: now, Data: append([]byte{}, data...)}})
	}
	return m.cursor, nil
}

// Read implements store.Log.
func (m *log) Read(ctx context.Context, name string, after store.Cursor, limit int) ([]store.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var page []store.Record
	bytes := 0
	first, _ := slices.BinarySearchFunc(m.records, after+1, func(r record, c store.Cursor) int { return int(r.Cursor - c) })
	for _, r := range m.records[first:] {
		if len(page) == limit || bytes > store.MaxPageBytes {
			break
		}
		if r.log == name {
			r.Data = slices.Clone(r.Data)
			page = append(page, r.Record)
			bytes += len(r.Data)
		}
	}
	return page, ctx.Err()
}

// Trim implements store.Log.
func (m *log) Trim(ctx context.Context, name string, keep store.Retention) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	name, all := store.ParseTrimName(name)
	meant := func(r record) bool { return r.log == name || all && strings.HasPrefix(r.log, name) }
	goes := keep.Exceeded(m.now())
	var cut store.Cursor // the youngest that goes
	for _, r := range slices.Backward(m.records) {
		if meant(r) && goes(len(r.Data), r.Time.UnixMilli()) {
			cut = r.Cursor
			break
		}
	}
	before := len(m.records)
	m.records = slices.DeleteFunc(m.records, func(r record) bool { return meant(r) && r.Cursor <= cut })
	return before - len(m.records), nil
}

// Drop implements store.Log.
func (m *log) Drop(ctx context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.records = slices.DeleteFunc(m.records, func(r record) bool { return r.log == name })
	return ctx.Err()
}

// blobs is the store.Blobs of a memory.
type blobs memory

// Create implements store.Blobs.
func (m *blobs) Create(ctx context.Context, id string, r io.Reader) (store.Blob, error) {
	content, err := io.ReadAll(m.quota.CapReader(r))
	if err != nil {
		return store.Blob{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return store.Blob{}, err
	}
	if _, ok := m.blobs[id]; ok {
		return store.Blob{}, store.ExistsError(id)
	}
	total := int64(len(content))
	for _, b := range m.blobs {
		total += b.Size
	}
	if total > m.quota.Total {
		return store.Blob{}, m.quota.ExceededError()
	}
	b := blob{store.Blob{ID: id, Size: int64(len(content)), Created: m.now()}, content}
	m.blobs[id] = b
	return b.Blob, nil
}

// Open implements store.Blobs.
func (m *blobs) Open(ctx context.Context, id string) (io.ReadCloser, store.Blob, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.blobs[id]
	if !ok {
		return nil, store.Blob{}, store.NotFoundError("blob " + id)
	}
	// Nobody changes the content, so a reader needs no copy.
	return struct {
		io.ReadSeeker
		io.Closer
	}{bytes.NewReader(b.content), io.NopCloser(nil)}, b.Blob, ctx.Err()
}

// Stat implements store.Blobs.
func (m *blobs) Stat(ctx context.Context, id string) (store.Blob, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.blobs[id]
	if !ok {
		return store.Blob{}, store.NotFoundError("blob " + id)
	}
	return b.Blob, ctx.Err()
}

// Delete implements store.Blobs.
func (m *blobs) Delete(ctx context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.blobs[id]; !ok {
		return store.NotFoundError("blob " + id)
	}
	delete(m.blobs, id)
	return ctx.Err()
}

// Trim implements store.Blobs.
func (m *blobs) Trim(ctx context.Context, keep store.Retention) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []store.Blob
	for _, b := range m.blobs {
		all = append(all, b.Blob)
	}
	gone := keep.BlobsToRemove(all, m.now())
	for _, b := range gone {
		delete(m.blobs, b.ID)
	}
	return len(gone), ctx.Err()
}
