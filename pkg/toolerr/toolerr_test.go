package toolerr_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func TestCodeOf(t *testing.T) {
	own := toolerr.New(toolerr.Stale, "a.go changed since it was viewed")
	for _, tc := range []struct {
		name string
		err  error
		want toolerr.Code
	}{
		{"nil", nil, ""},
		{"own", own, toolerr.Stale},
		{"own, wrapped", fmt.Errorf("edit: %w", own), toolerr.Stale},
		{"cancelled", fmt.Errorf("walk: %w", context.Canceled), toolerr.Cancelled},
		{"deadline", context.DeadlineExceeded, toolerr.Timeout},
		{"missing", &fs.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}, toolerr.NotFound},
		{"exists", fs.ErrExist, toolerr.Exists},
		{"permission", os.ErrPermission, toolerr.PermissionDenied},
		{"disk full", &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, toolerr.NoSpace},
		{"read-only file system", syscall.EROFS, toolerr.ReadOnly},
		{"anything else", errors.New("boom"), toolerr.ExecutionError},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.Equal(t, tc.want, toolerr.CodeOf(tc.err))
		})
	}
}

func TestErrorKeepsItsCause(t *testing.T) {
	err := toolerr.New(toolerr.NotFound, "no such file %s: %w", "x", fs.ErrNotExist)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.EqualError(t, err, "no such file x: file does not exist")
	require.ErrorIs(t, fmt.Errorf("view: %w", err), toolerr.New(toolerr.NotFound, ""))
	require.NotErrorIs(t, err, toolerr.New(toolerr.Stale, ""))
}

func TestWithCopies(t *testing.T) {
	base := toolerr.New(toolerr.NotUnique, "2 matches")
	more := base.With("matches", 2).With("line", 7)
	require.Empty(t, base.Extra())
	require.Equal(t, map[string]any{"matches": 2, "line": 7}, more.Extra())
	more.Extra()["matches"] = 3
	require.Equal(t, 2, more.Extra()["matches"])
}

// The codes are public: this is their snapshot. Adding one is a deliberate
// change of this test; renaming or removing one breaks clients.
func TestCodesAreStable(t *testing.T) {
	seen := map[toolerr.Code]bool{}
	for _, code := range toolerr.Codes() {
		require.Regexp(t, regexp.MustCompile(`^[A-Z][A-Z_]+[A-Z]$`), string(code))
		require.False(t, seen[code], "%s is listed twice", code)
		seen[code] = true
	}
	want, err := os.ReadFile("testdata/codes.txt")
	require.NoError(t, err)
	var got string
	for _, code := range toolerr.Codes() {
		got += string(code) + "\n"
	}
	require.Equal(t, string(want), got)
}
