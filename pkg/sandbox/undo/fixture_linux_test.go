package undo_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/undo"
)

func TestMain(m *testing.M) {
	proc.Init()
	if os.Getenv(undoEnv) != "" {
		if err := undoRecord(os.Args[1], os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// bench is a root whose commands have undo records.
type bench struct {
	*sandboxtest.CommandRoot
	store *undo.Store
	dir   string // of the store
}

// newBench makes a bench. It skips the test if this machine does not enforce
// the level.
func newBench(t testing.TB, level proc.Level) *bench {
	t.Helper()
	place := sandboxtest.MakeDir(t)
	return benchIn(t, level, place, filepath.Join(place, "state", "commands"))
}

// benchIn makes a bench in place, with the records in dir.
func benchIn(t testing.TB, level proc.Level, place, dir string) *bench {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	c := proc.Config{Level: level, Hidden: []string{filepath.Dir(dir)}, UndoDir: dir}
	if modules := os.Getenv("UNDO_COST_MODULES"); modules != "" {
		c.Environ = append(c.Environ, "GOMODCACHE="+modules)
	}
	return &bench{CommandRoot: sandboxtest.NewCommandRoot(t, place, c), store: undo.New(dir), dir: dir}
}

// run runs a script and returns the id of its record and its output.
func (b *bench) run(script string) (id, output string) {
	b.T.Helper()
	result, output := b.Run(script)
	return result.Undo, output
}

// undo undoes a command.
func (b *bench) undo(id string) undo.Report {
	b.T.Helper()
	record, err := b.store.Open(id)
	require.NoError(b.T, err)
	report, err := record.Undo(nil)
	require.NoError(b.T, err)
	return report
}

func (b *bench) du(id string) (size int64, err error) {
	err = filepath.WalkDir(filepath.Join(b.dir, id), func(_ string, e fs.DirEntry, err error) error {
		if info, infoErr := e.Info(); infoErr == nil {
			size += info.Size()
		}
		return err
	})
	return size, err
}
