package sqlite

import (
	"context"
	"database/sql"
	"math"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/store"
)

// trimStep is the number of records removed in one transaction, so that other writers
// need not wait for all.
const trimStep = 2000

// rowsPerInsert is the number of records that one statement adds, if there are enough.
const rowsPerInsert = 32

// log is the store.Log of a database.
type log database

// Append implements store.Log.
func (l *log) Append(ctx context.Context, name string, records ...[]byte) (store.Cursor, error) {
	d := (*database)(l)
	var last int64
	err := d.inTransaction(ctx, func(h *handles, tx *sql.Tx) error {
		now := d.Now().UnixMilli()
		for len(records) > 0 {
			// Most of the cost of a row is the call of SQLite.
			stmt, rows := h.append, 1
			if len(records) >= rowsPerInsert {
				stmt, rows = h.appendMany, rowsPerInsert
			}
			args := make([]any, 0, 2+rows)
			args = append(args, name, now)
			for _, data := range records[:rows] {
				if data == nil {
					data = []byte{} // nil would be NULL
				}
				args = append(args, data)
			}
			records = records[rows:]
			result, err := tx.StmtContext(ctx, stmt).ExecContext(ctx, args...)
			if err != nil {
				return err
			}
			if last, err = result.LastInsertId(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return store.Cursor(last), nil
}

// Read implements store.Log.
func (l *log) Read(ctx context.Context, name string, after store.Cursor, limit int) ([]store.Record, error) {
	d := (*database)(l)
	h, err := d.open(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := h.page.QueryContext(ctx, name, int64(after), limit)
	if err != nil {
		return nil, d.explain(ctx, err)
	}
	defer rows.Close()
	var page []store.Record
	for bytes := 0; bytes <= store.MaxPageBytes && rows.Next(); {
		var r store.Record
		var milli int64
		if err := rows.Scan(&r.Cursor, &milli, &r.Data); err != nil {
			return nil, d.explain(ctx, err)
		}
		r.Time = time.UnixMilli(milli)
		page = append(page, r)
		bytes += len(r.Data)
	}
	if err := rows.Err(); err != nil {
		return nil, d.explain(ctx, err)
	}
	return page, nil
}

// logCondition returns the SQL condition, with its arguments, for the records of one
// log, or of all logs below it if name ends in *.
func logCondition(name string) (where string, args []any) {
	if prefix, all := store.ParseTrimName(name); all {
		return "log >= ?1 AND log < ?2", []any{prefix, prefixEnd(prefix)}
	}
	return "log = ?1", []any{name}
}

// Trim implements store.Log.
func (l *log) Trim(ctx context.Context, name string, keep store.Retention) (int, error) {
	d := (*database)(l)
	where, args := logCondition(name)
	cut, err := d.trimCursor(ctx, where, args, keep)
	if cut == 0 || err != nil {
		return 0, err
	}
	return d.removeRecords(ctx, where, args, cut)
}

// trimCursor returns the cursor of the youngest record that Trim must remove, 0 if it
// need not remove any.
func (d *database) trimCursor(ctx context.Context, where string, args []any, keep store.Retention) (int64, error) {
	h, err := d.open(ctx)
	if err != nil {
		return 0, err
	}
	rows, err := h.read.QueryContext(ctx, "SELECT cursor, time, length(data) FROM records WHERE "+where+" ORDER BY cursor DESC", args...)
	if err != nil {
		return 0, d.explain(ctx, err)
	}
	defer rows.Close()
	goes := keep.Exceeded(d.Now())
	for rows.Next() {
		var cursor, milli int64
		var bytes int
		if err := rows.Scan(&cursor, &milli, &bytes); err != nil {
			return 0, d.explain(ctx, err)
		}
		if goes(bytes, milli) {
			return cursor, nil
		}
	}
	return 0, d.explain(ctx, rows.Err())
}

// Drop implements store.Log.
func (l *log) Drop(ctx context.Context, name string) error {
	where, args := logCondition(name)
	_, err := (*database)(l).removeRecords(ctx, where, args, math.MaxInt64)
	return err
}

// removeRecords removes the records up to the cursor cut, and returns their space to
// the file system.
func (d *database) removeRecords(ctx context.Context, where string, args []any, cut int64) (removed int, err error) {
	text := "DELETE FROM records WHERE cursor IN (SELECT cursor FROM records WHERE " + where + " AND cursor <= ?3 LIMIT ?4)"
	args = append(args[:len(args):len(args)], make([]any, 2-len(args))...)
	args = append(args, cut, trimStep)
	for {
		var n int64
		err := d.inTransaction(ctx, func(_ *handles, tx *sql.Tx) error {
			result, err := tx.ExecContext(ctx, text, args...)
			if err != nil {
				return err
			}
			n, err = result.RowsAffected()
			return err
		})
		if err != nil {
			return removed, err
		}
		if removed += int(n); n < trimStep {
			break
		}
	}
	if removed == 0 {
		return 0, nil
	}
	return removed, d.inTransaction(ctx, func(h *handles, tx *sql.Tx) error {
		_, err := tx.StmtContext(ctx, h.vacuum).ExecContext(ctx)
		return err
	})
}
