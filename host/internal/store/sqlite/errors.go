package sqlite

import (
	"context"
	"database/sql"
	"errors"

	driver "modernc.org/sqlite"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// SQLite's result codes that mean something to a caller
// (https://www.sqlite.org/rescode.html). The low byte is the primary code.
const (
	codeBusy      = 5
	codeLocked    = 6
	codeReadOnly  = 8
	codeInterrupt = 9
	codeCorrupt   = 11
	codeFull      = 13
	codeNotADB    = 26

	codeShmSize = 10 | 19<<8 // no room for the file that readers share
)

// explain returns an error of the driver as one of package store's errors, with advice;
// nil for nil.
func (d *database) explain(ctx context.Context, err error) error {
	var e *driver.Error
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrTxDone) && ctx.Err() != nil:
		return ctx.Err()
	case !errors.As(err, &e):
		return err
	}
	if e.Code() == codeShmSize {
		return d.noSpaceError(err)
	}
	switch e.Code() & 0xff {
	case codeInterrupt:
		if ctx.Err() != nil {
			return ctx.Err()
		}
	case codeFull:
		return d.noSpaceError(err)
	case codeBusy, codeLocked:
		return toolerr.New(toolerr.Locked, "other processes locked %s for more than %s; try again: %w", d.path, d.Wait, err)
	case codeReadOnly:
		return toolerr.New(toolerr.ReadOnly, "%s cannot be written; choose another directory with --state: %w", d.path, err)
	case codeCorrupt, codeNotADB:
		return toolerr.New(toolerr.ExecutionError, "%s is damaged, or not a database; move it and its -wal and -shm files away, and the host creates a new one: %w", d.path, err)
	}
	return toolerr.New(toolerr.ExecutionError, "%s: %w", d.path, err)
}

// noSpaceError returns NO_SPACE for err.
func (d *database) noSpaceError(err error) error {
	return toolerr.New(toolerr.NoSpace, "no space for %s: the disk is full, or the database has reached its limit of %d bytes; free some space: %w", d.path, d.MaxBytes, err)
}

// isBusy reports whether err says that another process holds a lock of the database.
func isBusy(err error) bool {
	var e *driver.Error
	return errors.As(err, &e) && (e.Code()&0xff == codeBusy || e.Code()&0xff == codeLocked)
}
