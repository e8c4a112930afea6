//go:build linux

package proc_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
)

// rulesOf returns the rules of a sandbox with these roots.
func rulesOf(t testing.TB, dirs ...string) proc.Rules {
	t.Helper()
	fs, err := sandbox.New(sandbox.Config{Roots: dirs, Getenv: func(string) string { return "" }}).FS(context.Background())
	require.NoError(t, err)
	return fs
}

// homeRunner returns a runner with this home directory, at a level that it
// does not test.
func homeRunner(t testing.TB, level proc.Level, home string) *proc.Runner {
	t.Helper()
	r := newRunner(t, proc.Config{Level: level, Environ: append(os.Environ(), "HOME="+home)})
	proc.TrustLevel(r, level)
	return r
}

// TestLinkedStoresAreMasked: the masks are on the targets of links, and hide
// them under every name (F06).
func TestLinkedStoresAreMasked(t *testing.T) {
	t.Parallel()
	type link struct{ name, target string }
	for name, c := range map[string]struct {
		file   string // in the place, contains the secret
		links  []link
		reads  []string
		levels string
	}{
		"a store":                  {"home/dotfiles/aws/credentials", []link{{"home/.aws", "dotfiles/aws"}}, []string{"home/.aws/credentials", "home/dotfiles/aws/credentials"}, bothLevels},
		"an absolute link":         {"home/dotfiles/aws/credentials", []link{{"home/.aws", "PLACE/home/dotfiles/aws"}}, []string{"home/.aws/credentials", "home/dotfiles/aws/credentials"}, bothLevels},
		"a key in a store":         {"home/keys/k", []link{{"home/.ssh/id_rsa", "../keys/k"}}, []string{"home/.ssh/id_rsa", "home/keys/k"}, bothLevels},
		"a chain":                  {"home/c/credentials", []link{{"home/.aws", "a"}, {"home/a", "b"}, {"home/b", "c"}}, []string{"home/.aws/credentials", "home/a/credentials", "home/b/credentials", "home/c/credentials"}, bothLevels},
		"a link in .config":        {"home/dotfiles/gh/hosts.yml", []link{{"home/.config/gh", "../dotfiles/gh"}}, []string{"home/.config/gh/hosts.yml", "home/dotfiles/gh/hosts.yml"}, bothLevels},
		"a linked .config":         {"home/dotfiles/config/gh/hosts.yml", []link{{"home/.config", "dotfiles/config"}}, []string{"home/.config/gh/hosts.yml", "home/dotfiles/config/gh/hosts.yml"}, bothLevels},
		"a file":                   {"home/dotfiles/netrc", []link{{"home/.netrc", "dotfiles/netrc"}}, []string{"home/.netrc", "home/dotfiles/netrc"}, bothLevels},
		"a history":                {"home/dotfiles/h", []link{{"home/.bash_history", "dotfiles/h"}}, []string{"home/.bash_history", "home/dotfiles/h"}, bothLevels},
		"a directory in a store":   {"home/more/d/x", []link{{"home/.ssh/keys/d", "../../more/d"}}, []string{"home/more/d/x"}, bothLevels},
		"two stores, one in other": {"home/all/ssh/x", []link{{"home/.ssh", "all/ssh"}, {"home/.gnupg", "all"}}, []string{"home/all/ssh/x", "home/.ssh/x"}, bothLevels},
		"a store in a root":        {"root/dotfiles/aws/credentials", []link{{"home/.aws", "../root/dotfiles/aws"}}, []string{"home/.aws/credentials", "root/dotfiles/aws/credentials"}, onlyL2},
		"a link in a root":         {"root/x/y/credentials", []link{{"root/sub/.aws", "../x/y"}}, []string{"root/sub/.aws/credentials", "root/x/y/credentials"}, onlyL2},
		"a key in a root":          {"root/k", []link{{"root/id_rsa", "k"}}, []string{"root/id_rsa", "root/k"}, onlyL2},
		"from a root to a home":    {"home/plain/k", []link{{"root/id_rsa", "../home/plain/k"}}, []string{"root/id_rsa", "home/plain/k"}, bothLevels},
		"a store of a store":       {"root/in/k", []link{{"root/.ssh/id_rsa", "../in/k"}}, []string{"root/in/k"}, onlyL2},
		"a link deep in a store":   {"home/plain/k", []link{{"home/.ssh/a/b/c/d/e/f/k", "../../../../../../../plain/k"}}, []string{"home/plain/k"}, bothLevels},
		"links in linked stores": {"home/4/k", []link{
			{"home/.ssh/1", "../1"}, {"home/1/2", "../2"}, {"home/2/3", "../3"}, {"home/3/4", "../4"}, {"home/4/5", "../5"}, {"home/5/6", "../4"},
		}, []string{"home/4/k", "home/.ssh/1/2/3/4/k"}, bothLevels},
		"a long chain": {"home/f/netrc", []link{
			{"home/.netrc", "a"}, {"home/a", "b"}, {"home/b", "c"}, {"home/c", "d"}, {"home/d", "e/netrc"}, {"home/e", "f"},
		}, []string{"home/.netrc", "home/c", "home/e/netrc", "home/f/netrc"}, bothLevels},
		"a store deep in a home": {"home/work/x/.aws/credentials", nil, []string{"home/work/x/.aws/credentials"}, bothLevels},
		"a file deep in a home":  {"home/a/b/c/.netrc", nil, []string{"home/a/b/c/.netrc"}, bothLevels},
		"a link deep in a home":  {"home/plain/k", []link{{"home/work/x/.netrc", "../../plain/k"}}, []string{"home/work/x/.netrc", "home/plain/k"}, bothLevels},
	} {
		for _, level := range levels(t) {
			if !strings.Contains(c.levels, string(level)) {
				continue
			}
			t.Run(name+" at "+string(level), func(t *testing.T) {
				t.Parallel()
				dir := place(t)
				for _, sub := range []string{"home", "root"} {
					require.NoError(t, os.Mkdir(filepath.Join(dir, sub), 0o755))
				}
				path := filepath.Join(dir, c.file)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
				require.NoError(t, os.WriteFile(path, []byte("CREDENTIAL\n"), 0o644))
				for _, l := range c.links {
					require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, l.name)), 0o755))
					require.NoError(t, os.Symlink(strings.ReplaceAll(l.target, "PLACE", dir), filepath.Join(dir, l.name)))
				}
				r, root := homeRunner(t, level, filepath.Join(dir, "home")), filepath.Join(dir, "root")
				script := "cat '" + dir + "/" + strings.Join(c.reads, "' '"+dir+"/") + "'"
				for range 2 { // the second one uses a prestarted supervisor
					result, out := run(t, r, proc.Command{Script: script, Dir: root, Rules: rulesOf(t, root)})
					require.NotContains(t, out, "CREDENTIAL")
					require.NotZero(t, result.ExitCode)
				}
			})
		}
	}
}

// TestMaskedFilesAreNotReadWithTheNetwork: a command with network access
// cannot read a settings file with secrets under any name.
func TestMaskedFilesAreNotReadWithTheNetwork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file   string
		link   func(old, name string) error
		names  map[string]string
		levels string
	}{
		"a link in a home":          {"home/dotfiles/npmrc", os.Symlink, map[string]string{"home/.npmrc": "dotfiles/npmrc"}, bothLevels},
		"through a directory":       {"home/dotfiles/npmrc", os.Symlink, map[string]string{"home/.npmrc": "d/npmrc", "home/d": "dotfiles"}, bothLevels},
		"a long chain":              {"home/e", os.Symlink, map[string]string{"home/.env": "a", "home/a": "b", "home/b": "c", "home/c": "d", "home/d": "e"}, bothLevels},
		"a home's link into a root": {"root/dotfiles/npmrc", os.Symlink, map[string]string{"home/.npmrc": "../root/dotfiles/npmrc"}, onlyL2},
		"a link in a root":          {"root/conf/env", os.Symlink, map[string]string{"root/a/b/.env": "../../conf/env"}, onlyL2},
		"out of a root":             {"home/conf/env", os.Symlink, map[string]string{"root/.env": "../home/conf/env"}, bothLevels},
		"a backup":                  {"home/.env~", nil, nil, bothLevels},
		"an editor's copy":          {"root/sub/.#.env.swp", nil, nil, onlyL2},
		"deep in a home":            {"home/work/x/.env", nil, nil, bothLevels},
		"a hard link in a root":     {"root/a/b/x", os.Link, map[string]string{"root/.env": "root/a/b/x"}, onlyL2},
		"a hard link in a home":     {"home/work/x", os.Link, map[string]string{"home/.netrc": "home/work/x"}, bothLevels},
		"a hard link into a root":   {"root/x", os.Link, map[string]string{"home/.netrc": "root/x"}, onlyL2},
	} {
		for _, level := range levels(t) {
			if !strings.Contains(c.levels, string(level)) {
				continue
			}
			t.Run(name+" at "+string(level), func(t *testing.T) {
				t.Parallel()
				dir := filesIn(t, place(t), "home/f", "root/f", c.file)
				reads := []string{filepath.Join(dir, c.file)}
				for name, target := range c.names {
					if name = filepath.Join(dir, name); strings.Contains(target, "root/") && !strings.HasPrefix(target, "..") || strings.HasPrefix(target, "home/") {
						target = filepath.Join(dir, target)
					}
					require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
					require.NoError(t, c.link(target, name))
					reads = append(reads, name)
				}
				r := newRunner(t, proc.Config{Level: level, Network: true, Environ: append(os.Environ(), "HOME="+filepath.Join(dir, "home"))})
				proc.TrustLevel(r, level)
				root := filepath.Join(dir, "root")
				for range 2 { // the second one uses a prestarted supervisor
					_, out := run(t, r, proc.Command{Script: "for f in '" + strings.Join(reads, "' '") + "'; do cat \"$f\"; done; cat f", Dir: root, Rules: rulesOf(t, root)})
					require.Equal(t, 1, strings.Count(out, "old"), out)
				}
			})
		}
	}
}

// TestHarmlessLinksStay: a credential store's link to a device, or to the home
// directory itself, does not mask its target.
func TestHarmlessLinksStay(t *testing.T) {
	t.Parallel()
	for _, level := range levels(t) {
		if level == proc.Off {
			continue
		}
		dir := filesIn(t, place(t), "home/f", "root/f")
		home, root := filepath.Join(dir, "home"), filepath.Join(dir, "root")
		require.NoError(t, os.Symlink("/dev/null", filepath.Join(home, ".bash_history")))
		require.NoError(t, os.Symlink(".", filepath.Join(home, ".aws")))
		require.NoError(t, os.Symlink(root, filepath.Join(home, ".azure")))
		result, out := run(t, homeRunner(t, level, home), proc.Command{Script: "echo x > /dev/null && cat f ~/f", Dir: root, Rules: rulesOf(t, root)})
		require.Equal(t, "old\nold\n", out, level)
		require.Contains(t, strings.Join(result.Gaps, "; "), "holds a root")
	}
}

// TestALinkedStoreStaysMasked: a store stays masked when a command moves the
// directory that contains it.
func TestALinkedStoreStaysMasked(t *testing.T) {
	t.Parallel()
	if !contains(levels(t), proc.L2) {
		t.Skip("L2 is not available")
	}
	dir := filesIn(t, place(t), "home/f", "root/dotfiles/aws/credentials")
	home, root := filepath.Join(dir, "home"), filepath.Join(dir, "root")
	require.NoError(t, os.Symlink(root+"/dotfiles/aws", filepath.Join(home, ".aws")))
	r := homeRunner(t, proc.L2, home)
	do := func(script string) string {
		_, out := run(t, r, proc.Command{Script: script, Dir: root, Rules: rulesOf(t, root)})
		return out
	}
	require.Contains(t, do("mv dotfiles d && echo moved"), "moved")
	require.NotContains(t, do("cat d/aws/credentials"), "old")
}

// TestTheAccountsOwnHome: the account's home is masked whatever HOME contains
// (F08).
func TestTheAccountsOwnHome(t *testing.T) {
	t.Parallel()
	for _, level := range levels(t) {
		if level == proc.Off {
			continue
		}
		dir := filesIn(t, place(t), "account/.ssh/id_x", "other/f", "account/.config/gh/hosts.yml")
		account := filepath.Join(dir, "account")
		for _, home := range []string{"HOME=", "HOME=account", "HOME=" + filepath.Join(dir, "other"), "NOHOME=1", "HOME=" + dir} {
			environ := []string{"PATH=" + os.Getenv("PATH"), home}
			r := newRunner(t, proc.Config{Level: level, Environ: environ})
			proc.TrustLevel(r, level)
			proc.SetHomes(r, account)
			_, out := run(t, r, proc.Command{Script: "cat " + account + "/.ssh/id_x " + account + "/.config/gh/hosts.yml", Dir: dir, Rules: rulesOf(t, t.TempDir())})
			require.NotContains(t, out, "old", "%s at %s", home, level)
		}
	}
}

// TestHomesOfTheUserDatabase: the account's home is found without HOME.
func TestHomesOfTheUserDatabase(t *testing.T) {
	env := func(values map[string]string) func(string) string {
		return func(name string) string { return values[name] }
	}
	text, err := os.ReadFile("/etc/passwd")
	require.NoError(t, err)
	home := ""
	for line := range strings.Lines(string(text)) {
		if fields := strings.Split(strings.TrimSpace(line), ":"); len(fields) == 7 && fields[2] == strconv.Itoa(os.Geteuid()) && home == "" {
			home = fields[5]
		}
	}
	if home == "" {
		t.Skip("this user has no entry in /etc/passwd")
	}
	for _, given := range []string{"", "relative", "/another"} {
		require.Contains(t, sandbox.Homes(env(map[string]string{"HOME": given})), filepath.Clean(home))
	}
	require.Contains(t, sandbox.Homes(env(map[string]string{"HOME": "/another"})), "/another")
}

// moveCommands returns the number of commands that run while the key is moved.
func moveCommands() int {
	if n, err := strconv.Atoi(os.Getenv("PROC_MOVES")); err == nil {
		return n
	}
	return 20
}

// TestAKeyThatIsMovedAllTheTime: no other command can read the key, neither of
// the same server nor of a new one (F07).
func TestAKeyThatIsMovedAllTheTime(t *testing.T) {
	t.Parallel()
	if !contains(levels(t), proc.L2) {
		t.Skip("L2 is not available")
	}
	for name, move := range map[string]string{
		"in a directory": "mv d/keys d/k2; mv d/k2 d/keys",
		"at the top":     "mv top/keys top2; mv top2 top/keys",
		"to another":     "mv d/keys e/f/keys; mv e/f/keys d/keys",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := filesIn(t, place(t), "d/keys/id_rsa", "top/keys/id_rsa", "e/f/g")
			rules := rulesOf(t, root)
			mover := trusted(t, proc.L2)
			p, err := mover.Start(context.Background(), proc.Command{Script: "while :; do " + move + "; done 2>/dev/null", Dir: root, Rules: rules})
			require.NoError(t, err)
			defer func() {
				p.Stop()
				p.Wait()
			}()
			r := trusted(t, proc.L2)
			read, refused := 0, 0
			for i := range moveCommands() {
				if i%5 == 4 {
					r = trusted(t, proc.L2)
				}
				_, out, err := r.Run(context.Background(), proc.Command{
					Script: "for i in 1 2 3 4 5; do cat d/*/id_rsa top/*/id_rsa top2/id_rsa e/f/*/id_rsa; done 2>/dev/null", Dir: root, Rules: rules,
				})
				if err != nil {
					require.ErrorContains(t, err, "try again")
					refused++
					continue
				}
				if strings.Contains(out.Excerpt(0).Text(), "old") {
					read++
				}
				out.Close()
			}
			t.Logf("%d commands, %d read the key, %d refused", moveCommands(), read, refused)
			require.Zero(t, read)
			require.Less(t, refused, moveCommands()/2)
		})
	}
}

// TestALaterServerFindsWhatWasMoved: a new server masks a secret that was
// moved beyond the bounds of the search (F11).
func TestALaterServerFindsWhatWasMoved(t *testing.T) {
	t.Parallel()
	if !contains(levels(t), proc.L2) {
		t.Skip("L2 is not available")
	}
	root, kept := filesIn(t, place(t), "sub/deep/id_rsa", "other/dot/k"), t.TempDir()
	require.NoError(t, os.Symlink("other/dot/k", filepath.Join(root, ".netrc")))
	serve := func(script string) string {
		r := newRunner(t, proc.Config{Level: proc.L2, RecordDir: kept})
		proc.TrustLevel(r, proc.L2)
		_, out := run(t, r, proc.Command{Script: script, Dir: root, Rules: rulesOf(t, root)})
		require.NoError(t, r.Close())
		return out
	}
	require.Contains(t, serve("mkdir node_modules && mv sub other node_modules && echo moved"), "moved")
	require.NotContains(t, serve("cat node_modules/sub/deep/id_rsa node_modules/other/dot/k"), "old")
	require.Contains(t, serve("mv node_modules/sub node_modules/again && echo moved"), "moved")
	require.NotContains(t, serve("cat node_modules/again/deep/id_rsa"), "old")
	records, err := filepath.Glob(kept + "/*")
	require.NoError(t, err)
	require.Len(t, records, 1)
	text, err := os.ReadFile(records[0])
	require.NoError(t, err)
	require.NotContains(t, string(text), "old\n", "names only")
}

// TestMasksAsAPlainUser runs the tests of this file again as a plain user.
func TestMasksAsAPlainUser(t *testing.T) {
	sandboxtest.AsPlainUser(t,
		"TestLinkedStoresAreMasked", "TestSecretsInProjectSettings", "TestStoresByOtherNames", "TestMaskedFilesAreNotReadWithTheNetwork",
		"TestCopiesOfSecretsAreMasked", "TestStoresOfPrograms", "TestSettingsOfAHomeThatIsARoot", "TestALinkedStoreStaysMasked",
		"TestTheAccountsOwnHome", "TestAKeyThatIsMovedAllTheTime", "TestALaterServerFindsWhatWasMoved")
}
