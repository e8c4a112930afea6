package writeguard

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/gitfile"
)

// settings judges changed or new git settings.
func (j *judge) settings(name, path string, had bool, was, now *item) {
	if !now.Mode.IsRegular() || now.Size > keptBytes {
		j.undo(name, path, had, was)
		return
	}
	runs, ok := gitfile.Runs(now.Content)
	unwanted := func(setting string) bool {
		return slices.Contains(runs, setting) && !slices.Contains(was.Runs, setting) && (had || !j.worktreeInside(setting, now.Repo))
	}
	gone := slices.ContainsFunc(was.Runs, func(setting string) bool { return !slices.Contains(runs, setting) })
	switch {
	case ok && !slices.ContainsFunc(runs, unwanted):
		return
	case !ok || gone:
		j.undo(name, path, had, was)
		return
	}
	stripped := gitfile.Without(now.Content, slices.DeleteFunc(slices.Clone(runs), func(setting string) bool { return !unwanted(setting) }))
	if left, ok := gitfile.Runs(stripped); !ok || slices.ContainsFunc(left, unwanted) {
		j.undo(name, path, had, was)
		return
	}
	if before, _ := gitfile.Values(was.Content); had {
		if after, _ := gitfile.Values(stripped); slices.Equal(before, after) {
			stripped = was.Content
		}
	} else if after, _ := gitfile.Values(stripped); len(after) == 0 {
		j.undo(name, path, had, was)
		return
	}
	j.aside.keep(path, now.Content)
	j.done(path, j.retry(name, func() error { return j.write(name, stripped, now.Mode.Perm()|0o400) }))
}

// worktreeInside reports whether a setting is the work tree of a submodule, in
// the root.
func (j *judge) worktreeInside(setting, repo string) bool {
	value, ok := strings.CutPrefix(setting, "core.worktree=")
	if !ok {
		return false
	}
	if !filepath.IsAbs(value) {
		value = filepath.Join(j.root, repo, value)
	}
	if real, err := filepath.EvalSymlinks(value); err == nil {
		value = real
	}
	rel, err := filepath.Rel(j.root, value)
	return err == nil && filepath.IsLocal(rel)
}
