package store

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// New returns a store that checks names and sizes before it calls the backend's keys,
// log and blobs. Store.Close calls close.
func New(keys Keys, log Log, blobs Blobs, closeBackend func() error) *Store {
	return &Store{Keys: checkedKeys{keys}, Log: checkedLog{log}, Blobs: checkedBlobs{blobs}, close: closeBackend}
}

// checkedKeys checks names and sizes before it calls next.
type checkedKeys struct{ next Keys }

// Get implements Keys: it checks its arguments and calls next.
func (c checkedKeys) Get(ctx context.Context, key string) (Entry, error) {
	if err := checkName("key", key); err != nil {
		return Entry{}, err
	}
	return c.next.Get(ctx, key)
}

// Put implements Keys: it checks its arguments and calls next.
func (c checkedKeys) Put(ctx context.Context, key string, value []byte, was Version, expires time.Time) (Version, error) {
	if err := checkName("key", key); err != nil {
		return 0, err
	}
	if len(value) > MaxValue {
		return 0, toolerr.New(toolerr.TooLarge, "the value of %s has %d bytes, more than %d; store it as a blob", key, len(value), MaxValue)
	}
	return c.next.Put(ctx, key, value, was, expires)
}

// Delete implements Keys: it checks its arguments and calls next.
func (c checkedKeys) Delete(ctx context.Context, key string, was Version) error {
	if err := checkName("key", key); err != nil {
		return err
	}
	return c.next.Delete(ctx, key, was)
}

// List implements Keys: it checks its arguments and calls next.
func (c checkedKeys) List(ctx context.Context, prefix, after string, limit int) ([]Entry, error) {
	if prefix != "" {
		if err := checkName("prefix", prefix); err != nil {
			return nil, err
		}
	}
	if limit <= 0 {
		return nil, nil
	}
	return c.next.List(ctx, prefix, after, min(limit, MaxPageEntries))
}

// checkedLog checks names, sizes and numbers before it calls next.
type checkedLog struct{ next Log }

// Append implements Log: it checks its arguments and calls next.
func (c checkedLog) Append(ctx context.Context, log string, records ...[]byte) (Cursor, error) {
	if err := checkName("log", log); err != nil {
		return 0, err
	}
	bytes := 0
	for _, r := range records {
		bytes += len(r)
	}
	switch {
	case len(records) == 0:
		return 0, toolerr.New(toolerr.InvalidInput, "nothing to append to %s", log)
	case len(records) > MaxBatchRecords:
		return 0, toolerr.New(toolerr.TooLarge, "%d records for %s at once, more than %d; append them in parts", len(records), log, MaxBatchRecords)
	case bytes > MaxBatchBytes:
		return 0, toolerr.New(toolerr.TooLarge, "%d bytes for %s at once, more than %d; append them in parts, or store them as a blob", bytes, log, MaxBatchBytes)
	}
	return c.next.Append(ctx, log, records...)
}

// Read implements Log: it checks its arguments and calls next.
func (c checkedLog) Read(ctx context.Context, log string, after Cursor, limit int) ([]Record, error) {
	if err := checkName("log", log); err != nil {
		return nil, err
	}
	if limit <= 0 {
		return nil, nil
	}
	return c.next.Read(ctx, log, max(after, 0), min(limit, MaxPageEntries))
}

// Trim implements Log: it checks its arguments and calls next.
func (c checkedLog) Trim(ctx context.Context, log string, keep Retention) (int, error) {
	name, all := ParseTrimName(log)
	if name != "" || !all {
		if err := checkName("log", name); err != nil {
			return 0, err
		}
	}
	if keep == (Retention{}) {
		return 0, nil
	}
	return c.next.Trim(ctx, log, keep)
}

// Drop implements Log: it checks its arguments and calls next.
func (c checkedLog) Drop(ctx context.Context, log string) error {
	if err := checkName("log", log); err != nil {
		return err
	}
	return c.next.Drop(ctx, log)
}

// ParseTrimName parses the argument of Log.Trim: the name of one log, or, if all is
// true, the prefix of the names of several logs.
func ParseTrimName(log string) (name string, all bool) {
	if prefix, ok := strings.CutSuffix(log, "*"); ok && (prefix == "" || strings.HasSuffix(prefix, "/")) {
		return prefix, true
	}
	return log, false
}

// checkedBlobs checks ids before it calls next.
type checkedBlobs struct{ next Blobs }

// Create implements Blobs: it checks the id and calls next.
func (c checkedBlobs) Create(ctx context.Context, id string, r io.Reader) (Blob, error) {
	if err := checkID(id); err != nil {
		return Blob{}, err
	}
	return c.next.Create(ctx, id, r)
}

// Open implements Blobs: it checks the id and calls next.
func (c checkedBlobs) Open(ctx context.Context, id string) (io.ReadCloser, Blob, error) {
	if err := checkID(id); err != nil {
		return nil, Blob{}, err
	}
	return c.next.Open(ctx, id)
}

// Stat implements Blobs: it checks the id and calls next.
func (c checkedBlobs) Stat(ctx context.Context, id string) (Blob, error) {
	if err := checkID(id); err != nil {
		return Blob{}, err
	}
	return c.next.Stat(ctx, id)
}

// Delete implements Blobs: it checks the id and calls next.
func (c checkedBlobs) Delete(ctx context.Context, id string) error {
	if err := checkID(id); err != nil {
		return err
	}
	return c.next.Delete(ctx, id)
}

// Trim implements Blobs.
func (c checkedBlobs) Trim(ctx context.Context, keep Retention) (int, error) {
	return c.next.Trim(ctx, keep)
}

// checkName returns INVALID_INPUT for a name that is empty, too long or has characters
// that are not allowed. what is the kind of name for the message: key, prefix or log.
func checkName(what, name string) error {
	bad := func(r rune) bool { return r == '*' || unicode.IsControl(r) }
	switch {
	case name == "":
		return toolerr.New(toolerr.InvalidInput, "a %s without a name", what)
	case len(name) > MaxName:
		return toolerr.New(toolerr.InvalidInput, "the %s %.32q… has %d bytes, more than %d; use a hash of it", what, name, len(name), MaxName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, bad):
		return toolerr.New(toolerr.InvalidInput, "the %s %q has characters that are not allowed: *, control characters, broken UTF-8", what, name)
	}
	return nil
}

// checkID returns INVALID_INPUT for an id that is no valid file name on all systems,
// also on those that ignore letter case.
func checkID(id string) error {
	bad := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' && r != '-'
	}
	if id == "" || len(id) > 128 || id[0] == '_' || id[0] == '-' || strings.ContainsFunc(id, bad) {
		return toolerr.New(toolerr.InvalidInput, "the blob id %.140q is not 1 to 128 of [a-z0-9_-]", id)
	}
	return nil
}

// NotFoundError returns NOT_FOUND for a key or blob that does not exist.
func NotFoundError(name string) error {
	return toolerr.New(toolerr.NotFound, "%s is not in the store", name)
}

// ConflictError returns CONFLICT for a key whose version has changed.
func ConflictError(key string) error {
	return toolerr.New(toolerr.Conflict, "%s was changed by another program; read it again", key)
}

// ExistsError returns EXISTS for a blob that exists already.
func ExistsError(id string) error {
	return toolerr.New(toolerr.Exists, "blob %s already exists; blobs are written once", id)
}

// CapReader returns a reader of r that fails with TOO_LARGE after more than q.Blob
// bytes.
func (q Quota) CapReader(r io.Reader) io.Reader {
	return &cappedReader{r: r, left: q.Blob, max: q.Blob}
}

// cappedReader is a reader that returns TOO_LARGE after more than max bytes.
type cappedReader struct {
	r         io.Reader
	left, max int64
}

// Read reads, and returns TOO_LARGE if more than max bytes were read.
func (c *cappedReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if c.left -= int64(n); c.left < 0 {
		return 0, toolerr.New(toolerr.TooLarge, "a blob exceeds the limit of %d bytes", c.max)
	}
	return n, err
}

// ExceededError returns LIMIT_REACHED for a blob with which all blobs would exceed
// q.Total.
func (q Quota) ExceededError() error {
	return toolerr.New(toolerr.LimitReached, "all blobs together would exceed the limit of %d bytes; delete some", q.Total)
}

// Exceeded returns a function that is called with the size and the time (Unix
// milliseconds) of each record, youngest first. When it first returns true, that record
// and all older ones are outside the bounds and must be removed.
func (k Retention) Exceeded(now time.Time) func(bytes int, milli int64) bool {
	since, total := now.Add(-k.Age).UnixMilli(), int64(0)
	return func(bytes int, milli int64) bool {
		total += int64(bytes)
		return k.Bytes > 0 && total > k.Bytes || k.Age > 0 && milli < since
	}
}

// BlobsToRemove returns the blobs that Trim must remove, the youngest first. It sorts
// all.
func (k Retention) BlobsToRemove(all []Blob, now time.Time) []Blob {
	slices.SortFunc(all, func(a, b Blob) int {
		return cmp.Or(b.Created.Compare(a.Created), strings.Compare(a.ID, b.ID))
	})
	goes := k.Exceeded(now)
	for i, b := range all {
		if goes(int(b.Size), b.Created.UnixMilli()) {
			return all[i:]
		}
	}
	return nil
}

// RoundExpiry returns the time as it is stored: in whole milliseconds, rounded up; the
// zero time unchanged.
func RoundExpiry(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(time.Millisecond - 1).Truncate(time.Millisecond)
}
