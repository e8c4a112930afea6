package sandbox_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// permutations returns all orders of n things.
func permutations(n int) (all [][]int) {
	if n == 0 {
		return [][]int{nil}
	}
	for _, rest := range permutations(n - 1) {
		for i := range n {
			order := append(append(append([]int{}, rest[:i]...), n-1), rest[i:]...)
			all = append(all, order)
		}
	}
	return all
}

// isRepository is is_git_directory of git's setup.c, roughly.
func isRepository(dir string) bool {
	has := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	}
	return has("HEAD") && (has("objects") && has("refs") || has("commondir"))
}

// A repository that the tools write, in any order of its parts, has neither
// settings that run a program nor hooks.
func TestNoRepositoryThatRunsSomething(t *testing.T) {
	const harmless, armed = "[core]\n\tbare = true\n", "[core]\n\tfsmonitor = ./x\n"
	type file struct{ name, content string }
	head, objects, refs := file{"HEAD", "ref: refs/heads/x\n"}, file{"objects/x", ""}, file{"refs/x", ""}
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		for name, c := range map[string]struct {
			files []file
			ok    bool
		}{
			"settings":          {[]file{head, objects, refs, {"config", armed}}, false},
			"broken settings":   {[]file{head, objects, refs, {"config", "[core"}}, false},
			"worktree settings": {[]file{head, objects, refs, {"config.worktree", armed}}, false},
			"hooks":             {[]file{head, objects, refs, {"hooks/pre-commit", "#!/bin/sh\n"}}, false},
			"hooks that is one": {[]file{head, objects, refs, {"hooks", "#!/bin/sh\n"}}, false},
			"another's":         {[]file{head, {"commondir", "../other"}}, false},
			"modules":           {[]file{head, objects, refs, {"modules/m/hooks/x", "x"}}, true}, // no repository yet
			"objects is a file": {[]file{head, {"objects", "#!x"}, refs, {"config", armed}}, false},
			"harmless":          {[]file{head, objects, refs, {"config", harmless}}, true},
			"with samples":      {[]file{head, objects, refs, {"hooks/x.sample", "x"}}, true},
			"no repository":     {[]file{objects, refs, {"config", armed}, {"hooks/x", "x"}}, true},
		} {
			for _, order := range permutations(len(c.files)) {
				tr := newTree(t)
				fs := open(t, box, tr.root)
				refused := 0
				for _, i := range order {
					_, err := put(fs, "q/"+c.files[i].name, c.files[i].content, sandbox.ReplaceOptions{MakeParents: true})
					if err != nil && toolerr.Is(err, toolerr.DeniedPath) {
						require.ErrorContains(t, err, "not written")
						refused++
					} else {
						require.NoError(t, err)
					}
				}
				dir := filepath.Join(tr.root, "q")
				if c.ok && name != "with samples" && name != "modules" {
					require.Zero(t, refused, "%s %v", name, order)
					continue
				}
				if !c.ok {
					require.Equal(t, 1, refused, "%s %v", name, order)
				}
				if isRepository(dir) && !c.ok {
					last := c.files[len(c.files)-1].name
					require.NoFileExists(t, filepath.Join(dir, last), "%s %v", name, order)
				}
				fs.Close()
			}
		}
	})
}

// A repository of any name keeps its hooks and settings from being written.
func TestRepositoriesOfAnyName(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		for _, top := range []string{"root/bare", "root/a/b/mirror.d", "root"} {
			tr.write(t, top+"/HEAD", "ref: refs/heads/x\n")
			tr.write(t, top+"/objects/x", "")
			tr.write(t, top+"/refs/x", "")
			tr.write(t, top+"/config", "[core]\n\tbare = true\n")
		}
		fs := open(t, box, tr.root)
		for _, top := range []string{"bare/", "a/b/mirror.d/", ""} {
			for _, name := range []string{"hooks/update", "hooks/a/b", "info/attributes", "commondir", "modules/m/hooks/x", "index", "MERGE_RR", "MERGE_AUTOSTASH"} {
				_, err := put(fs, top+name, "x", sandbox.ReplaceOptions{MakeParents: true})
				requireCode(t, toolerr.DeniedPath, err)
			}
			for _, name := range []string{"config", "config.worktree", "modules/m/config"} {
				_, err := put(fs, top+name, "[core]\n\tfsmonitor = ./x\n", sandbox.ReplaceOptions{MakeParents: true})
				requireCode(t, toolerr.DeniedPath, err)
				_, err = put(fs, top+name, "[core]\n\tbare = true\n[user]\n\tname = x\n", sandbox.ReplaceOptions{MakeParents: true})
				require.NoError(t, err)
			}
			for _, name := range []string{"HEAD", "description", "refs/heads/hooks/x", "info/exclude"} {
				_, err := put(fs, top+name, "ref: refs/heads/y\n", sandbox.ReplaceOptions{MakeParents: true})
				require.NoError(t, err, top+name)
			}
		}
	})
}

// Where core.hooksPath leads is protected as .git/hooks are.
func TestHooksElsewhere(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		tr.write(t, "root/one/.git/config", "[core]\n\thooksPath = tools/git\n")
		tr.write(t, "root/two/.git/config", "[core]\n\thooksPath = .\n")
		tr.write(t, "root/three/.git/config", "[core]\n\thooksPath = "+filepath.ToSlash(tr.root)+"/three/abs\n")
		tr.write(t, "root/four/.git/config", "")
		tr.write(t, "root/four/mine/x", "")
		tr.link(t, "../mine", "root/four/.git/hooks")
		tr.write(t, "root/five/.git/config", "[core]\n\thooksPath = sub/h\n")
		tr.write(t, "root/six/.git/config", "[core]\n\thooksPath = h\n")
		tr.write(t, "root/six/.git/worktrees/w/commondir", "../..\n")
		tr.write(t, "root/w/.git", "gitdir: ../six/.git/worktrees/w\n")
		tr.write(t, "root/five/sub/x", "")
		fs := open(t, box, tr.root)
		for _, name := range []string{
			"one/tools/git/pre-commit", "one/tools/git/lib/x.sh", "two/pre-commit", "two/Post-Checkout", "three/abs/x", "four/mine/pre-commit", "five/sub/h/x", "w/h/x", "six/h/x",
		} {
			_, err := put(fs, name, "x", sandbox.ReplaceOptions{MakeParents: true})
			requireCode(t, toolerr.DeniedPath, err)
			require.ErrorContains(t, err, "hooks")
		}
		for _, name := range []string{"one/tools/other", "two/main.go", "two/sub/pre-commit", "three/x", "four/x", "five/sub/y", "w/x"} {
			_, err := put(fs, name, "x", sandbox.ReplaceOptions{MakeParents: true})
			require.NoError(t, err, name)
		}
		// The root is within the repository.
		_, err := put(open(t, box, filepath.Join(tr.root, "five/sub")), "h/pre-push", "x", sandbox.ReplaceOptions{MakeParents: true})
		requireCode(t, toolerr.DeniedPath, err)
	})
}

// A project whose directories have the names of a repository's parts is written.
func TestProjectsLikeRepositories(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		fs := open(t, box, tr.root)
		for _, name := range []string{
			"a/objects/x.go", "a/refs/x.go", "a/config/x.go", "a/HEAD", "a/index.go",
			"b/objects/x.go", "b/refs/x.go", "b/hooks/pre-commit", "b/config", "b/HEAD/x.go", "b/objects/y.go", "b/HEAD/y.go",
		} {
			_, err := put(fs, name, "[core]\n\tpager = x\n", sandbox.ReplaceOptions{MakeParents: true})
			require.NoError(t, err, name)
		}
	})
}

// What git reads as settings or runs as a hook because the user's settings or a
// link lead to it is protected, whatever its name.
func TestSettingsAndHooksElsewhere(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		home := filepath.Join(tr.base, "home")
		tr.write(t, "home/.gitconfig", "[core]\n\thooksPath = githooks\n[include]\n\tpath = more\n[includeIf \"gitdir:~/x/\"]\n\tpath = "+filepath.ToSlash(tr.root)+"/work.gitconfig\n")
		tr.write(t, "home/more", "[core]\n\thooksPath = more/hooks\n[include]\n\tpath = more\n")
		tr.write(t, "xdg/git/x", "")
		tr.write(t, "root/dotfiles/gitconfig", "[user]\n\tname = A\n")
		tr.link(t, "../../root/dotfiles/gitconfig", "xdg/git/config")
		tr.write(t, "root/one/.git/HEAD", "")
		tr.write(t, "root/one/settings", "")
		tr.link(t, "../settings", "root/one/.git/config")
		tr.write(t, "root/two/.git/config", "[include]\n\tpath = ../team.gitconfig\n")
		tr.write(t, "root/two/.git/hooks/x", "")
		tr.write(t, "root/two/tools/lint.sh", "#!/bin/sh\n")
		tr.link(t, "../../tools/lint.sh", "root/two/.git/hooks/pre-commit")
		fs := open(t, func(c sandbox.Config) *sandbox.Sandbox {
			c.Getenv = func(name string) string {
				return map[string]string{"HOME": home, "XDG_CONFIG_HOME": filepath.Join(tr.base, "xdg")}[name]
			}
			return box(c)
		}, tr.root)
		for _, name := range []string{"dotfiles/gitconfig", "work.gitconfig", "one/settings", "two/team.gitconfig"} {
			_, err := put(fs, name, "[core]\n\tfsmonitor = ./x\n", sandbox.ReplaceOptions{MakeParents: true})
			requireCode(t, toolerr.DeniedPath, err)
			require.ErrorContains(t, err, "core.fsmonitor")
			_, err = put(fs, name, "[user]\n\tname = B\n", sandbox.ReplaceOptions{MakeParents: true})
			require.NoError(t, err, name)
		}
		for _, name := range []string{"one/githooks/pre-commit", "two/more/hooks/post-checkout", "two/tools/lint.sh"} {
			_, err := put(fs, name, "#!/bin/sh\n", sandbox.ReplaceOptions{MakeParents: true})
			requireCode(t, toolerr.DeniedPath, err)
			require.ErrorContains(t, err, "hook")
		}
		for _, name := range []string{"githooks/pre-commit", "one/tools/x", "two/tools/build.sh", "two/other.gitconfig"} {
			_, err := put(fs, name, "[core]\n\tfsmonitor = ./x\n", sandbox.ReplaceOptions{MakeParents: true})
			require.NoError(t, err, name)
		}
	})
}

// What git goes on with, and where it fetches from, is not written.
func TestStepsOfGit(t *testing.T) {
	tr := newTree(t)
	fs := open(t, sandbox.New, tr.root)
	for _, name := range []string{".git/rebase-merge/git-rebase-todo", ".git/worktrees/w/rebase-merge/git-rebase-todo", ".git/modules/m/rebase-apply/x", ".git/sequencer/todo", ".git/remotes/origin", ".git/branches/x", ".git/gitweb/python3.conf", ".git/lazygit.yml",
		".git/MERGE_RR", ".git/worktrees/w/MERGE_RR", ".git/modules/m/merge_rr", "x.git/worktrees/w/MERGE_RR"} {
		_, err := put(fs, name, "exec ./x\n", sandbox.ReplaceOptions{MakeParents: true})
		requireCode(t, toolerr.DeniedPath, err)
	}
}

// The list of submodules is written with care.
func TestGitModules(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		fs := open(t, box, tr.root)
		const plain = "[submodule \"lib/x\"]\n\tpath = lib/x\n\turl = ../x.git\n\tupdate = rebase\n"
		_, err := put(fs, "a/.gitmodules", plain, sandbox.ReplaceOptions{MakeParents: true})
		require.NoError(t, err)
		for _, more := range []string{
			"\tupdate = !./x\n", "\turl = ext::x\n", "\turl = -ux\n", "\tpath = ../x\n", "\tpath = a/../../x\n", "\tpath = -x\n", "\tpath = /x\n", "[submodule \"../x\"]\n\tpath = y\n", "[core]\n\tpager = x\n", "[x",
		} {
			_, err := put(fs, "a/.gitmodules", plain+more, sandbox.ReplaceOptions{})
			requireCode(t, toolerr.DeniedPath, err)
		}
		require.Equal(t, plain, tr.onDisk(t, "root/a/.gitmodules"))
	})
}
