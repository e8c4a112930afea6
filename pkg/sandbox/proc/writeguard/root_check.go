package writeguard

import (
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolroom-mcp/toolroom/internal/gitfile"
)

// rootCheck compares a root with its baseline once, and reverts changes that
// commands must not make. In its methods, name is a file's name in the root,
// path its absolute path, was its state in the baseline and now its current
// state; inBaseline is false for a new file, and was is then the zero value.
type rootCheck struct {
	root       string
	handle     *os.Root
	baseline   *baseline
	found      *scanResult
	trustTimes bool // as in RootGuard
	// skip reports whether a file is not checked: the user allows commands to
	// write it, or the kernel protected it.
	skip     func(path string) bool
	mustStay func(path string) bool // as in CommandRules
	// inOtherRoot reports whether a path outside the root is in another
	// watched root.
	inOtherRoot     func(path string) bool
	copies          *revertedCopies
	harmlessIndexes map[string]fileState // as in inventory
	runningIndexes  map[string]fileState // as in inventory; nil: no command is running

	restorable map[string]fileState // states of the user's that undo may bring back

	ended bool // the command has ended, so that its unfinished rebase is checked
	last  bool // no other command runs

	linkTargets []resolvedLink // see resolvedLinks; nil: not yet computed

	reverted     []string // absolute paths of reverted files
	stepsRemoved bool     // baseline.Steps has changed
	failed       bool     // something could not be reverted
	lost         []string // describes changed files whose old content is not stored
}

// checkAll checks the files that were found, those of the baseline that are
// missing, and the indexes.
func (rc *rootCheck) checkAll() {
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
	rc.checkLinks()
	for _, name := range rc.found.indexes {
		rc.checkIndex(name)
	}
}

// checkFile checks the file name, and reverts its change if commands must not
// make it. It does nothing if the file is unchanged.
func (rc *rootCheck) checkFile(name, path string) {
	at := rc.found.files[name]
	was, inBaseline := rc.baseline.Items[name]
	if at.kind == 0 {
		at = watchedFile{was.Spot, was.Repo}
	}
	if at.kind == reuseListKind {
		rc.checkReuseList(name, path, at.repo)
		return
	}
	info, err := os.Lstat(path)
	var now fileState
	if err == nil {
		now = stateWithoutContent(info, at)
		if inBaseline && rc.trustTimes && was.hasSameMetadata(&now) && was.Size <= maxStoredBytes {
			return
		}
		now = readState(path, at, info)
		if inBaseline && was.sameContentTypeAndExec(&now) && at.kind != gitPointerKind {
			if now.Links > was.Links && now.Mode.IsRegular() && at.kind != judgedSettingsKind { // another name could be written through
				rc.restore(name, path, &was)
			}
			return
		}
		_, err = os.Lstat(path) // a running command may have removed it before the read
	}
	if err != nil {
		if inBaseline && rc.mustRestore(name, &was) {
			rc.restore(name, path, &was)
		}
		return
	}
	if users, ok := rc.restorable[name]; ok && users.Spot == at.kind && at.kind != gitPointerKind && users.sameContentTypeAndExec(&now) {
		return
	}
	rc.checkChanged(name, path, at, inBaseline, &was, &now)
}

// checkChanged checks a file that is new or differs from the baseline, by the rules for
// its kind. inBaseline says that the file has a state in the baseline, was; now is its
// present state.
func (rc *rootCheck) checkChanged(name, path string, at watchedFile, inBaseline bool, was, now *fileState) {
	switch at.kind {
	case gitSettingsKind:
		rc.checkGitSettings(name, path, inBaseline, was, now)
	case gitPointerKind:
		if inBaseline && was.sameContentTypeAndExec(now) || rc.isPointerAllowed(name, path, at.repo) {
			return
		}
		rc.revert(name, path, inBaseline, was)
	case repositoryLinkKind:
		if !rc.last && isGitsTrialLink(name, path, at.repo) {
			return
		}
		if inBaseline || !rc.isLinkAllowed(name, path, at.repo) {
			rc.revert(name, path, inBaseline, was)
		}
	case mergeOptionsKind:
		if runs, ok := gitfile.OptionsMayRun(filepath.Base(name), now.Content); runs || !ok || now.Size > maxStoredBytes {
			rc.revertOptions(name, path, inBaseline, was, now)
		}
	case misplacedHeadKind:
		if !inBaseline {
			rc.revert(name, path, false, was)
		}
	case legacyRemoteKind, gitToolSettingsKind:
		rc.revert(name, path, inBaseline, was)
	case rebaseStepsKind:
		if rc.ended {
			rc.checkRebaseSteps(name, path, was, now)
		}
	case autostashKind:
		if rc.last {
			rc.checkAutostash(name, path, now)
		}
	case judgedSettingsKind:
		rc.checkJudgedSettings(name, path, at.repo, inBaseline, was, now)
	case gitHookKind:
		runs := now.Mode.Perm()&0o111 != 0 || !now.Mode.IsRegular()
		if inBaseline || rc.baseline.Repos[at.repo] || runs {
			rc.revert(name, path, inBaseline, was)
		}
	case gitAttributesKind:
		if inBaseline || rc.baseline.Repos[at.repo] {
			rc.revert(name, path, inBaseline, was)
		}
	case projectSettingsKind:
		if inBaseline || rc.baseline.Tops[at.repo] || slices.Contains(rc.baseline.HookDirs, at.repo) || slices.Contains(rc.baseline.Programs, name) || rc.isKnownDir(at.repo) {
			rc.revert(name, path, inBaseline, was)
		}
	}
}

// mustRestore reports whether a missing file must be restored. Commands may
// delete settings of git, a .git, commondir or gitdir, and a whole repository
// or project.
func (rc *rootCheck) mustRestore(name string, was *fileState) bool {
	switch was.Spot {
	case gitHookKind, gitAttributesKind:
		return rc.found.repos[was.Repo]
	case projectSettingsKind:
		if rc.mustStay != nil && rc.mustStay(filepath.Join(rc.root, name)) {
			return true
		}
		if IsInRepository(name) || slices.Contains(rc.baseline.Programs, name) {
			return false // git worktree remove, git checkout
		}
		_, err := os.Lstat(filepath.Join(rc.root, was.Repo))
		return err == nil || slices.Contains(rc.baseline.HookDirs, was.Repo)
	}
	return false
}
