package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// applicationID marks the database as this store's: "tlrm".
const applicationID = 0x746c726d

// schema returns the migration steps, one for each version. A released step is never
// changed; user_version counts the applied ones.
//
// AUTOINCREMENT prevents versions and cursors from being reused. Since writers take
// turns, versions and cursors become readable in ascending order.
func schema() []string {
	return []string{`
CREATE TABLE keys (
	version INTEGER PRIMARY KEY AUTOINCREMENT,
	key     TEXT NOT NULL UNIQUE,
	value   BLOB NOT NULL,
	expires INTEGER NOT NULL -- Unix milliseconds; 0: never
) STRICT;
CREATE INDEX keys_expires ON keys (expires) WHERE expires > 0;
CREATE TABLE records (
	cursor INTEGER PRIMARY KEY AUTOINCREMENT,
	log    TEXT NOT NULL,
	time   INTEGER NOT NULL, -- Unix milliseconds
	data   BLOB NOT NULL
) STRICT;
CREATE INDEX records_log ON records (log, cursor);`}
}

// migrate brings the database to this version's schema. It returns an error for a newer
// schema and for another program's database. If several processes call it, one of them
// changes the database.
func (d *database) migrate(ctx context.Context, db *sql.DB) error {
	have, err := schemaVersion(ctx, db)
	if err == nil && have == len(schema()) {
		return nil
	}
	if err != nil {
		return err
	}
	if have > len(schema()) {
		return toolerr.New(toolerr.ExecutionError,
			"%s has schema %d, and this version knows %d: it was %w of toolroom; update this one, or choose another directory with --state",
			d.path, have, len(schema()), store.ErrNewer)
	}
	return d.applyMigrations(ctx, db)
}

// applyMigrations applies the steps of schema that the database does not have, all of them
// to a new one. After an error it has applied none.
func (d *database) applyMigrations(ctx context.Context, db *sql.DB) error {
	// auto_vacuum has an effect only before the first table is created. The change to
	// WAL does not wait for other processes that make it, too: retryBusy does.
	for _, pragma := range []string{fmt.Sprint("page_size=", pageSize), "auto_vacuum=incremental", "journal_mode=wal"} {
		if _, err := db.ExecContext(ctx, "PRAGMA "+pragma); err != nil {
			return err
		}
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing, after Commit
	have, err := schemaVersion(ctx, tx)
	if err != nil {
		return err
	}
	steps := schema()
	for ; have < len(steps); have++ {
		if _, err := tx.ExecContext(ctx, steps[have]); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d", applicationID, have)); err != nil {
		return err
	}
	return tx.Commit()
}

// schemaVersion returns the schema version of a database, 0 for an empty one. It
// returns an error for another program's database.
func schemaVersion(ctx context.Context, q interface {
	QueryRowContext(context.Context, string, ...any) *sql.Row
}) (int, error) {
	var id, have, objects int
	err := q.QueryRowContext(ctx, `SELECT
		(SELECT application_id FROM pragma_application_id),
		(SELECT user_version FROM pragma_user_version),
		(SELECT count(*) FROM sqlite_schema)`).Scan(&id, &have, &objects)
	if err == nil && id != applicationID && (id != 0 || have != 0 || objects != 0) {
		err = toolerr.New(toolerr.ExecutionError, "the database is another program's; choose another directory with --state")
	}
	return have, err
}

// statements are the prepared statements of a connection pair.
type statements struct {
	get, list, page                                            *sql.Stmt // of those that read
	version, put, removeKey, append, appendMany, sweep, vacuum *sql.Stmt // of the one that writes
}

// prepare prepares all statements, those that read on read and the others on write.
func (s *statements) prepare(ctx context.Context, read, write *sql.DB) error {
	for _, p := range []struct {
		stmt **sql.Stmt
		db   *sql.DB
		text string
	}{
		{&s.get, read, `SELECT value, version, expires FROM keys WHERE key = ?1 AND (expires = 0 OR expires > ?2)`},
		{&s.list, read, `SELECT key, value, version, expires FROM keys
			WHERE key >= ?1 AND key > ?2 AND key < ?3 AND (expires = 0 OR expires > ?4) ORDER BY key LIMIT ?5`},
		{&s.page, read, `SELECT cursor, time, data FROM records WHERE log = ?1 AND cursor > ?2 ORDER BY cursor LIMIT ?3`},
		{&s.version, write, `SELECT version FROM keys WHERE key = ?1 AND (expires = 0 OR expires > ?2)`},
		{&s.put, write, `INSERT OR REPLACE INTO keys (key, value, expires) VALUES (?1, ?2, ?3)`},
		{&s.removeKey, write, `DELETE FROM keys WHERE key = ?1`},
		{&s.append, write, insertStatement(1)},
		{&s.appendMany, write, insertStatement(rowsPerInsert)},
		{&s.sweep, write, `DELETE FROM keys WHERE version IN (SELECT version FROM keys WHERE expires > 0 AND expires <= ?1 LIMIT 1000)`},
		{&s.vacuum, write, `PRAGMA incremental_vacuum`},
	} {
		var err error
		if *p.stmt, err = p.db.PrepareContext(ctx, p.text); err != nil {
			return err
		}
	}
	return nil
}

// insertStatement returns the SQL that adds this number of records with the log ?1 and
// the time ?2.
func insertStatement(rows int) string {
	return "INSERT INTO records (log, time, data) VALUES " + strings.Repeat("(?1, ?2, ?), ", rows-1) + "(?1, ?2, ?)"
}
