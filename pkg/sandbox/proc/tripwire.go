package proc

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// What a tripwire keeps of files at most.
const (
	wireFiles = 4000
	wireBytes = 256 << 10 // a file
)

// settings are what agents and editors start programs by. The kernel cannot
// keep a file from being made in a directory that may be written.
var settings = [...]string{
	".mcp.json", ".envrc", ".claude/settings.json", ".claude/settings.local.json", ".codex/config.toml", ".cursor/mcp.json",
	".gemini/settings.json", ".vscode/tasks.json",
}

// tripwire remembers files that a command can write although it must not, and
// takes back what it did to them. Everything goes by the descriptor of the
// root, so that no link that the command left leads out of it.
type tripwire struct {
	roots []*os.Root
	files []wiredFile
}

type wiredFile struct {
	root    *os.Root
	name    string // in root
	path    string
	git     bool            // a repository's settings, of which some may change
	entries map[string]bool // of a directory that gets no more; nil: it is a file
	there   bool
	mode    fs.FileMode
	content []byte
}

// stretch remembers the files before the command starts. rules say what is
// protected, and what the user lets be written.
func stretch(s *spec, rules Rules) *tripwire {
	w := &tripwire{}
	for _, r := range s.Roots {
		if r.ReadOnly {
			continue
		}
		root, err := os.OpenRoot(r.Path)
		if err != nil {
			continue
		}
		w.roots = append(w.roots, root)
		names := slices.Clone(settings[:])
		if s.Level == L1 {
			for _, path := range s.Guard {
				if rel, err := filepath.Rel(r.Path, path); err == nil && filepath.IsLocal(rel) {
					names = append(names, filesBeneath(root, rel)...)
				}
			}
		}
		for _, name := range names {
			if rules.Protected(filepath.Join(r.Path, name)) != "" {
				w.add(root, r.Path, name, false)
			}
		}
		for _, path := range s.gitConfigs {
			if rel, err := filepath.Rel(r.Path, path); err == nil && filepath.IsLocal(rel) {
				w.add(root, r.Path, rel, true)
				w.addRepository(root, r.Path, filepath.Dir(rel), s.Level == L2 && slices.Contains(s.Guard, filepath.Join(filepath.Dir(path), "hooks")))
			}
		}
		for _, path := range s.Guard { // of a worktree
			if rel, err := filepath.Rel(r.Path, path); err == nil && filepath.IsLocal(rel) && filepath.Base(rel) == "commondir" {
				w.add(root, r.Path, filepath.Join(filepath.Dir(rel), worktreeConfig), true)
			}
		}
	}
	if len(w.files) >= wireFiles {
		s.gaps = append(s.gaps, "there are more settings and repositories in the roots than are watched")
	}
	return w
}

// worktreeConfig is what a worktree, the first one among them, may have as settings of
// its own.
const worktreeConfig = "config.worktree"

// addRepository adds what may not be in a repository, and makes git look elsewhere for
// settings and hooks, or run them. The kernel may keep the hooks from being written.
func (w *tripwire) addRepository(root *os.Root, dir, name string, kept bool) {
	w.add(root, dir, filepath.Join(name, "commondir"), false)
	w.add(root, dir, filepath.Join(name, worktreeConfig), true)
	hooks := filepath.Join(name, "hooks")
	info, err := root.Lstat(hooks)
	switch {
	case err != nil:
		w.add(root, dir, hooks, false)
	case !kept && info.IsDir() && len(w.files) < wireFiles:
		f := wiredFile{root: root, name: hooks, path: filepath.Join(dir, hooks), there: true, entries: map[string]bool{}}
		for _, entry := range f.list() {
			f.entries[entry] = true
		}
		w.files = append(w.files, f)
	}
}

// list are the names in a directory.
func (f *wiredFile) list() (names []string) {
	if dir, err := f.root.Open(f.name); err == nil {
		names, _ = dir.Readdirnames(-1)
		dir.Close()
	}
	return names
}

// checkEntries takes back what has been put into a directory.
func (f *wiredFile) checkEntries() (taken []string) {
	if info, err := f.root.Lstat(f.name); err == nil && f.linkAbove() == "" && !info.IsDir() {
		if f.root.RemoveAll(f.name) == nil {
			taken = append(taken, f.path)
		}
		return taken
	}
	for _, name := range f.list() {
		if !f.entries[name] && f.root.RemoveAll(filepath.Join(f.name, name)) == nil {
			taken = append(taken, filepath.Join(f.path, name))
		}
	}
	return taken
}

// filesBeneath lists a file, or the files directly in a directory.
func filesBeneath(root *os.Root, name string) []string {
	info, err := root.Lstat(name)
	if err != nil || !info.IsDir() {
		return []string{name}
	}
	dir, err := root.Open(name)
	if err != nil {
		return nil
	}
	defer dir.Close()
	entries, _ := dir.ReadDir(wireFiles)
	var names []string
	for _, entry := range entries {
		names = append(names, filepath.Join(name, entry.Name()))
	}
	return names
}

func (w *tripwire) add(root *os.Root, dir, name string, git bool) {
	if len(w.files) >= wireFiles || slices.ContainsFunc(w.files, func(f wiredFile) bool { return f.root == root && f.name == name }) {
		return
	}
	f := wiredFile{root: root, name: name, path: filepath.Join(dir, name), git: git}
	if f.linkAbove() != "" {
		return // the user's own arrangement
	}
	info, err := root.Lstat(name)
	if err == nil {
		if !info.Mode().IsRegular() || info.Size() > wireBytes {
			return
		}
		if f.content, err = f.read(); err != nil {
			return
		}
		f.there, f.mode = true, info.Mode().Perm()
	}
	w.files = append(w.files, f)
}

// read never waits: what became a fifo is not opened as one.
func (f *wiredFile) read() ([]byte, error) {
	file, err := f.root.OpenFile(f.name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, wireBytes+1))
}

// check takes back what must not have changed, and returns its paths.
func (w *tripwire) check() (taken []string) {
	for i := range w.files {
		f := &w.files[i]
		if f.entries != nil {
			taken = append(taken, f.checkEntries()...)
			continue
		}
		info, err := f.root.Lstat(f.name)
		if errors.Is(err, fs.ErrNotExist) && f.linkAbove() == "" && (!f.there || f.git) {
			continue // a repository may be deleted
		}
		if err == nil && info.Mode().IsRegular() && (f.there || f.git) {
			now, err := f.read()
			if err == nil && f.there && bytes.Equal(now, f.content) || err == nil && f.git && !runsMore(f.content, now) {
				continue
			}
		}
		if f.restore() == nil {
			taken = append(taken, f.path)
		}
	}
	return taken
}

// close frees the roots.
func (w *tripwire) close() {
	for _, root := range w.roots {
		root.Close()
	}
}

// linkAbove finds a directory of the name that is a link.
func (f *wiredFile) linkAbove() string {
	for dir := filepath.Dir(f.name); dir != "."; dir = filepath.Dir(dir) {
		if info, err := f.root.Lstat(dir); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return dir
		}
	}
	return ""
}

func (f *wiredFile) restore() error {
	for link := f.linkAbove(); link != ""; link = f.linkAbove() {
		if err := f.root.Remove(link); err != nil {
			return err
		}
	}
	if err := f.root.RemoveAll(f.name); err != nil || !f.there {
		return err
	}
	if err := f.root.MkdirAll(filepath.Dir(f.name), 0o755); err != nil {
		return err
	}
	if err := f.root.WriteFile(f.name, f.content, f.mode); err != nil {
		return err
	}
	return f.root.Chmod(f.name, f.mode)
}

// runsMore reports whether a repository's settings run programs that they did
// not run before, or are no longer understood.
func runsMore(before, now []byte) bool {
	had, _ := sandbox.GitRuns(before)
	has, ok := sandbox.GitRuns(now)
	return !ok || slices.ContainsFunc(has, func(setting string) bool { return !slices.Contains(had, setting) })
}
