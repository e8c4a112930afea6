package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/store"
)

// keys is the store.Keys of a database.
type keys database

// Get implements store.Keys.
func (k *keys) Get(ctx context.Context, key string) (store.Entry, error) {
	d := (*database)(k)
	h, err := d.open(ctx)
	if err != nil {
		return store.Entry{}, err
	}
	e, expires := store.Entry{Key: key}, int64(0)
	err = h.get.QueryRowContext(ctx, key, d.Now().UnixMilli()).Scan(&e.Value, &e.Version, &expires)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return store.Entry{}, store.NotFoundError(key)
	case err != nil:
		return store.Entry{}, d.explain(ctx, err)
	}
	e.Expires = timeFromMilli(expires)
	return e, nil
}

// Put implements store.Keys.
func (k *keys) Put(ctx context.Context, key string, value []byte, was store.Version, expires time.Time) (store.Version, error) {
	d := (*database)(k)
	if value == nil {
		value = []byte{} // nil would be NULL
	}
	until := int64(0)
	if !expires.IsZero() {
		until = max(store.RoundExpiry(expires).UnixMilli(), 1)
	}
	var now store.Version
	err := d.inTransaction(ctx, func(h *handles, tx *sql.Tx) error {
		if err := d.checkVersion(ctx, h, tx, key, was); err != nil {
			return err
		}
		result, err := tx.StmtContext(ctx, h.put).ExecContext(ctx, key, value, until)
		if err != nil {
			return err
		}
		id, err := result.LastInsertId()
		now = store.Version(id)
		return err
	})
	if err != nil {
		return 0, err
	}
	return now, nil
}

// Delete implements store.Keys.
func (k *keys) Delete(ctx context.Context, key string, was store.Version) error {
	d := (*database)(k)
	return d.inTransaction(ctx, func(h *handles, tx *sql.Tx) error {
		if err := d.checkVersion(ctx, h, tx, key, was); err != nil {
			return err
		}
		_, err := tx.StmtContext(ctx, h.removeKey).ExecContext(ctx, key)
		return err
	})
}

// checkVersion returns CONFLICT unless the entry of key has the version was.
// store.Absent means that there must be no entry; store.Any is not checked.
func (d *database) checkVersion(ctx context.Context, h *handles, tx *sql.Tx, key string, was store.Version) error {
	if was == store.Any {
		return nil
	}
	have := store.Absent
	err := tx.StmtContext(ctx, h.version).QueryRowContext(ctx, key, d.Now().UnixMilli()).Scan(&have)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if have != was {
		return store.ConflictError(key)
	}
	return nil
}

// List implements store.Keys.
func (k *keys) List(ctx context.Context, prefix, after string, limit int) ([]store.Entry, error) {
	d := (*database)(k)
	h, err := d.open(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := h.list.QueryContext(ctx, prefix, after, prefixEnd(prefix), d.Now().UnixMilli(), limit)
	if err != nil {
		return nil, d.explain(ctx, err)
	}
	defer rows.Close()
	var page []store.Entry
	for bytes := 0; bytes <= store.MaxPageBytes && rows.Next(); {
		var e store.Entry
		var expires int64
		if err := rows.Scan(&e.Key, &e.Value, &e.Version, &expires); err != nil {
			return nil, d.explain(ctx, err)
		}
		e.Expires = timeFromMilli(expires)
		page = append(page, e)
		bytes += len(e.Value)
	}
	if err := rows.Err(); err != nil {
		return nil, d.explain(ctx, err)
	}
	return page, nil
}

// prefixEnd returns the least string after all strings with the prefix, in byte order.
// UTF-8 has no byte 0xff.
func prefixEnd(prefix string) string {
	if prefix == "" {
		return "\xff"
	}
	last := len(prefix) - 1
	return prefix[:last] + string([]byte{prefix[last] + 1})
}

// timeFromMilli returns a time from Unix milliseconds; 0 is the zero time.
func timeFromMilli(milli int64) time.Time {
	if milli == 0 {
		return time.Time{}
	}
	return time.UnixMilli(milli)
}
