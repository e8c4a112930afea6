package walk_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/walk"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Each case is a tree and the regular files in it that are not ignored.
var ignoreCases = []struct {
	name string
	tree files
	want string
}{
	{"outside a repository .gitignore does not count", files{".gitignore": "a", "a": ""}, ".gitignore a"},
	{".ignore always counts", files{".ignore": "a", "a": "", "b/a": ""}, ".ignore"},
	{"name at any depth", files{".git/": "", ".gitignore": "a", "a": "", "b/a": "", "b/c": ""}, ".gitignore b/c"},
	{"anchored by a slash in front", files{".ignore": "/a", "a": "", "b/a": ""}, ".ignore b/a"},
	{"anchored by a slash inside", files{".ignore": "b/a", "b/a": "", "c/b/a": ""}, ".ignore c/b/a"},
	{"directories only", files{".ignore": "a/", "a/x": "", "b/a": ""}, ".ignore b/a"},
	{"a link to a directory is none", files{".ignore": "l/", "d/f": "", "l": "-> d"}, ".ignore d/f"},
	{"the last rule counts", files{".ignore": "*.log\n!a.log\na.l*\n!b.log", "a.log": "", "b.log": "", "c.log": ""}, ".ignore b.log"},
	{"nothing is re-included below an ignored directory", files{".ignore": "d/\n!d/keep", "d/keep": ""}, ".ignore"},
	{"but it is below its ignored children", files{".ignore": "d/*\n!d/keep", "d/keep": "", "d/x": ""}, ".ignore d/keep"},
	{"nearer files count more", files{".ignore": "*.log", "d/.ignore": "!*.log", "a.log": "", "d/a.log": ""}, ".ignore d/.ignore d/a.log"},
	{"star stays within an element", files{".ignore": "/a*z", "a/z": "", "abz": ""}, ".ignore a/z"},
	{"leading double star", files{".ignore": "**/x/y", "x/y": "", "a/b/x/y": "", "a/y": ""}, ".ignore a/y"},
	{"inner double star", files{".ignore": "a/**/z", "a/z": "", "a/b/z": "", "a/b/c/z": "", "b/a/z": ""}, ".ignore b/a/z"},
	{"trailing double star", files{".ignore": "a/**", "a/b/c": "", "b/a/c": ""}, ".ignore b/a/c"},
	{"trailing double star and negation", files{".ignore": "a/**\n!a/b/\n!a/b/c", "a/b/c": "", "a/b/d": "", "a/e": ""}, ".ignore a/b/c"},
	{"question mark", files{".ignore": "a?c", "abc": "", "ac": "", "a/c": ""}, ".ignore a/c ac"},
	{"classes", files{".ignore": "[a-c]1\n[!x]2\n[]]3\n[^-]4", "b1": "", "d1": "", "x2": "", "y2": "", "]3": "", "-4": "", "e4": ""}, "-4 .ignore d1 x2"},
	{"unclosed class", files{".ignore": "[a\n/[!*\n[c-a\n*{d[,q}", "a": "", "b": "", "[a": "", "[!": "", "[c-a": "", "xd[": "", "xd": "", "xq": ""}, ".ignore [c-a a b xd"},
	{"unclosed class to git", files{".git/": "", ".gitignore": "[a\nb", "a": "", "b": "", "[a": ""}, ".gitignore [a a"},
	{"a backslash within brackets is one in .ignore", files{".ignore": `[\]1]` + "\n" + `[a\-c]2`, `\1]`: "", "1": "", "]": "", "^2": "", "-2": "", `\2`: ""}, "-2 .ignore 1 ]"},
	{"and an escape to git", files{".git/": "", ".gitignore": `[\]1]` + "\n" + `[a\-c]2`, `\1]`: "", "1": "", "]": "", "^2": "", "-2": ""}, `.gitignore \1] ^2`},
	{"a range that runs backwards", files{".ignore": "[c-a]", "d/.git/": "", "d/.gitignore": "[c-a]", "c": "", "d/b": "", "d/c": ""}, ".ignore c d/.gitignore d/b"},
	{"two slashes", files{".git/": "", ".gitignore": "//a\nb//c\nd//\n", ".ignore": "//a\nb//c\nd//\n", "a": "", "b/c": "", "d/e": ""}, ".gitignore .ignore a b/c d/e"},
	{"named class", files{".git/": "", ".gitignore": "[[:digit:]]", "1": "", "a": ""}, ".gitignore a"},
	{"escapes", files{".ignore": "\\#a\n\\!b\n\\*\nx\\", "#a": "", "!b": "", "*": "", "c": "", "x": ""}, ".ignore c x"},
	{"comments and blank lines", files{".ignore": "#a\n\n   \n/\n", "#a": "", "a": ""}, "#a .ignore a"},
	{"trailing spaces", files{".ignore": "a  \nb\\ \n", "a": "", "b ": "", "b": ""}, ".ignore b"},
	{"byte order mark and CRLF", files{".ignore": "\ufeffa\r\nb\r\n", "a": "", "b": "", "c": ""}, ".ignore c"},
	{"CRLF in git's files", files{".git/": "", ".gitignore": "a\r\n*.log\r\n", "a": "", "b.log": "", "c": ""}, ".gitignore c"},
	{"no line end at the end", files{".ignore": "a\nb", "b": ""}, ".ignore"},
	{"names that are not UTF-8", files{".ignore": "\xff*\n", "\xffa": "", "a": ""}, ".ignore a"},
	{"braces are alternatives in .ignore", files{".ignore": "*.{a,b}", "x.a": "", "x.b": "", "x.{a,b}": ""}, ".ignore x.{a,b}"},
	{"but not to git", files{".git/": "", ".gitignore": "*.{a,b}", "x.a": "", "x.b": "", "x.{a,b}": ""}, ".gitignore x.a x.b"},
	{".ignore before .gitignore", files{".git/": "", ".gitignore": "a", ".ignore": "!a\nb", "a": "", "b": ""}, ".gitignore .ignore a"},
	{".rgignore before .ignore", files{".rgignore": "!a", ".ignore": "a", "a": ""}, ".ignore .rgignore a"},
	{"a kind before a nearer file of another", files{".ignore": "a", ".git/": "", "d/.gitignore": "!a", "d/a": ""}, ".ignore d/.gitignore"},
	{"info/exclude after .gitignore", files{".git/info/exclude": "a\nb", ".gitignore": "!a", "a": "", "b": ""}, ".gitignore a"},
	{"a nested repository starts anew", files{".git/": "", ".gitignore": "a", "n/.git/": "", "n/a": "", "a": ""}, ".gitignore n/a"},
	{".ignore goes through to it", files{".ignore": "a", "n/.git/": "", "n/a": ""}, ".ignore"},
	{"Jujutsu's repositories count", files{".jj/": "", ".gitignore": "a", "a": ""}, ".gitignore"},
	{"work tree with a .git file", files{"main/.git/info/exclude": "a", "main/.git/worktrees/w/commondir": "../..\n", "w/.git": "gitdir: ../main/.git/worktrees/w\n", "w/a": "", "w/b": ""}, "w/b"},
	{"submodule", files{".git/modules/s/info/exclude": "a", "s/.git": "gitdir: ../.git/modules/s\n", "s/a": "", "s/b": ""}, "s/b"},
	{"a .git file that leads nowhere", files{".git": "gitdir: /nowhere\n", ".gitignore": "a", "a": "", "b": ""}, ".gitignore b"},
	{"core.ignorecase", files{".git/config": "[core]\n\tignorecase = true\n", ".gitignore": "FOO/*.TXT\nBar\n[X-Z]", "foo/a.txt": "", "bAR": "", "y": ""}, ".gitignore"},
	{"its own core.excludesFile", files{".git/config": "[core]\nexcludesFile = \"my ex\" ; c\n", "my ex": "/a", "a": "", "b/a": ""}, "b/a my ex"},
	{"an ignore file that is a directory", files{".ignore/x": "", "a": ""}, ".ignore/x a"},
}

func TestIgnore(t *testing.T) {
	for _, c := range ignoreCases {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			c.tree.write(t, root)
			got, _ := collect(t, start(t, root, ".", walk.Options{Hidden: true}), func(e *walk.Entry) bool {
				return e.IsRegular() && !strings.Contains(e.Path, ".jj")
			})
			require.Equal(t, c.want, strings.Join(got, " "))
		})
	}
}

// Rules of directories above the start apply to its entries, but not to the
// start itself.
func TestIgnoreFromBelow(t *testing.T) {
	root := t.TempDir()
	files{
		".git/": "", ".gitignore": "/s/d/a\nb\n*.log\ns/d\n/a", "s/.ignore": "c", "s/d/.gitignore": "!x.log",
		"s/d/a": "", "s/d/b": "", "s/d/c": "", "s/d/d": "", "s/d/x.log": "", "s/d/y.log": "", "s/d/e/a": "", "s/d/s/d/a": "",
	}.write(t, root)
	got, _ := collect(t, start(t, root, "s/d", walk.Options{}), regular)
	require.Equal(t, "d e/a s/d/a x.log", strings.Join(got, " "))
	got, _ = collect(t, start(t, filepath.Join(root, "s", "d"), ".", walk.Options{}), regular)
	require.Equal(t, "d e/a s/d/a x.log", strings.Join(got, " "), "also above the root")
}

// NoIgnore also disables ignore files in sub-directories.
func TestNoIgnore(t *testing.T) {
	root := t.TempDir()
	files{".git/": "", ".ignore": "a", "a": "", "d/.ignore": "a", "d/a": "", "d/e/.rgignore": "/a", "d/e/a": "", "d/.gitignore": "a"}.write(t, root)
	got, report := collect(t, start(t, root, ".", walk.Options{NoIgnore: true}), regular)
	require.Equal(t, "a d/a d/e/a", strings.Join(got, " "))
	require.Zero(t, report.Ignored)
}

// A rule with ! shows a hidden entry, as in ripgrep.
func TestHidden(t *testing.T) {
	root := t.TempDir()
	files{".ignore": "!.shown\n.gone", ".shown": "", ".gone": "", ".other": "", ".d/x": "", "a": ""}.write(t, root)
	got, _ := collect(t, start(t, root, ".", walk.Options{}), anything)
	require.Equal(t, []string{".shown", "a"}, got)
	got, _ = collect(t, start(t, root, ".", walk.Options{Hidden: true}), anything)
	require.Equal(t, []string{".d", ".d/x", ".ignore", ".other", ".shown", "a"}, got)
}

func TestGlobalExcludes(t *testing.T) {
	home := t.TempDir()
	files{
		".config/git/ignore": "*.xdg", "conf/git/ignore": "*.conf", "mine": "*.mine\n/top\n!*.kept",
		"gitconfig": "[Core]\n  # comment\n  ExcludesFile = ~/mine # here\n", "inc": "[include]\npath = gitconfig\n",
	}.write(t, home)
	root := t.TempDir()
	files{
		"r/.git/": "", "r/.gitignore": "*.kept", "r/a.xdg": "", "r/a.conf": "", "r/a.mine": "", "r/top": "", "r/s/top": "", "r/a.kept": "",
		"a.xdg": "", "a.mine": "",
	}.write(t, root)
	cases := map[string]struct {
		env  map[string]string
		want string
	}{
		"nothing":    {nil, "a.mine a.xdg r/a.conf r/a.mine r/a.xdg r/s/top r/top"},
		"default":    {map[string]string{"HOME": home}, "a.mine a.xdg r/a.conf r/a.mine r/s/top r/top"},
		"XDG":        {map[string]string{"HOME": home, "XDG_CONFIG_HOME": filepath.Join(home, "conf")}, "a.mine a.xdg r/a.mine r/a.xdg r/s/top r/top"},
		"configured": {map[string]string{"HOME": home, "GIT_CONFIG_GLOBAL": filepath.Join(home, "gitconfig")}, "a.mine a.xdg r/a.conf r/a.xdg r/s/top"},
		"included":   {map[string]string{"HOME": home, "GIT_CONFIG_GLOBAL": filepath.Join(home, "inc")}, "a.mine a.xdg r/a.conf r/a.xdg r/s/top"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			getenv := func(key string) string { return c.env[key] + noEnv(key) }
			got, _ := collect(t, start(t, root, ".", walk.Options{Getenv: getenv}), regular)
			require.Equal(t, c.want, strings.Join(got, " "))
		})
	}
}

// An unreadable ignore file is reported and hides nothing.
func TestFaults(t *testing.T) {
	root := t.TempDir()
	files{
		"big/.ignore": strings.Repeat("# filler\n", 1<<17) + "a\n", "big/a": "",
		"link/.ignore": "-> ../rules", "link/a": "", "rules": "a",
		"repo/.git/config": "[core]\nexcludesfile = /etc/hostname\n", "repo/a": "",
	}.write(t, root)
	got, report := collect(t, start(t, root, ".", walk.Options{}), regular)
	require.Equal(t, "big/a link/a repo/a rules", strings.Join(got, " "))
	codes := map[string]toolerr.Code{}
	for _, f := range report.Faults {
		codes[f.Path] = toolerr.CodeOf(f.Err)
	}
	require.Equal(t, map[string]toolerr.Code{
		"big/.ignore": toolerr.TooLarge, "link/.ignore": toolerr.SpecialFile, "repo/.git": toolerr.DeniedPath,
	}, codes)
}

func TestNode(t *testing.T) {
	root := t.TempDir()
	files{
		".git/": "", ".gitignore": "*.log\n/d/x\n", "a.log": "", "b": "", ".h": "", "d/x": "", "d/y": "", "d/e/z.log": "", "l": "-> d",
	}.write(t, root)
	node := start(t, root, ".", walk.Options{})
	require.Equal(t, ".", node.Path())
	list := func(n *walk.Node) string {
		entries, err := n.Entries()
		require.NoError(t, err)
		var b strings.Builder
		for _, e := range entries {
			b.WriteString(" " + e.Path)
			for mark, set := range map[string]bool{"/": e.IsDir(), "@": e.Type&os.ModeSymlink != 0} {
				if set {
					b.WriteString(mark)
				}
			}
			if e.Ignored {
				b.WriteString("(ignored)")
			}
			if e.Hidden {
				b.WriteString("(hidden)")
			}
		}
		return b.String()
	}
	require.Equal(t, " .gitignore(hidden) .h(hidden) a.log(ignored) b d/ l@", list(node))
	require.Equal(t, " .gitignore(hidden) .h(hidden) a.log(ignored) b d/ l@", list(node), "and again")
	d, err := node.Enter("d")
	require.NoError(t, err)
	defer d.Close()
	require.Equal(t, 1, d.Depth())
	e, err := d.Enter("e") // before d was read
	require.NoError(t, err)
	defer e.Close()
	require.Equal(t, "d/e", e.Path())
	require.Equal(t, " d/e/z.log(ignored)", list(e))
	require.Equal(t, " d/e/ d/x(ignored) d/y", list(d))
	for _, name := range []string{"l", "b", "none", "..", "d/e"} {
		_, err = node.Enter(name)
		require.Error(t, err, name)
	}
	seen, _ := collect(t, d, anything)
	require.Equal(t, []string{"d/e", "d/y"}, seen, "a walk may begin at any node")
	var part []string
	report, err := walk.Walk(context.Background(), d, func(_ int, e *walk.Entry) error {
		part = append(part, e.Path)
		return context.Canceled
	})
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, report.Partial)
}

func TestStartErrors(t *testing.T) {
	root := t.TempDir()
	files{"f": "", "d/": ""}.write(t, root)
	node := start(t, root, "d", walk.Options{})
	entries, err := node.Entries()
	require.NoError(t, err)
	require.Empty(t, entries)
}
