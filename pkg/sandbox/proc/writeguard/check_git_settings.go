package writeguard

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/gitfile"
)

// checkGitSettings checks changed or new git settings. It removes added settings that run
// programs, and reverts the file if they cannot be removed. inBaseline says that the file
// has a state in the baseline, was; now is its present state.
func (rc *rootCheck) checkGitSettings(name, path string, inBaseline bool, was, now *fileState) {
	if !now.Mode.IsRegular() || now.Size > maxStoredBytes {
		rc.revert(name, path, inBaseline, was)
		return
	}
	runs, ok := gitfile.DangerousSettings(now.Content)
	unwanted := func(setting string) bool {
		return slices.Contains(runs, setting) && !slices.Contains(was.Runs, setting) && (inBaseline || !rc.isOwnWorktree(setting, now.Repo))
	}
	gone := slices.ContainsFunc(was.Runs, func(setting string) bool { return !slices.Contains(runs, setting) })
	switch {
	case ok && !slices.ContainsFunc(runs, unwanted):
		return
	case !ok || gone:
		rc.revert(name, path, inBaseline, was)
		return
	}
	stripped := gitfile.WithoutSettings(now.Content, slices.DeleteFunc(slices.Clone(runs), func(setting string) bool { return !unwanted(setting) }))
	if left, ok := gitfile.DangerousSettings(stripped); !ok || slices.ContainsFunc(left, unwanted) {
		rc.revert(name, path, inBaseline, was)
		return
	}
	if before, _ := gitfile.AllSettings(was.Content); inBaseline {
		if after, _ := gitfile.AllSettings(stripped); slices.Equal(before, after) {
			stripped = was.Content
		}
	} else if after, _ := gitfile.AllSettings(stripped); len(after) == 0 {
		rc.revert(name, path, inBaseline, was)
		return
	}
	rc.copies.store(path, now.Content)
	rc.recordRevert(path, rc.withAccess(name, func() error { return rc.replaceFile(name, stripped, now.Mode.Perm()|0o400) }))
}

// isOwnWorktree reports whether a setting is the core.worktree that git writes
// for a submodule: its repository is below modules of another one, and its work
// tree is outside git's directories and has a .git that leads back.
func (rc *rootCheck) isOwnWorktree(setting, repo string) bool {
	value, ok := strings.CutPrefix(setting, "core.worktree=")
	if !ok || !rc.isModule(repo) {
		return false
	}
	if !filepath.IsAbs(value) {
		value = filepath.Join(rc.root, repo) + "/" + value // not cleaned, as in readGitPointer
	}
	resolved, err := filepath.EvalSymlinks(value)
	if err != nil {
		return false
	}
	tree, err := filepath.Rel(rc.root, resolved)
	if err != nil || !filepath.IsLocal(tree) || rc.isInGitDir(tree) || slices.ContainsFunc(strings.Split(tree, string(filepath.Separator)), isProjectSettingsName) {
		return false
	}
	pointed, ok := readGitPointer(filepath.Join(resolved, ".git"))
	back, err := filepath.EvalSymlinks(pointed)
	return ok && err == nil && back == filepath.Join(rc.root, repo)
}

// isModule reports whether repo, a name in the root, is a submodule's
// repository: it is below the directory modules of another one in the root.
func (rc *rootCheck) isModule(repo string) bool {
	for dir := filepath.Dir(repo); dir != "."; dir = filepath.Dir(dir) {
		if filepath.Base(dir) == "modules" && rc.found.repos[filepath.Dir(dir)] {
			return true
		}
	}
	return false
}
