package sandboxtest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// State describes a tree, a line for each entry: type, mode, owner, time of change,
// content or target, and which names are the same file.
func State(t testing.TB, root string) string {
	t.Helper()
	var lines []string
	first := map[uint64]string{} // names of files that have several
	require.NoError(t, filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, name)
		stat := info.Sys().(*syscall.Stat_t)
		line := fmt.Sprintf("%s %v %d:%d %d.%09d", rel, info.Mode(), stat.Uid, stat.Gid, stat.Mtim.Sec, stat.Mtim.Nsec)
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, _ := os.Readlink(name)
			line += " -> " + target
		case info.Mode().IsRegular():
			content, err := os.ReadFile(name)
			if err != nil && !errors.Is(err, fs.ErrPermission) {
				return err
			}
			line += fmt.Sprintf(" %d %x", info.Size(), sha256.Sum256(content))
			if stat.Nlink > 1 {
				if other, ok := first[stat.Ino]; ok {
					line += " same as " + other
				} else {
					first[stat.Ino] = rel
				}
			}
		}
		lines = append(lines, line)
		return nil
	}))
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}
