//go:build oracle

package walk_test

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
	"github.com/toolroom-mcp/toolroom/internal/walk"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// trees returns the number of random trees to compare and the first seed:
// WALK_TREES=5000 WALK_SEED=1. With the race detector, which makes each slow,
// fewer are enough.
func trees(t *testing.T) (count int, seed uint64) {
	number := func(key string, fallback int) int {
		n, err := strconv.Atoi(os.Getenv(key))
		if err != nil {
			return fallback
		}
		return n
	}
	usual := 80
	if mcpkittest.RaceEnabled {
		usual = 30
	}
	count, seed = number("WALK_TREES", usual), uint64(number("WALK_SEED", 1))
	t.Logf("%d random trees from seed %d", count, seed)
	return count, seed
}

// run returns the NUL-separated output of a program, sorted.
func run(t testing.TB, dir string, env []string, name string, args ...string) []string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1"}, env...)
	out, err := cmd.Output()
	if exit, ok := err.(*exec.ExitError); ok && exit.ExitCode() > 2 {
		t.Fatalf("%s %q: %v %s", name, args, err, exit.Stderr)
	}
	list := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if list[0] == "" {
		return nil
	}
	slices.Sort(list)
	return list
}

// comparison lists one tree in two ways, which must agree.
type comparison func(t testing.TB, root string, f files) (got, want []string)

// compare makes the tree and returns the differences, or "".
func (c comparison) compare(t *testing.T, f files) string {
	root, err := os.MkdirTemp(t.TempDir(), "tree")
	require.NoError(t, err)
	defer os.RemoveAll(root)
	f.write(t, root)
	got, want := c(t, root, f)
	var diff []string
	for _, name := range got {
		if !slices.Contains(want, name) {
			diff = append(diff, "+ "+strconv.Quote(name))
		}
	}
	for _, name := range want {
		if !slices.Contains(got, name) {
			diff = append(diff, "- "+strconv.Quote(name))
		}
	}
	return strings.Join(diff, "\n")
}

// shrink removes files and lines as long as the tree still fails.
func (c comparison) shrink(t *testing.T, f files) files {
	for again := true; again; {
		again = false
		for _, name := range f.paths() {
			for _, smaller := range smallerContents(f[name]) {
				g := files{}
				for k, v := range f {
					g[k] = v
				}
				if smaller == nil {
					delete(g, name)
				} else {
					g[name] = *smaller
				}
				if c.compare(t, g) != "" {
					f, again = g, true
					break
				}
			}
		}
	}
	return f
}

// smallerContents returns nil, which removes the file, and the content without
// each of its lines.
func smallerContents(content string) []*string {
	all := []*string{nil}
	lines := strings.SplitAfter(content, "\n")
	if strings.HasPrefix(content, "-> ") || len(lines) == 1 {
		return all
	}
	for i := range lines {
		if lines[i] != "" {
			less := strings.Join(slices.Concat(lines[:i], lines[i+1:]), "")
			all = append(all, &less)
		}
	}
	return all
}

func (c comparison) random(t *testing.T, git, nested bool) {
	count, first := trees(t)
	failed := 0
	for seed := first; seed < first+uint64(count) && failed < 3; seed++ {
		g := &generator{Rand: rand.New(rand.NewPCG(seed, 7)), git: git}
		f := g.tree(nested)
		if diff := c.compare(t, f); diff != "" {
			failed++
			f = c.shrink(t, f)
			t.Errorf("seed %d: + is ours only, - the oracle's only\n%s\nshrunk tree:\n%s", seed, c.compare(t, f), f)
		}
	}
}

func TestRandomTreesAsRipgrep(t *testing.T) {
	rg := oracle.Path(t, "rg")
	for name, hidden := range map[string]bool{"hidden": true, "default": false} {
		args := []string{"--files", "-0", "-g", "!.git"}
		if hidden {
			args = append(args, "--hidden")
		}
		list := func(t testing.TB, root, sub string) (got, want []string) {
			got, _ = collect(t, start(t, root, sub, walk.Options{Hidden: hidden}), regular)
			return got, run(t, filepath.Join(root, sub), nil, rg, args...)
		}
		t.Run(name, func(t *testing.T) {
			comparison(func(t testing.TB, root string, _ files) (got, want []string) {
				return list(t, root, ".")
			}).random(t, false, true)
		})
		t.Run(name+" below", func(t *testing.T) {
			comparison(func(t testing.TB, root string, f files) (got, want []string) {
				for _, dir := range f.paths() {
					if strings.HasSuffix(dir, "/") && !strings.Contains(dir, ".git") {
						return list(t, root, dir)
					}
				}
				return nil, nil
			}).random(t, false, true)
		})
	}
}

// TestProjectsAsRipgrep: in a project without .git, .gitignore applies as it
// does for ripgrep with --no-require-git.
func TestProjectsAsRipgrep(t *testing.T) {
	rg, compared := oracle.Path(t, "rg"), 0
	for _, sub := range []string{".", "d"} {
		comparison(func(t testing.TB, root string, f files) (got, want []string) {
			for _, name := range f.paths() {
				if strings.Contains("/"+name, "/.git/") || strings.Contains("/"+name, "/.jj/") || strings.HasSuffix("/"+name, "/.git") {
					return nil, nil // a repository, which the other test covers
				}
			}
			require.NoError(t, os.MkdirAll(filepath.Join(root, "d"), 0o755))
			for _, name := range []string{"go.mod", ".gitignore"} {
				file, err := os.OpenFile(filepath.Join(root, name), os.O_CREATE, 0o600)
				if err != nil {
					return nil, nil // a directory
				}
				file.Close()
			}
			compared++
			got, _ = collect(t, start(t, root, sub, walk.Options{Hidden: true}), regular)
			return got, run(t, filepath.Join(root, sub), nil, rg, "--files", "-0", "--hidden", "--no-require-git")
		}).random(t, false, false)
	}
	count, _ := trees(t)
	require.Greater(t, compared, count/5, "of so many trees most are repositories")
}

func TestRandomTreesAsGit(t *testing.T) {
	git := oracle.Path(t, "git")
	for name, fold := range map[string]string{"case": "false", "ignorecase": "true"} {
		t.Run(name, func(t *testing.T) {
			comparison(func(t testing.TB, root string, _ files) (got, want []string) {
				run(t, root, []string{"HOME=" + root}, git, "init", "-q", "--template=")
				run(t, root, nil, git, "config", "core.ignorecase", fold)
				got, _ = collect(t, start(t, root, ".", walk.Options{Hidden: true}), fileOrLink)
				return got, run(t, root, []string{"HOME=/nowhere"}, git, "ls-files", "-o", "-z", "--exclude-standard")
			}).random(t, true, false)
		})
	}
}

func fileOrLink(e *walk.Entry) bool { return !e.IsDir() }
