package writeguard

import (
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolroom-mcp/toolroom/internal/gitfile"
)

// rootCheck compares a root with its baseline, and reverts changes that commands
// must not make.
type rootCheck struct {
	root       string
	handle     *os.Root
	baseline   *baseline
	found      *scanResult
	trustTimes bool
	// skip reports whether a file is skipped: the user allows commands to
	// write it, or the kernel protected it.
	skip func(path string) bool
	// inOtherRoot reports whether a path outside the root is in another watched
	// root.
	inOtherRoot     func(path string) bool
	copies          *revertedCopies
	harmlessIndexes map[string]fileState // see inventory

	ended bool // the command has ended, so that its unfinished rebase is judged

	replacingDirs []string // directories in which links in place of earlier directories lead

	reverted     []string // absolute paths of reverted files
	stepsRemoved bool     // base.Steps has changed
	failed       bool     // something could not be reverted
}

// checkFiles judges the files that were found and those of the baseline that are
// missing.
func (rc *rootCheck) checkFiles() {
	rc.replacingDirs = rc.targetsOfReplacingLinks()
	names := slices.Collect(maps.Keys(rc.found.files))
	for name := range rc.baseline.Items {
		if _, ok := rc.found.files[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		path := filepath.Join(rc.root, name)
		if !rc.skip(path) {
			rc.checkFile(name, path)
		}
	}
	for _, name := range rc.found.indexes {
		rc.checkIndex(name)
	}
}

// checkFile judges one file. It does nothing if the file is unchanged.
func (rc *rootCheck) checkFile(name, path string) {
	at := rc.found.files[name]
	was, had := rc.baseline.Items[name]
	if at.kind == 0 {
		at = watchedFile{was.Spot, was.Repo}
	}
	info, err := os.Lstat(path)
	var now fileState
	if err == nil {
		now = stateWithoutContent(info, at)
		if had && rc.trustTimes && was.sameMetadata(&now) && was.Size <= maxStoredBytes {
			return
		}
		now = readState(path, at, info)
		if had && was.sameContentAndType(&now) && at.kind != gitPointerKind {
			if now.Links > was.Links && now.Mode.IsRegular() { // another name could be written through
				rc.restore(name, path, &was)
			}
			return
		}
		_, err = os.Lstat(path) // a running command may have removed it before the read
	}
	if err != nil {
		if had && rc.mustRestore(name, &was) {
			rc.restore(name, path, &was)
		}
		return
	}
	rc.checkChanged(name, path, at, had, &was, &now)
}

// checkChanged judges a file that is new or differs from the baseline. had is false
// for a new file, and was is then the zero value.
func (rc *rootCheck) checkChanged(name, path string, at watchedFile, had bool, was, now *fileState) {
	switch at.kind {
	case gitSettingsKind:
		rc.checkGitSettings(name, path, had, was, now)
	case gitPointerKind:
		if had && was.sameContentAndType(now) || rc.isPointerAllowed(name, path, at.repo) {
			return
		}
		rc.revert(name, path, had, was)
	case repositoryLinkKind:
		if had || !rc.isLinkAllowed(name, path, at.repo) {
			rc.revert(name, path, had, was)
		}
	case mergeOptionsKind:
		if runs, ok := gitfile.OptionsRun(filepath.Base(name), now.Content); runs || !ok {
			rc.revert(name, path, had, was)
		}
	case rebaseStepsKind:
		if rc.ended {
			rc.checkRebaseSteps(name, path, was, now)
		}
	case gitHookKind:
		runs := now.Mode.Perm()&0o111 != 0 || !now.Mode.IsRegular()
		if had || rc.baseline.Repos[at.repo] || runs {
			rc.revert(name, path, had, was)
		}
	case gitAttributesKind:
		if had || rc.baseline.Repos[at.repo] {
			rc.revert(name, path, had, was)
		}
	case projectSettingsKind:
		if had || rc.baseline.Tops[at.repo] || rc.baseline.Seen.has(dirKey(at.repo)) || slices.ContainsFunc(rc.replacingDirs, func(dir string) bool { return isAtOrBelow(dir, at.repo) }) || slices.Contains(rc.baseline.HookDirs, at.repo) || slices.Contains(rc.baseline.Programs, name) {
			rc.revert(name, path, had, was)
		}
	}
}

// mustRestore reports whether a missing file must be restored. Commands may delete
// settings of git, a .git, commondir or gitdir, and a whole repository.
func (rc *rootCheck) mustRestore(name string, was *fileState) bool {
	switch was.Spot {
	case gitHookKind, gitAttributesKind:
		return rc.found.repos[was.Repo]
	case projectSettingsKind:
		if InRepository(name) || slices.Contains(rc.baseline.Programs, name) {
			return false // git worktree remove, git checkout
		}
		_, err := os.Lstat(filepath.Join(rc.root, was.Repo))
		return err == nil || slices.Contains(rc.baseline.HookDirs, was.Repo)
	}
	return false
}
