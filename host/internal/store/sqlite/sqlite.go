// Package sqlite is the store of one machine: keys and logs in an SQLite database, blobs as
// files next to it, for any number of hosts at a time.
//
//	DIR/host.db       keys and logs, with its files -wal and -shm
//	DIR/blobs/b_ID    blobs
//
// All files are 0600 in directories 0700, and created at their first use.
//
// The database is in WAL mode, so that readers and the writer do not wait for each other. A
// write is one immediate transaction, synced before it returns (a batch is one write, so
// records in batches are cheap). The writers of a process take turns. Processes wait for each
// other for Config.Wait and then return LOCKED. A database with a newer schema is refused with
// store.ErrNewer and not changed.
//
// Config.MaxBytes bounds the database; beyond it writes return NO_SPACE. Space freed by Trim,
// Drop and Delete is returned to the file system.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	driver "modernc.org/sqlite"

	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/host/internal/store/blobdir"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

const (
	pageSize = 4096
	// readers is the number of concurrent readers; more wait.
	readers = 4
	// busyTimeout is the time that SQLite itself waits before a write for other processes,
	// which a context cannot end. Then it is asked again. Readers wait only while the
	// database of a killed process is recovered.
	busyTimeout = 50 * time.Millisecond
	// sweepEvery is after how many writes of a process what has expired is
	// removed.
	sweepEvery = 256
)

// Config describes a store. Dir must be set.
type Config struct {
	Dir      string
	MaxBytes int64         // size of the database; 0: 512 MiB
	Wait     time.Duration // time to wait for other processes; 0: 10 s
	Quota    store.Quota   // of the blobs
	NoSync   bool          // a power failure may lose the latest writes
	Now      func() time.Time
}

// DatabaseName is the name of the database in its directory.
const DatabaseName = "host.db"

// New returns the store in a directory. It opens nothing before the first use.
func New(c Config) *store.Store {
	if c.MaxBytes == 0 {
		c.MaxBytes = 512 << 20
	}
	if c.Wait == 0 {
		c.Wait = 10 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	d := &database{Config: c, path: filepath.Join(c.Dir, DatabaseName), writeLock: make(chan struct{}, 1)}
	blobs := blobdir.New(blobdir.Config{Dir: filepath.Join(c.Dir, "blobs"), Quota: c.Quota, NoSync: c.NoSync, Now: c.Now})
	return store.New((*keys)(d), (*log)(d), blobs, d.close)
}

// database is an SQLite database that is opened at its first use.
type database struct {
	Config
	path string

	writeLock chan struct{} // full while a goroutine writes
	writes    int           // number of writes; changed with writeLock

	mu     sync.Mutex
	opened *handles
	closed bool
}

// handles are the connections: one that writes, and several that only read.
type handles struct {
	write, read *sql.DB
	statements
}

// open returns the handles, and opens the database if necessary. After a failure the
// next call tries again.
func (d *database) open(ctx context.Context) (*handles, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, toolerr.New(toolerr.Internal, "the store in %s was closed", d.Dir)
	}
	if d.opened != nil {
		return d.opened, nil
	}
	if err := blobdir.MakePrivate(d.Dir); err != nil {
		return nil, err
	}
	// SQLite gives the files next to the database the same mode.
	f, err := os.OpenFile(d.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	h, err := d.connect(ctx)
	if err != nil {
		return nil, d.explain(ctx, err)
	}
	d.opened = h
	return h, nil
}

// connect opens the database file with one connection that writes and several that read. It
// creates or migrates the tables. If another process keeps the database locked for
// Config.Wait, it returns an error; then nothing is open.
func (d *database) connect(ctx context.Context) (*handles, error) {
	h := &handles{}
	err := func() (err error) {
		if h.write, err = d.openPool(1, "immediate", min(d.Wait, busyTimeout)); err != nil {
			return err
		}
		if err := d.retryBusy(ctx, func() error { return d.migrate(ctx, h.write) }); err != nil {
			return err
		}
		if h.read, err = d.openPool(readers, "deferred", d.Wait, "query_only(1)"); err != nil {
			return err
		}
		return d.retryBusy(ctx, func() error { return h.prepare(ctx, h.read, h.write) })
	}()
	if err != nil {
		return nil, errors.Join(err, h.close())
	}
	return h, nil
}

// openPool returns a pool of up to size connections that stay open. lock is the type of
// transactions; wait bounds the time to wait for other processes.
func (d *database) openPool(size int, lock string, wait time.Duration, pragmas ...string) (*sql.DB, error) {
	sync := "synchronous(full)"
	if d.NoSync {
		sync = "synchronous(normal)"
	}
	pragmas = append(pragmas, sync, "trusted_schema(0)",
		fmt.Sprintf("max_page_count(%d)", max(d.MaxBytes/pageSize, 64)),
		"cache_size(-2048)", "journal_size_limit(4194304)")
	name := url.URL{Scheme: "file", OmitHost: true, Path: filepath.ToSlash(d.path), RawQuery: url.Values{
		"_txlock":       {lock},
		"_busy_timeout": {fmt.Sprint(wait.Milliseconds())},
		"_pragma":       pragmas,
		"_dqs":          {"0"},
		"_defensive":    {"1"},
	}.Encode()}
	connector, err := driver.NewConnector(name.String())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return db, nil
}

// close closes the database after the running write. Later uses fail.
func (d *database) close() error {
	d.writeLock <- struct{}{} // whoever writes now ends first
	defer func() { <-d.writeLock }()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	if d.opened == nil {
		return nil
	}
	defer func() { d.opened = nil }()
	return d.opened.close()
}

// close closes the connections that are open, and returns their errors.
func (h *handles) close() error {
	var errs []error
	for _, db := range []*sql.DB{h.read, h.write} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

// retryBusy calls do again while other processes hold a lock, for at most Config.Wait.
// After that time it returns the error of do.
func (d *database) retryBusy(ctx context.Context, do func() error) error {
	for start := time.Now(); ; {
		err := do()
		switch {
		case !isBusy(err):
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case time.Since(start) >= d.Wait:
			return err
		}
		// SQLite has waited already, except for locks that it does not wait for.
		time.Sleep(time.Millisecond)
	}
}

// inTransaction runs change in one write transaction, which is committed and synced if
// change returns no error.
func (d *database) inTransaction(ctx context.Context, change func(h *handles, tx *sql.Tx) error) error {
	h, err := d.open(ctx)
	if err != nil {
		return err
	}
	select {
	case d.writeLock <- struct{}{}:
		defer func() { <-d.writeLock }()
	case <-ctx.Done():
		return ctx.Err()
	}
	var tx *sql.Tx
	err = d.retryBusy(ctx, func() (err error) {
		tx, err = h.write.BeginTx(ctx, nil)
		return err
	})
	if err != nil {
		return d.explain(ctx, err)
	}
	if d.writes++; d.writes%sweepEvery == 1 {
		_, err = tx.StmtContext(ctx, h.sweep).ExecContext(ctx, d.Now().UnixMilli())
	}
	if err == nil {
		err = change(h, tx)
	}
	if err != nil {
		_ = tx.Rollback() // says that it is done where the context has ended it
		return d.explain(ctx, err)
	}
	return d.explain(ctx, tx.Commit())
}
