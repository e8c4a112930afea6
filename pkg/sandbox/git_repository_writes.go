package sandbox

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/toolroom-mcp/toolroom/internal/gitfile"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// checkRepositoryWrite refuses to write a repository's hooks, and to write the file that
// completes a repository whose settings or hooks run a program. It goes by the
// content of the directories above the target, not by their names.
// checkConfigWrite checks the settings of a repository.
//
// The files of a directory can be written in any order. checkRepositoryWrite judges the
// repository at the last file that git needs to recognize it.
func (t *Target) checkRepositoryWrite() error {
	if t.fs.matchesAny(t.fs.writes().allow, t.Path) {
		return nil
	}
	var refused error
	t.eachGitDir(func(d gitDir) bool {
		why := ""
		switch {
		case d.before && !slices.Contains(gitEntries, strings.ToLower(pathname.Fold(d.rest[0]))):
		case d.before:
			why = gitFileReason(d.rest)
		case d.after:
			why = d.unsafeRepositoryReason()
		}
		if why != "" {
			refused = t.errProtected(why)
		}
		return refused == nil
	})
	if refused == nil {
		why := t.hookOutsideReason()
		if why == "" {
			why = t.templateReason()
		}
		if why == "" {
			why = t.gitProgramReason()
		}
		if why == "" {
			why = t.linkedSettingsReason()
		}
		if why != "" {
			refused = t.errProtected(why)
		}
	}
	return refused
}

// gitEntries lists the entries of a repository that git runs or follows. If a
// repository lies among other files, only these entries belong to it.
var gitEntries = []string{"hooks", "info", "modules", "worktrees", "commondir", "gitdir", "remotes", "branches", "rebase-merge", "rebase-apply", "sequencer", "index", "merge_rr", "merge_autostash"}

// recheckRepositoryWrite repeats checkRepositoryWrite immediately before the file gets
// its name: another program may have written another part of a repository meanwhile. It
// returns CONFLICT if the target only now became git settings.
func (t *Target) recheckRepositoryWrite() error {
	if err := t.checkRepositoryWrite(); err != nil {
		return err
	}
	if t.gitUnchecked && !t.fs.matchesAny(t.fs.writes().allow, t.Path) && t.isGitConfig() {
		return toolerr.New(toolerr.Conflict, "%s became git settings during the write, %s: try again", pathname.Escape(t.name), unchanged)
	}
	return nil
}

// errProtected returns DENIED_PATH for a target that must not be written. why completes
// "it …" with the reason, such as "is run by git".
func (t *Target) errProtected(why string) error {
	return toolerr.New(toolerr.DeniedPath, "%s is not written: it %s; ask the user, who can allow it with --allow-write", pathname.Escape(t.name), why)
}

// gitDir is a directory above a target that git takes for a repository.
type gitDir struct {
	*writableDir
	rest          []string // components from it to the target
	before, after bool     // whether it is a repository before and after the target is written
}

// eachGitDir calls yield with each existing directory above the target that git takes for
// a repository, or will take after the write, until yield returns false.
func (t *Target) eachGitDir(yield func(gitDir) bool) {
	for i := len(t.real); i >= 0; i-- {
		h, closeDir := t.fs.reopenDir(t.root, t.real[:i])
		if h == nil {
			continue
		}
		f, err := h.writableDir()
		closeDir()
		if err != nil {
			continue
		}
		d := gitDir{writableDir: f, rest: slices.Concat(t.real[i:], t.rest, []string{t.base})}
		made := d.rest[0]
		if len(d.rest) > 1 && pathname.EqualFold(pathname.Fold(made), "HEAD") {
			made = "" // a directory does not complete a repository
		}
		d.before, d.after = d.isRepository(""), d.isRepository(made)
		more := !d.after || yield(d)
		f.close()
		if !more {
			return
		}
	}
}

// isRepository reports whether git takes the directory for a repository if it also
// gets an entry of the given name. It does what is_git_directory in git's setup.c
// does, without reading HEAD.
func (d gitDir) isRepository(made string) bool {
	has := func(name string) bool {
		if pathname.EqualFold(pathname.Fold(made), name) {
			return true
		}
		st, err := d.lstat(name)
		return err == nil && !(name == "HEAD" && st.Mode.IsDir())
	}
	return has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

// unsafeRepositoryReason returns why a directory must not become a git repository: it
// would run a program, or cannot be checked. The words are for use after the target's
// name; "" means no reason.
func (d gitDir) unsafeRepositoryReason() string {
	const makes = "makes a git repository of its directory, "
	if _, err := d.lstat("commondir"); err == nil || pathname.EqualFold(pathname.Fold(d.rest[0]), "commondir") {
		return makes + "with settings from elsewhere"
	}
	for _, name := range []string{"config", "config.worktree"} {
		st, err := d.lstat(name)
		if err != nil {
			continue
		}
		if st.Mode.IsDir() {
			continue // git reads no settings from a directory
		}
		if !st.Mode.IsRegular() {
			return makes + "whose " + name + " is a " + typeNameOf(st.Mode)
		}
		settings, ok := d.dangerousSettings(name)
		if !ok {
			return makes + "whose " + name + " cannot be checked"
		}
		if len(settings) > 0 {
			return makes + "whose " + name + " has " + pathname.Escape(settings[0])
		}
	}
	st, err := d.lstat("hooks")
	if err != nil {
		return ""
	}
	if !st.Mode.IsDir() {
		return makes + "whose hooks are a " + typeNameOf(st.Mode)
	}
	hooks, err := d.openChild("hooks")
	if err != nil {
		return makes + "whose hooks cannot be listed"
	}
	defer hooks.close()
	names := hooks.entryNames(maxHooks)
	if len(names) == maxHooks || slices.ContainsFunc(names, func(name string) bool { return !strings.HasSuffix(name, ".sample") }) {
		return makes + "which has hooks"
	}
	return ""
}

// maxHooks bounds the entries of a hooks directory that are read.
const maxHooks = 1000

// dangerousSettings returns the result of gitfile.DangerousSettings for a file of the
// directory. ok is also false if the file is missing, too large or cannot be read.
func (d gitDir) dangerousSettings(name string) (settings []string, ok bool) {
	file, _, err := d.open(name, os.O_RDONLY)
	if err != nil {
		return nil, false
	}
	defer file.Close()
	config, err := io.ReadAll(io.LimitReader(file, maxGitConfig+1))
	if err != nil || len(config) > maxGitConfig {
		return nil, false
	}
	return gitfile.DangerousSettings(config)
}

// isGitConfig reports whether the target holds the settings of a repository, whatever
// the repository's name.
func (t *Target) isGitConfig() (found bool) {
	t.eachGitDir(func(d gitDir) bool {
		last := pathname.Fold(d.rest[len(d.rest)-1])
		own := len(d.rest) == 1 || pathname.EqualFold(pathname.Fold(d.rest[0]), "modules") || pathname.EqualFold(pathname.Fold(d.rest[0]), "worktrees")
		found = own && (pathname.EqualFold(last, "config") || pathname.EqualFold(last, "config.worktree"))
		return !found
	})
	return found
}

// hookOutsideReason returns why the target is a hook of a repository above it although
// it is not in .git/hooks, or "": because of core.hooksPath, or because the hooks
// directory or a hook is a link. It includes repositories above the root.
func (t *Target) hookOutsideReason() string {
	for top := filepath.Dir(t.Path); ; top = filepath.Dir(top) {
		dirs := t.fs.hookDirectories(top)
		for _, dir := range dirs {
			for _, dir := range []string{dir, resolveExistingLinks(dir)} {
				const why = "is in a git repository's hooks directory"
				if contains(dir, top) { // the hooks directory contains the work tree
					if isSameDirectory(filepath.Dir(t.Path), dir) && slices.Contains(gitfile.HookNames, strings.ToLower(t.base)) {
						return why
					}
				} else if isInDirectory(dir, t.Path) {
					return why
				}
			}
			for _, name := range gitfile.HookNames {
				hook := filepath.Join(dir, name)
				if info, err := os.Lstat(hook); err == nil && info.Mode()&os.ModeSymlink != 0 && resolveExistingLinks(hook) == t.Path {
					return "is run by git through a link, as its hook " + name
				}
			}
		}
		if top == filepath.Dir(top) {
			return ""
		}
	}
}

// gitDirectories returns the git directory of the work tree at top, and the common
// directory that it shares with other work trees. Usually both are the same. They are
// "" if top has no git directory.
func gitDirectories(top string) (dir, common string) {
	dir = filepath.Join(top, ".git")
	info, err := os.Lstat(dir)
	if err != nil {
		return "", ""
	}
	if !info.Mode().IsRegular() {
		return dir, dir
	}
	if dir = gitFileTarget(top, dir); dir == "" { // a worktree or a submodule
		return "", ""
	}
	if shared := gitPointer(filepath.Join(dir, "commondir")); shared != "" {
		return dir, resolveIn(dir, shared)
	}
	return dir, dir
}

// hookDirectories returns the directories with the hooks of the repository whose work
// tree is at top; none without a repository.
func (f *FS) hookDirectories(top string) []string {
	dir, common := gitDirectories(top)
	if dir == "" {
		return nil
	}
	dirs := []string{filepath.Join(common, "hooks")}
	for _, config := range f.gitSettingsFiles(top) {
		for _, path := range gitfile.HooksPaths(readSmallFile(config)) {
			dirs = append(dirs, f.possibleGitPaths(top, path)...)
		}
	}
	return dirs
}

// gitFileTarget returns the absolute path of the git directory that file, a
// regular file called .git in top, points to; "" for other content.
func gitFileTarget(top, file string) string {
	path := gitPointer(file)
	if path == "" {
		return ""
	}
	return resolveIn(top, path)
}

// gitPointer returns the path in a .git or commondir file, or "". Like git, it ends
// the path at a NUL.
func gitPointer(file string) string {
	path, _ := gitfile.PointerTarget(filepath.Base(file), readSmallFile(file))
	path, _, _ = strings.Cut(path, "\x00")
	return path
}

// resolveIn returns path, which may have slashes, relative to dir unless it is
// absolute.
func resolveIn(dir, path string) string {
	if path = filepath.FromSlash(path); filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// readSmallFile returns the content of a regular file of up to maxGitConfig bytes, else
// nil. It never blocks.
func readSmallFile(path string) []byte {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxGitConfig {
		return nil
	}
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxGitConfig))
	if err != nil {
		return nil
	}
	return content
}
