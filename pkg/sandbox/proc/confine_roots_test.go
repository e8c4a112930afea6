//go:build linux

package proc_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
)

// filesIn makes files below a directory and returns the directory with links
// resolved.
func filesIn(t testing.TB, dir string, names ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(dir)
	require.NoError(t, err)
	for _, name := range names {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte("old\n"), 0o644))
	}
	return dir
}

// roots implements Rules that hide and protect files only by name.
type roots []sandbox.Root

func (r roots) Roots() []sandbox.Root { return r }
func (r roots) Masked(string) bool    { return false }
func (r roots) Denied(abs string) bool {
	return filepath.Base(abs) == "hidden" || filepath.Base(abs) == ".ssh"
}
func (r roots) ExplicitlyAllowed(abs string) bool { return filepath.Base(abs) == "allowed.pem" }

func (r roots) Protected(abs string) string {
	if filepath.Base(abs) == "guarded" {
		return "is a test's"
	}
	return ""
}

// TestRootsOfAnyKind: roots in each other, with different rights, in /tmp, in
// the home directory, and with names that need quoting. Each script prints yes
// where access must be possible, and no where it must not.
func TestRootsOfAnyKind(t *testing.T) {
	t.Parallel()
	seen, temp := place(t), t.TempDir()
	for name, c := range map[string]struct {
		files  []string
		base   string
		roots  []string // the first is the working directory; :ro means read-only
		script string
		levels string
	}{
		"read-only in a writable one": {[]string{"a/b/f", "a/c/f"}, seen, []string{"a", "a/b:ro"},
			`echo x > c/f && echo yes; echo x > b/f && echo no; echo x > b/new && echo no; mv b z && echo no; rm -f b/f && echo no`, bothLevels},
		"writable in a read-only one": {[]string{"a/b/f", "a/c/f"}, seen, []string{"a:ro", "a/b"},
			`echo x > b/f && echo x > b/new && echo yes; echo x > c/f && echo no; echo x > new && echo no`, bothLevels},
		"three deep": {[]string{"a/b/c/f"}, seen, []string{"a", "a/b:ro", "a/b/c"},
			`echo x > b/c/f && echo yes; echo x > b/new && echo no`, bothLevels},
		"the same twice": {[]string{"a/f"}, seen, []string{"a", "a"}, `echo x > f && echo yes`, bothLevels},
		"in /tmp":        {[]string{"a/f"}, temp, []string{"a"}, `echo x > f && rm f && echo y > g && echo yes; echo x > ../new; mkdir ../d`, bothLevels},
		"in /tmp, two of them": {[]string{"a/f", "b/f"}, temp, []string{"a", "b:ro"},
			`cat ../b/f && echo x > f && echo yes; echo x > ../b/f && echo no`, bothLevels},
		"odd names": {[]string{"a b/ü €/'\"\\$(x)/f"}, seen, []string{"a b/ü €/'\"\\$(x)"},
			`echo x > f && mkdir "d e" && echo y > "d e/ö" && pwd | grep -q 'a b/ü' && echo yes; echo x > ../new && echo no`, bothLevels},
		"names that are not UTF-8": {[]string{"caf\xe9/f"}, seen, []string{"caf\xe9"},
			`echo x > f && mkdir $'\xff' && cd $'\xff' && echo y > f && grep -q y $OLDPWD/*/f && echo yes; echo x > ../../new && echo no`, bothLevels},
		"hidden and guarded below such names": {[]string{"a/\xff/hidden", "a/\xff/guarded", "a/caf\xe9 dir/hidden dir/hidden"}, temp, []string{"a"},
			`cat */hidden */*/hidden && echo no; for f in */guarded; do echo x > "$f" && echo no; mv "$f" z && echo no; done; echo x > f && echo yes`, onlyL2},
		"hidden and guarded in them": {[]string{"a b/ü/hidden", "a b/ü/guarded", "a b/ü/hidden dir/hidden"}, temp, []string{"a b"},
			`cd ü; cat hidden "hidden dir/hidden" && echo no; echo x > guarded && echo no; mv guarded z && echo no; cd ..; mv ü z && echo no; echo x > f && echo yes`, onlyL2},
	} {
		for _, level := range levels(t) {
			if level == proc.Off || c.levels == onlyL2 && level != proc.L2 {
				continue
			}
			t.Run(name+"/"+string(level), func(t *testing.T) {
				base, err := os.MkdirTemp(c.base, "r")
				require.NoError(t, err)
				base = filesIn(t, base, c.files...)
				var rules roots
				for _, root := range c.roots {
					path, readOnly := root, false
					if len(root) > 3 && root[len(root)-3:] == ":ro" {
						path, readOnly = root[:len(root)-3], true
					}
					rules = append(rules, sandbox.Root{Path: filepath.Join(base, path), ReadOnly: readOnly})
				}
				r := trusted(t, level)
				result, out := run(t, r, proc.Command{Script: "exec 2>/dev/null; " + c.script, Dir: rules[0].Path, Rules: rules})
				require.Contains(t, out, "yes\n")
				require.NotContains(t, out, "no\n")
				require.Empty(t, result.Gaps)
				require.NoFileExists(t, filepath.Join(base, "new"))
				require.NoDirExists(t, filepath.Join(base, "d"))
			})
		}
	}
}

// wholeDisk are the rules of a command whose root is the whole disk. Outside
// tested, a directory, nothing is reverted: what other programs and tests
// change there while the command runs would count as its changes.
type wholeDisk struct {
	roots
	tested string
}

func (d wholeDisk) WriteAllowed(abs string) bool { return !supervise.IsBeneath(d.tested, abs) }

// TestTheWholeDiskAsRoot: commands may write the whole disk if the user gives
// it as a root, except for the kernel's files. Secrets stay hidden.
func TestTheWholeDiskAsRoot(t *testing.T) {
	t.Parallel()
	dir := filesIn(t, place(t), "f", "home/.ssh/id_rsa")
	for _, level := range levels(t) {
		if level == proc.Off {
			continue
		}
		t.Run(string(level), func(t *testing.T) {
			sandboxtest.SkipUnsampled(t)
			r := newRunner(t, proc.Config{Level: level, Environ: append(os.Environ(), "HOME="+filepath.Join(dir, "home"))})
			proc.TrustLevel(r, level)
			proc.HideCommands(r)
			script := `echo x > f && echo y > "$TMPDIR/f" && echo yes; (: >> /proc/sys/kernel/core_pattern) && echo no
				(: >> /sys/kernel/mm/transparent_hugepage/enabled) && echo no; [ -d "$TMPDIR" ] && echo "$TMPDIR"`
			if level == proc.L2 {
				script += "; cat home/.ssh/id_rsa && echo no; echo x > /run/x && echo no"
			}
			_, out := run(t, r, proc.Command{Script: "exec 2>/dev/null; " + script, Dir: dir, Rules: wholeDisk{roots{{Path: "/"}}, dir}})
			require.Contains(t, out, "yes\n")
			require.NotContains(t, out, "no\n")
			require.NotContains(t, out, "\n/tmp\n", "the temporary directory is a private one")

			_, out = run(t, r, proc.Command{Script: `exec 2>/dev/null; echo x > f && echo no; echo x > "$TMPDIR/f" && echo yes`, Dir: dir, Rules: roots{{Path: "/", ReadOnly: true}}})
			require.Equal(t, "yes\n", out)
		})
	}
}

// TestSecretsThatAppear: a secret that appears between two commands is hidden
// from the second. A secret that vanishes while a command is being started
// does not prevent the start.
func TestSecretsThatAppear(t *testing.T) {
	t.Parallel()
	if !contains(levels(t), proc.L2) {
		t.Skip("L2 is not available")
	}
	root := filesIn(t, place(t), "sub/deep/f", "sub/deep/server.pem", "keys/public.pem")
	r := trusted(t, proc.L2)
	c := proc.Command{Script: "cat sub/deep/hidden sub/deep/server.pem keys/public.pem 2>/dev/null; true", Dir: root, Rules: roots{{Path: root}}}
	_, out := run(t, r, c)
	require.Equal(t, "old\nold\n", out)
	require.NoError(t, os.WriteFile(filepath.Join(root, "sub/deep/hidden"), []byte("secret\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root, "sub/deep/server.pem"), []byte("-----BEGIN EC PRIVATE KEY-----\nsecret\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root, "sub/deep/allowed.pem"), []byte("-----BEGIN EC PRIVATE KEY-----\nfree\n"), 0o600))
	_, out = run(t, r, c)
	require.Equal(t, "old\n", out, "also by what it holds")
	_, out = run(t, r, proc.Command{Script: "tail -1 sub/deep/allowed.pem", Dir: root, Rules: roots{{Path: root}}})
	require.Equal(t, "free\n", out, "unless the user allowed it")
	require.NoError(t, os.WriteFile(filepath.Join(root, "sub/deep/server.pem"), []byte("no key\n"), 0o600))
	require.NoError(t, os.Remove(filepath.Join(root, "sub/deep/hidden")))
	_, out = run(t, r, c)
	require.Equal(t, "no key\nold\n", out)

	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			for _, name := range []string{"sub/deep/hidden", "sub/deep/guarded", "keys/hidden/x"} {
				path := filepath.Join(root, name)
				if i%3 == 0 {
					os.MkdirAll(path, 0o700)
				} else {
					os.MkdirAll(filepath.Dir(path), 0o700)
					os.WriteFile(path, nil, 0o600)
				}
				os.RemoveAll(path)
			}
			os.RemoveAll(filepath.Join(root, "keys/hidden"))
		}
	}()
	defer func() {
		close(stop)
		<-done
	}()
	for range 15 {
		result, out, err := r.Run(context.Background(), proc.Command{Script: "echo ran", Dir: root, Rules: roots{{Path: root}}})
		require.NoError(t, err)
		require.Zero(t, result.ExitCode)
		require.Equal(t, "ran\n", out.Excerpt(0).Text())
	}
}

// TestASecretThatIsWrittenAllTheTime: a program that makes and removes a secret as fast as
// it can does not prevent the start of commands: a removed file needs no mask.
func TestASecretThatIsWrittenAllTheTime(t *testing.T) {
	t.Parallel()
	if !contains(levels(t), proc.L2) {
		t.Skip("L2 is not available")
	}
	root := filesIn(t, t.TempDir(), "keys/f")
	secret := filepath.Join(root, "keys", "hidden")
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
			}
			os.WriteFile(secret, nil, 0o600)
			os.Remove(secret)
		}
	}()
	defer func() { close(stop); <-done }()
	r := trusted(t, proc.L2)
	for range 40 {
		_, out := run(t, r, proc.Command{Script: "echo ran", Dir: root, Rules: roots{{Path: root}}})
		require.Equal(t, "ran\n", out)
	}
}
