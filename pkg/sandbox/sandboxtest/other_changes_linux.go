package sandboxtest

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// OtherChanges are random changes that a test, as another program, makes in a root.
type OtherChanges struct {
	Told []string // the changes, for messages

	root     string
	contents map[string]string      // of the files that it has written, by path
	modes    map[string]fs.FileMode // of the entries whose mode it has set
	values   map[string]string      // of the attribute user.theirs that it has set
	times    map[string]string      // content of the regular files whose time it has set
	missing  []string               // paths that it has removed
}

// theirTime is the time that MakeOtherChanges sets.
var theirTime = time.Unix(1_500_000_000, 500)

// MakeOtherChanges makes one to four random changes in root: it creates, writes, replaces,
// removes and moves files and directories, and changes modes, times and attributes.
func MakeOtherChanges(t testing.TB, r *rand.Rand, root string) *OtherChanges {
	t.Helper()
	o := &OtherChanges{root: root, contents: map[string]string{}, modes: map[string]fs.FileMode{}, values: map[string]string{}, times: map[string]string{}}
	before := map[string]bool{}
	filepath.WalkDir(root, func(path string, _ fs.DirEntry, _ error) error { //nolint:errcheck // what it cannot read is not compared
		before[path] = true
		return nil
	})
	for i := range 1 + r.IntN(4) {
		o.change(r, i)
	}
	// Only what is left of the changes has to stay.
	for path, content := range o.contents {
		if is, err := os.ReadFile(path); err != nil || string(is) != content {
			delete(o.contents, path)
		}
	}
	for path, mode := range o.modes {
		if info, err := os.Lstat(path); err != nil || info.Mode() != mode {
			delete(o.modes, path)
		}
	}
	for path, value := range o.values {
		if attribute(path) != value {
			delete(o.values, path)
		}
	}
	for path := range o.times {
		info, err := os.Lstat(path)
		content, readErr := os.ReadFile(path)
		if o.times[path] = string(content); err != nil || readErr != nil || !info.ModTime().Equal(theirTime) {
			delete(o.times, path)
		}
	}
	o.missing = slices.DeleteFunc(o.missing, func(path string) bool {
		_, err := os.Lstat(path)
		return err == nil || !before[path]
	})
	return o
}

// attribute returns the attribute user.theirs of a file, "" for none.
func attribute(path string) string {
	value := make([]byte, 64)
	n, err := unix.Lgetxattr(path, "user.theirs", value)
	if err != nil {
		return ""
	}
	return string(value[:n])
}

// change makes the change with the number n.
func (o *OtherChanges) change(r *rand.Rand, n int) {
	var all, dirs []string
	filepath.WalkDir(o.root, func(path string, e fs.DirEntry, err error) error { //nolint:errcheck // see below
		if err != nil {
			return nil // a closed directory
		}
		if e.IsDir() && e.Name() == ".git" {
			return fs.SkipDir
		}
		if e.IsDir() {
			dirs = append(dirs, path)
		}
		if path != o.root {
			all = append(all, path)
		}
		return nil
	})
	path := o.root
	if len(all) > 0 {
		path = all[r.IntN(len(all))]
	}
	free := filepath.Join(dirs[r.IntN(len(dirs))], []string{"a", "b", "x", "y", "n1", "theirs"}[r.IntN(6)])
	content := fmt.Sprintf("theirs %d\n", n)
	info, err := os.Lstat(path)
	isRegular, isLink := err == nil && info.Mode().IsRegular(), err != nil || info.Mode()&fs.ModeSymlink != 0
	kind := r.IntN(10)
	did := func(kind string, names ...string) {
		o.Told = append(o.Told, kind+" "+strings.ReplaceAll(strings.Join(names, " "), o.root+"/", ""))
	}
	switch {
	case path == o.root || kind < 2: // another program creates a file, unless there is one
		if f, err := os.OpenFile(free, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644); err == nil {
			f.WriteString(content) //nolint:errcheck // compared afterwards
			f.Close()              //nolint:errcheck // compared afterwards
			o.contents[free] = content
			did("create", free)
		}
	case kind == 2 && isRegular:
		os.WriteFile(path, []byte(content), 0o644) //nolint:errcheck // compared afterwards
		o.contents[path] = content
		did("write", path)
	case kind == 3 && isRegular:
		os.WriteFile(path+".new", []byte(content), 0o644) //nolint:errcheck // compared afterwards
		os.Rename(path+".new", path)                      //nolint:errcheck // compared afterwards
		o.contents[path] = content
		did("replace", path)
	case kind == 4:
		os.RemoveAll(path) //nolint:errcheck // compared afterwards
		o.missing = append(o.missing, path)
		did("remove", path)
	case kind == 5:
		to := fmt.Sprintf("%s.moved%d", path, n)
		if before, err := os.ReadFile(path); err == nil && isRegular {
			o.contents[to] = string(before)
		}
		os.Rename(path, to) //nolint:errcheck // compared afterwards
		o.missing = append(o.missing, path)
		did("move", path, to)
	case kind == 6 && !isLink:
		mode := info.Mode()&^fs.ModePerm | 0o700 | fs.FileMode(1+n)
		os.Chmod(path, mode) //nolint:errcheck // compared afterwards
		o.modes[path] = mode
		did("chmod", path)
	case kind == 7 && !isLink:
		unix.Lsetxattr(path, "user.theirs", []byte(content), 0) //nolint:errcheck // compared afterwards
		o.values[path] = content
		did("setxattr", path)
	case kind == 8 && isRegular:
		os.Chtimes(path, theirTime, theirTime) //nolint:errcheck // compared afterwards
		o.times[path] = ""
		did("touch", path)
	case kind == 9:
		if os.Mkdir(free, 0o755) == nil {
			os.WriteFile(free+"/in", []byte(content), 0o644) //nolint:errcheck // compared afterwards
			o.contents[free+"/in"] = content
			did("mkdir", free)
		}
	}
}

// RequireKept fails the test if one of the changes was lost. After an undo, an entry may
// be elsewhere, since undo moves directories back with what others have created in them.
// An entry of which others have changed only mode or attributes may be gone, as part of a
// directory that the command made. Then also the times of files are not compared, and what others have removed can be there
// again: undo restores a file that a command replaced, even if they removed the new one.
func (o *OtherChanges) RequireKept(t testing.TB, afterUndo bool, why string) {
	t.Helper()
	why = fmt.Sprintf("%s\n-- others: %q", why, o.Told)
	places := func(path string) []string { return []string{path} }
	if afterUndo {
		byName := map[string][]string{}
		require.NoError(t, filepath.WalkDir(o.root, func(path string, _ fs.DirEntry, err error) error {
			byName[filepath.Base(path)] = append(byName[filepath.Base(path)], path)
			return err
		}))
		places = func(path string) []string { return byName[filepath.Base(path)] }
	}
	for path, content := range o.contents {
		require.True(t, slices.ContainsFunc(places(path), func(path string) bool {
			is, err := os.ReadFile(path)
			return err == nil && string(is) == content
		}), "content of %s: %s", path, why)
	}
	isGone := func(path string) bool {
		_, err := os.Lstat(path)
		return afterUndo && err != nil
	}
	for path, mode := range o.modes {
		require.True(t, isGone(path) || slices.ContainsFunc(places(path), func(path string) bool {
			info, err := os.Lstat(path)
			return err == nil && info.Mode() == mode
		}), "mode of %s: %s", path, why)
	}
	for path, value := range o.values {
		require.True(t, isGone(path) || slices.ContainsFunc(places(path), func(path string) bool { return attribute(path) == value }), "attribute of %s: %s", path, why)
	}
	if afterUndo {
		return
	}
	for path, content := range o.times {
		info, err := os.Lstat(path)
		is, readErr := os.ReadFile(path)
		if err == nil && readErr == nil && string(is) == content {
			require.True(t, info.ModTime().Equal(theirTime), "time of %s: %s", path, why)
		}
	}
	for _, path := range o.missing {
		_, err := os.Lstat(path)
		require.Error(t, err, "%s is there again: %s", path, why)
	}
}
