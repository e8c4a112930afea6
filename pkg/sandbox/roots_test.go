package sandbox_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// env is an environment of the given variables alone.
func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// offers is a client that offers these roots.
func offers(dirs ...string) func(context.Context) ([]string, error) {
	return func(context.Context) ([]string, error) { return dirs, nil }
}

// dirs makes directories and returns their absolute real paths.
func dirs(t *testing.T, names ...string) []string {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	var out []string
	for _, name := range names {
		path := filepath.Join(base, name)
		require.NoError(t, os.MkdirAll(path, 0o755))
		out = append(out, path)
	}
	return out
}

func rootsOf(t *testing.T, c sandbox.Config) ([]sandbox.Root, error) {
	t.Helper()
	require.NoError(t, c.Validate())
	if c.Getenv == nil {
		c.Getenv = noEnv
	}
	fs, err := sandbox.New(c).FS(context.Background())
	if err != nil {
		require.Nil(t, fs)
		return nil, err
	}
	return fs.Roots(), nil
}

func TestRootSources(t *testing.T) {
	d := dirs(t, "a", "b", "c", "home/project", "cwd")
	a, b, c, project, cwd := d[0], d[1], d[2], d[3], d[4]
	home := filepath.Dir(project)
	t.Chdir(cwd)
	list := func(parts ...string) string { return strings.Join(parts, string(os.PathListSeparator)) }
	all := env("MCP_ROOT", list(b, c), "CLAUDE_PROJECT_DIR", project, "HOME", home, "USERPROFILE", home)
	cases := []struct {
		name   string
		config sandbox.Config
		want   []sandbox.Root
	}{
		{"the command line first", sandbox.Config{Roots: []string{a, b + ":ro"}, Getenv: all, ClientRoots: offers(cwd)}, []sandbox.Root{{Path: a}, {Path: b, ReadOnly: true}}},
		{"then MCP_ROOT", sandbox.Config{Getenv: all, ClientRoots: offers(cwd)}, []sandbox.Root{{Path: b}, {Path: c}}},
		{"empty elements count for nothing", sandbox.Config{Getenv: env("MCP_ROOT", list("", b, ""))}, []sandbox.Root{{Path: b}}},
		{"read-only in a list", sandbox.Config{Getenv: env("MCP_ROOT", list(a+":ro", b))}, []sandbox.Root{{Path: a, ReadOnly: true}, {Path: b}}},
		{"then CLAUDE_PROJECT_DIR", sandbox.Config{Getenv: env("CLAUDE_PROJECT_DIR", project), ClientRoots: offers(a)}, []sandbox.Root{{Path: project}}},
		{"then the client", sandbox.Config{ClientRoots: offers(a, b)}, []sandbox.Root{{Path: a}, {Path: b}}},
		{"then the working directory", sandbox.Config{ClientRoots: offers()}, []sandbox.Root{{Path: cwd}}},
		{"a client that fails offers none", sandbox.Config{ClientRoots: func(context.Context) ([]string, error) { return nil, errors.New("no answer") }}, []sandbox.Root{{Path: cwd}}},
		{"the home directory by its sign", sandbox.Config{Roots: []string{"~/project:ro"}, Getenv: all}, []sandbox.Root{{Path: project, ReadOnly: true}}},
		{"also in the environment", sandbox.Config{Getenv: env("MCP_ROOT", "~/project", "HOME", home, "USERPROFILE", home)}, []sandbox.Root{{Path: project}}},
		{"relative ones", sandbox.Config{Roots: []string{"../a"}}, []sandbox.Root{{Path: a}}},
		{"all read-only", sandbox.Config{Roots: []string{a}, ReadOnly: true}, []sandbox.Root{{Path: a, ReadOnly: true}}},
		{"each once, read-only winning", sandbox.Config{Roots: []string{a, a + ":ro", a + "/."}}, []sandbox.Root{{Path: a, ReadOnly: true}}},
		{"a client's name is no pattern", sandbox.Config{ClientRoots: offers(a, "relative", "~/project")}, []sandbox.Root{{Path: a}}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got, err := rootsOf(t, tc.config)
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
		})
	}
}

func TestClientNarrows(t *testing.T) {
	d := dirs(t, "work/one/in", "work/two", "other")
	in, two, other := d[0], d[1], d[2]
	one, work := filepath.Dir(in), filepath.Dir(two)
	link := filepath.Join(two, "way-out")
	require.NoError(t, os.Symlink(other, link))
	cases := []struct {
		name       string
		configured []string
		offered    []string
		want       []sandbox.Root
	}{
		{"inside narrows", []string{work}, []string{one}, []sandbox.Root{{Path: one}}},
		{"several", []string{work}, []string{in, two}, []sandbox.Root{{Path: in}, {Path: two}}},
		{"read-only stays", []string{work + ":ro"}, []string{one}, []sandbox.Root{{Path: one, ReadOnly: true}}},
		{"broader changes nothing", []string{one}, []string{work}, []sandbox.Root{{Path: one}}},
		{"too broad to be a root still narrows", []string{one, other}, []string{filepath.Dir(work), "/"}, []sandbox.Root{{Path: one}, {Path: other}}},
		{"takes one of two away", []string{one, other}, []string{work}, []sandbox.Root{{Path: one}}},
		{"nothing in common", []string{one}, []string{other}, []sandbox.Root{{Path: one}}},
		{"a name that begins alike", []string{one}, []string{one + "-evil"}, []sandbox.Root{{Path: one}}},
		{"not by a link", []string{two}, []string{link}, []sandbox.Root{{Path: two}}},
		{"what does not exist", []string{one}, []string{one + "/nothing"}, []sandbox.Root{{Path: one}}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			got, err := rootsOf(t, sandbox.Config{Roots: tc.configured, ClientRoots: offers(tc.offered...)})
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
		})
	}
}

func TestRootErrors(t *testing.T) {
	d := dirs(t, "home/project", "home/.cache")
	project := d[0]
	home := filepath.Dir(project)
	file := filepath.Join(project, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	atHome := env("HOME", home, "USERPROFILE", home)
	link := filepath.Join(project, "to-home")
	require.NoError(t, os.Symlink(home, link))
	cases := []struct {
		name   string
		config sandbox.Config
		code   toolerr.Code
	}{
		{"the home directory", sandbox.Config{Roots: []string{home}, Getenv: atHome}, toolerr.RootRefused},
		{"by its sign", sandbox.Config{Roots: []string{"~"}, Getenv: atHome}, toolerr.RootRefused},
		{"with a slash", sandbox.Config{Roots: []string{home + "/"}, Getenv: atHome}, toolerr.RootRefused},
		{"by a link", sandbox.Config{Roots: []string{link}, Getenv: atHome}, toolerr.RootRefused},
		{"what contains it", sandbox.Config{Roots: []string{filepath.Dir(home)}, Getenv: atHome}, toolerr.RootRefused},
		{"offered", sandbox.Config{ClientRoots: offers(home), Getenv: atHome}, toolerr.RootRefused},
		{"from the environment", sandbox.Config{Getenv: env("CLAUDE_PROJECT_DIR", home, "HOME", home, "USERPROFILE", home)}, toolerr.RootRefused},
		{"the top", sandbox.Config{Roots: []string{filepath.VolumeName(home) + string(filepath.Separator)}}, toolerr.RootRefused},
		{"nothing", sandbox.Config{Roots: []string{filepath.Join(project, "nothing")}}, toolerr.NotFound},
		{"one of two", sandbox.Config{Roots: []string{project, filepath.Join(project, "nothing")}}, toolerr.NotFound},
		{"a file", sandbox.Config{Roots: []string{file}}, toolerr.NotADirectory},
		{"offered, nothing", sandbox.Config{ClientRoots: offers(filepath.Join(project, "nothing"))}, toolerr.NotFound},
		{"no home", sandbox.Config{Roots: []string{"~/x"}}, toolerr.NotFound},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			_, err := rootsOf(t, tc.config)
			requireCode(t, tc.code, err)
		})
	}
	got, err := rootsOf(t, sandbox.Config{Roots: []string{"~"}, Getenv: atHome, AllowRootDir: true})
	require.NoError(t, err)
	require.Equal(t, []sandbox.Root{{Path: home}}, got)

	t.Chdir(filepath.VolumeName(home) + string(filepath.Separator))
	_, err = rootsOf(t, sandbox.Config{})
	requireCode(t, toolerr.NoRoot, err)
	require.ErrorContains(t, err, "--root")

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = sandbox.New(sandbox.Config{Getenv: noEnv, ClientRoots: func(ctx context.Context) ([]string, error) { return nil, ctx.Err() }}).FS(ctx)
	requireCode(t, toolerr.Cancelled, err)
}

// The roots are opened once, replaced when the client sends others, and opened again
// when they were deleted and made again.
func TestRootsOverTime(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		var offered []string
		s := box(sandbox.Config{Roots: []string{tr.root, filepath.Join(tr.base, "later")}, Getenv: noEnv,
			ClientRoots: func(context.Context) ([]string, error) { return offered, nil }})
		_, err := s.FS(context.Background())
		requireCode(t, toolerr.NotFound, err)
		require.NoError(t, os.Mkdir(filepath.Join(tr.base, "later"), 0o755))

		first, err := s.FS(context.Background())
		require.NoError(t, err)
		again, err := s.FS(context.Background())
		require.NoError(t, err)
		require.Same(t, first, again)

		offered = []string{filepath.Join(tr.root, "dir")}
		narrowed, err := s.FS(context.Background())
		require.NoError(t, err)
		require.Equal(t, []sandbox.Root{{Path: offered[0]}}, narrowed.Roots())
		content, err := read(t, narrowed, "b.txt")
		require.NoError(t, err)
		require.Equal(t, "b", content)
		_, err = read(t, narrowed, "../a.txt")
		requireCode(t, toolerr.OutsideRoot, err)
		_, err = read(t, first, "a.txt")
		require.NoError(t, err, "calls under way keep their roots")

		offered = nil
		require.NoError(t, os.RemoveAll(tr.root))
		_, err = s.FS(context.Background())
		requireCode(t, toolerr.NotFound, err)
		tr.write(t, "root/new.txt", "new")
		renewed, err := s.FS(context.Background())
		require.NoError(t, err)
		content, err = read(t, renewed, "new.txt")
		require.NoError(t, err)
		require.Equal(t, "new", content)
	})
}

// A command that may write in a root's parent directory cannot move the root.
func TestRootIsNotSwapped(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		tr.link(t, tr.root, "named")
		for _, given := range []string{tr.root, filepath.Join(tr.base, "named")} {
			s := box(sandbox.Config{Roots: []string{given}, Getenv: noEnv})
			_, err := s.FS(context.Background())
			require.NoError(t, err)
			require.NoError(t, os.Rename(tr.root, tr.root+".away"))
			require.NoError(t, os.Symlink(filepath.Join(tr.base, "outside"), tr.root))
			_, err = s.FS(context.Background())
			require.Error(t, err)
			require.NoError(t, os.Remove(tr.root))
			require.NoError(t, os.Rename(tr.root+".away", tr.root))
			_, err = s.FS(context.Background())
			require.NoError(t, err)
		}
	})
}

func TestNestedRoots(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		tr.link(t, "dir/b.txt", "root/link")
		fs := open(t, box, tr.root, filepath.Join(tr.root, "dir")+":ro")
		for name, readOnly := range map[string]bool{
			"a.txt": false, "dir/b.txt": true, "link": true, "dir/../a.txt": false,
			filepath.Join(tr.root, "dir", "sub", "c.txt"): true, filepath.Join(tr.root, "a.txt"): false,
		} {
			f, err := fs.Open(name)
			require.NoError(t, err, name)
			require.Equal(t, readOnly, f.Root.ReadOnly, name)
			require.NoError(t, f.Close())
		}
		require.Equal(t, "dir/b.txt", fs.Display(filepath.Join(tr.root, "dir", "b.txt")))
		require.Equal(t, ".", fs.Display(tr.root))
		require.Equal(t, filepath.ToSlash(tr.second), fs.Display(tr.second))
		require.Equal(t, filepath.ToSlash(tr.root)+"-evil", fs.Display(tr.root+"-evil"))
	})
}

func TestConfig(t *testing.T) {
	var c sandbox.Config
	flags := flag.NewFlagSet("mcp-x", flag.ContinueOnError)
	c.AddFlags(flags)
	require.NoError(t, flags.Parse([]string{"--root", "a", "--root=b:ro", "--read-only", "--allow-path", "*.p12", "--allow-write=.envrc", "--allow-root-dir", "c"}))
	c.AddRoots(flags.Args())
	require.Equal(t, sandbox.Config{Roots: []string{"a", "b:ro", "c"}, ReadOnly: true, AllowPaths: []string{"*.p12"},
		AllowWrites: []string{".envrc"}, AllowRootDir: true}, c)
	require.NoError(t, c.Validate())
	for want, bad := range map[string]sandbox.Config{
		"root":        {Roots: []string{""}},
		"NUL":         {Roots: []string{"a\x00b"}},
		"allow-path":  {AllowPaths: []string{"[a"}},
		"allow-write": {AllowWrites: []string{""}},
	} {
		require.ErrorContains(t, bad.Validate(), want)
	}
}
