package sandboxtest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// DescribeTree returns a text with a line for each file below root: type, mode,
// owner, time, content or target, attributes, and which names are hard links of
// the same file. Equal trees have equal texts.
func DescribeTree(t testing.TB, root string) string {
	t.Helper()
	var lines []string
	first := map[uint64]string{} // first names of files with several hard links, by inode
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
		lines = append(lines, line+listedAttributes(name))
		return nil
	}))
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// listedAttributes returns the user attributes and the access lists of a file.
func listedAttributes(name string) (text string) {
	list := make([]byte, 4096)
	n, err := unix.Llistxattr(name, list)
	if err != nil {
		return "" // a file system without attributes
	}
	names := strings.Split(string(list[:n]), "\x00")
	sort.Strings(names)
	for _, attribute := range names {
		if strings.HasPrefix(attribute, "user.") || strings.HasPrefix(attribute, "system.posix_acl_") {
			value := make([]byte, 4096)
			n, err := unix.Lgetxattr(name, attribute, value)
			text += fmt.Sprintf(" %s=%q %v", attribute, value[:max(n, 0)], err)
		}
	}
	return text
}

// ComparableState is DescribeTree without what differs between two runs of the same
// commands: a time between began and an hour later becomes "now", and packs, indexes and
// logs of git are left out or shown by name. The times of git's objects become "now",
// too: git sets them if it reads a file whose time equals the index's.
func ComparableState(t testing.TB, root string, began time.Time) string {
	t.Helper()
	var lines []string
	for _, line := range strings.Split(DescribeTree(t, root), "\n") {
		if match := timeOfEntry.FindStringSubmatchIndex(line); match != nil {
			at, err := strconv.ParseInt(line[match[2]:match[3]], 10, 64)
			recent := err == nil && at >= began.Unix() && at < began.Unix()+3600
			if recent || strings.Contains(line[:match[0]], ".git/objects/") {
				line = line[:match[2]] + "now" + line[match[1]:]
			}
		}
		if match := gitState.FindString(line); match != "" {
			line = match
		}
		if strings.Contains(line, ".git/objects/pack/") || strings.Contains(line, ".git/objects/info/packs ") {
			continue // two packs of the same objects can differ
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

var (
	timeOfEntry = regexp.MustCompile(` [-a-zA-Z]+ \d+:\d+ (-?\d+)\.(\d{9})`)
	gitState    = regexp.MustCompile(`^(.*/)?\.git(/worktrees/[^/]*)?/(index|logs/.*) `)
)
