package sandbox

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// unchanged ends the text of every error after which the file is as it was.
const unchanged = "nothing was changed"

// explainWriteError converts the error of a write into an error for the caller
// that says what to do next, and that the file is unchanged; nil stays nil. The code
// tells the cause: DENIED_PATH, CONFLICT (replaced meanwhile), NO_SPACE, TOO_LARGE,
// READ_ONLY or PERMISSION_DENIED. It uses explainReadError for errors of the resolution.
func (f *FS) explainWriteError(name string, err error) error {
	shown := pathname.Escape(name)
	var ours *toolerr.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ours):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return toolerr.New(toolerr.CodeOf(err), "writing %s was stopped, %s: %w", shown, unchanged, err)
	case errors.Is(err, errDenied):
		return toolerr.New(toolerr.DeniedPath, "%s looks like a secret (credentials, private key or the like) and is not written: ask the user, who can allow it with --allow-path", shown)
	case errors.Is(err, errChanged):
		return toolerr.New(toolerr.Conflict, "%s or a parent directory was replaced or moved during the write, %s: check the current state and try again", shown, unchanged)
	case errors.Is(err, syscall.ENOSPC):
		return toolerr.New(toolerr.NoSpace, "%s cannot be written: no space is left on the device, %s; free some space first: %w", shown, unchanged, withoutOpAndPath(err))
	case errors.Is(err, syscall.EDQUOT):
		return toolerr.New(toolerr.NoSpace, "%s cannot be written: the disk quota is used up, %s; free some space first: %w", shown, unchanged, withoutOpAndPath(err))
	case errors.Is(err, syscall.EFBIG):
		return toolerr.New(toolerr.TooLarge, "%s cannot be written: too large for the file system or a limit of this process, %s: %w", shown, unchanged, withoutOpAndPath(err))
	case errors.Is(err, syscall.EROFS):
		return toolerr.New(toolerr.ReadOnly, "%s cannot be written: it is on a read-only file system: %w", shown, withoutOpAndPath(err))
	case errors.Is(err, syscall.ETXTBSY):
		return toolerr.New(toolerr.PermissionDenied, "%s cannot be written in place: it is a running program, %s: %w", shown, unchanged, withoutOpAndPath(err))
	case errors.Is(err, syscall.EPERM):
		return toolerr.New(toolerr.PermissionDenied, "%s cannot be written: operation not permitted (immutable or append-only? see lsattr), %s: %w", shown, unchanged, withoutOpAndPath(err))
	case errors.Is(err, fs.ErrPermission):
		return toolerr.New(toolerr.PermissionDenied, "%s cannot be written: this user has no write permission, %s; ask for it (chmod u+w), or continue without: %w", shown, unchanged, withoutOpAndPath(err))
	case errors.Is(err, errOutside), errors.Is(err, errPseudo), errors.Is(err, errNotDirectory), errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENAMETOOLONG):
		return f.explainReadError(name, err)
	}
	var lack *missingError
	if errors.As(err, &lack) && errors.Is(err, fs.ErrNotExist) {
		return f.notFound(name, lack)
	}
	return toolerr.New(toolerr.CodeOf(err), "%s cannot be written, %s: %w", shown, unchanged, withoutOpAndPath(err))
}
