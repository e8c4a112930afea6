package writeguard

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/gitfile"
)

// checkGitSettings checks changed or new git settings. It removes added
// settings that run programs, and reverts the file if they cannot be removed.
func (rc *rootCheck) checkGitSettings(name, path string, inBaseline bool, was, now *fileState) {
	if !now.Mode.IsRegular() || now.Size > maxStoredBytes {
		rc.revert(name, path, inBaseline, was)
		return
	}
	runs, ok := gitfile.Runs(now.Content)
	unwanted := func(setting string) bool {
		return slices.Contains(runs, setting) && !slices.Contains(was.Runs, setting) && (inBaseline || !rc.isWorktreeInRoot(setting, now.Repo))
	}
	gone := slices.ContainsFunc(was.Runs, func(setting string) bool { return !slices.Contains(runs, setting) })
	switch {
	case ok && !slices.ContainsFunc(runs, unwanted):
		return
	case !ok || gone:
		rc.revert(name, path, inBaseline, was)
		return
	}
	stripped := gitfile.Without(now.Content, slices.DeleteFunc(slices.Clone(runs), func(setting string) bool { return !unwanted(setting) }))
	if left, ok := gitfile.Runs(stripped); !ok || slices.ContainsFunc(left, unwanted) {
		rc.revert(name, path, inBaseline, was)
		return
	}
	if before, _ := gitfile.Values(was.Content); inBaseline {
		if after, _ := gitfile.Values(stripped); slices.Equal(before, after) {
			stripped = was.Content
		}
	} else if after, _ := gitfile.Values(stripped); len(after) == 0 {
		rc.revert(name, path, inBaseline, was)
		return
	}
	rc.copies.store(path, now.Content)
	rc.recordRevert(path, rc.withAccess(name, func() error { return rc.replaceFile(name, stripped, now.Mode.Perm()|0o400) }))
}

// isWorktreeInRoot reports whether a setting is core.worktree with a directory
// in the root, as in the repository of a submodule.
func (rc *rootCheck) isWorktreeInRoot(setting, repo string) bool {
	value, ok := strings.CutPrefix(setting, "core.worktree=")
	if !ok {
		return false
	}
	if !filepath.IsAbs(value) {
		value = filepath.Join(rc.root, repo, value)
	}
	if resolved, err := filepath.EvalSymlinks(value); err == nil {
		value = resolved
	}
	rel, err := filepath.Rel(rc.root, value)
	return err == nil && filepath.IsLocal(rel)
}
