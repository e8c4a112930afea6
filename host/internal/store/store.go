// Package store holds the host's state between its runs: keys with compare-and-swap and expiry,
// append-only logs, and blobs. It has the interface and the checks that all backends share. A
// backend is a package below, and all of them pass the suite in storetest.
//
//	memory     for tests, and for a host that stores nothing on disk
//	sqlite     the default: a file and a directory, shared by all hosts of a machine
//	jetstream  a NATS cluster, shared by the hosts of many machines
//
// Package backend opens a store. A store reads and writes nothing before its first use, so a
// host that stores nothing has no cost.
//
//	entry, err := s.Keys.Get(ctx, "approval/7f3a")
//	// decide
//	_, err = s.Keys.Put(ctx, entry.Key, decided, entry.Version, entry.Expires)
//	if toolerr.Is(err, toolerr.Conflict) {
//		// another process was first
//	}
//
// # Guarantees
//
// After a write has returned without an error, every later reader sees it, in this process or
// another one, even if the process is killed immediately. A write that returned an error was
// not done, with one exception: after TIMEOUT, CANCELLED and TRANSPORT_ERROR from a cluster it
// may have been.
//
// All methods are safe for concurrent use by goroutines, and with sqlite and jetstream by
// processes. Methods do not keep the bytes that they are given, and the caller owns the bytes
// that they return.
//
// # Errors
//
// NOT_FOUND, CONFLICT (the version is another one), EXISTS (a blob is written once), TOO_LARGE
// (a value, batch or blob), LIMIT_REACHED (all blobs together), NO_SPACE (the disk, or the
// limit of the store), LOCKED (other processes held the database for too long),
// TRANSPORT_ERROR (no cluster), INVALID_INPUT (a name), and ErrNewer.
package store

import (
	"context"
	"errors"
	"io"
	"time"
)

// The bounds of every backend, so that what works on one machine works in a
// cluster, whose messages are at most 1 MiB. What is longer is a blob.
const (
	MaxName         = 256       // bytes of a key or the name of a log
	MaxValue        = 960 << 10 // bytes of a value
	MaxBatchBytes   = 960 << 10 // bytes of all records of one Append
	MaxBatchRecords = 4096      // records of one Append
	MaxPageEntries  = 1000      // entries or records of one List or Read

	// A page ends early after this number of bytes.
	MaxPageBytes = 4 << 20
)

// ErrNewer is wrapped by the errors of a store that a newer version of toolroom wrote.
var ErrNewer = errors.New("written by a newer version")

// A Store is one backend behind the checks that all backends share. Make it with New.
type Store struct {
	Keys  Keys
	Log   Log
	Blobs Blobs

	close func() error
}

// A Version distinguishes the values that a key has had. It grows with every change,
// and no version is used twice, not even after the key was deleted or has expired.
type Version int64

// What Put and Delete take instead of a version that was read.
const (
	Absent Version = 0  // the key must not exist
	Any    Version = -1 // whether the key exists or not
)

// An Entry is a key and its value.
type Entry struct {
	Key     string
	Value   []byte
	Version Version
	Expires time.Time // to the millisecond; zero: never
}

// Keys are small values by name. A key is UTF-8 without control characters and
// asterisks, at most MaxName bytes; slashes divide it, as in "approval/7f3a". An
// expired key does not exist for any reader from that moment on.
type Keys interface {
	// Get returns the entry of key, or NOT_FOUND.
	Get(ctx context.Context, key string) (Entry, error)

	// Put sets the value of key if its version is still was, and returns the new version;
	// otherwise it returns CONFLICT. The zero expires means never.
	Put(ctx context.Context, key string, value []byte, was Version, expires time.Time) (Version, error)

	// Delete removes key if its version is still was; otherwise it returns CONFLICT. For a
	// key that does not exist it succeeds with Any and Absent.
	Delete(ctx context.Context, key string, was Version) error

	// List returns the entries whose keys begin with prefix and follow the key after,
	// sorted by their bytes: at most limit, at most MaxPageEntries, and not many more bytes than
	// MaxPageBytes. Only an empty page is the end.
	List(ctx context.Context, prefix, after string, limit int) ([]Entry, error)
}

// A Cursor is the position of a record. The cursors of a log ascend in the order in
// which its records can be read, with gaps. 0 is before the first record.
type Cursor int64

// A Record is one entry of a log.
type Record struct {
	Cursor Cursor
	Time   time.Time // when it was appended, to the millisecond
	Data   []byte
}

// Log holds any number of append-only logs, with names like those of keys. A reader
// that continues after the last cursor that it has seen misses no record, even if
// others append at the same time.
type Log interface {
	// Append adds the records of one batch, all or none, in order and with no other record
	// between them, and returns the cursor of the last one.
	Append(ctx context.Context, log string, records ...[]byte) (Cursor, error)

	// Read returns the records after a cursor, in pages as List does. A log to which
	// nothing was appended is empty.
	Read(ctx context.Context, log string, after Cursor, limit int) ([]Record, error)

	// Trim removes the oldest records, so that the others are within keep, and returns how
	// many it removed. A name that ends in "/*" means all logs below it together, and "*"
	// all logs.
	Trim(ctx context.Context, log string, keep Retention) (removed int, err error)

	// Drop removes all records of one log.
	Drop(ctx context.Context, log string) error
}

// Retention holds the bounds of what Trim leaves. The rest is within both bounds; a cluster
// removes whole batches, so it may leave less.
type Retention struct {
	Age   time.Duration // 0: of any age
	Bytes int64         // bytes of data; 0: any number
}

// A Blob is one file of the store.
type Blob struct {
	ID      string
	Size    int64
	Created time.Time
}

// Blobs are contents of any length, written once and never changed. An id has 1 to 128
// of the characters [a-z0-9_-] and begins with a letter or digit; choose it at random
// if only one user may read the content.
type Blobs interface {
	// Create reads r to its end and stores it; it returns EXISTS, TOO_LARGE or
	// LIMIT_REACHED if it must not. Readers see the whole blob or none.
	Create(ctx context.Context, id string, r io.Reader) (Blob, error)

	// Open returns the content, which the caller closes, or NOT_FOUND. If blobs are files,
	// the content is also an io.Seeker.
	Open(ctx context.Context, id string) (io.ReadCloser, Blob, error)

	// Stat returns the same as Open, without the content.
	Stat(ctx context.Context, id string) (Blob, error)

	// Delete removes a blob, or returns NOT_FOUND. Open readers of it continue, except in a
	// cluster.
	Delete(ctx context.Context, id string) error

	// Trim removes the oldest blobs, so that the others are within keep, and the incomplete
	// contents of killed writers. It returns how many blobs it removed.
	Trim(ctx context.Context, keep Retention) (removed int, err error)
}

// Quota bounds blobs. Zero fields mean the defaults.
type Quota struct {
	Blob  int64 // bytes of one blob; 0: 50 MiB
	Total int64 // bytes of all blobs; 0: 1 GiB
}

// WithDefaults returns the quota with zero fields replaced by the defaults.
func (q Quota) WithDefaults() Quota {
	if q.Blob == 0 {
		q.Blob = 50 << 20
	}
	if q.Total == 0 {
		q.Total = 1 << 30
	}
	return q
}

// Close releases files and connections. The store cannot be used afterwards.
func (s *Store) Close() error { return s.close() }
