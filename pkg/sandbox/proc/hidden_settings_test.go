//go:build linux

package proc_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/projectfile"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// secretsInSettings writes secrets into project settings of a root, and returns
// their names in it.
func secretsInSettings(t *testing.T, root string) (names []string) {
	t.Helper()
	for i, dir := range append([]string{".git/hooks", "a/.git/hooks", "plain", ".GIT", ".vscode/.git", ".vscode/.git/hooks"}, projectfile.SettingsDirs()...) {
		secrets := []string{"id_rsa", "sub/server.key", ".netrc", ".env", ".git-credentials", "sub/.aws/credentials"}
		if i > 5 && dir != ".devcontainer" && dir != ".vscode" && dir != ".husky" {
			secrets = secrets[i%2*2:][:2]
		}
		for _, name := range secrets {
			name = filepath.Join(dir, name)
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
			text := "K=CREDENTIAL\n"
			if strings.HasSuffix(name, ".key") {
				text = "-----BEGIN PRIVATE KEY-----\n" + text
			}
			require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o644))
			names = append(names, name)
		}
	}
	return names
}

// TestSecretsInProjectSettings: secrets in directories that are mounted
// read-only as project settings are masked like all others, under every name.
func TestSecretsInProjectSettings(t *testing.T) {
	t.Parallel()
	if !contains(levels(t), proc.L2) {
		t.Skip("L2 is not available")
	}
	dir := place(t)
	root := filepath.Join(dir, "root")
	names := secretsInSettings(t, root)
	for _, name := range []string{".devcontainer/.env", ".vscode/id_rsa", ".husky/sub/server.key", ".git/hooks/.netrc"} {
		link := strings.ReplaceAll(name, "/", "-")[1:]
		require.NoError(t, os.Link(filepath.Join(root, name), filepath.Join(root, "plain", link)))
		require.NoError(t, os.Symlink("../"+name, filepath.Join(root, "plain", link+"-link")))
		names = append(names, "plain/"+link, "plain/"+link+"-link")
	}
	require.NoError(t, os.Symlink(".devcontainer", filepath.Join(root, "linked")))
	// A link with a secret's name in such a directory leads to a secret.
	require.NoError(t, os.WriteFile(filepath.Join(root, "plain/k"), []byte("CREDENTIAL\n"), 0o644))
	require.NoError(t, os.Symlink("../plain/k", filepath.Join(root, ".zed/_netrc")))
	names = append(names, "linked/.env", "linked/id_rsa", "plain/k")
	require.NoError(t, os.WriteFile(filepath.Join(root, ".vscode/tasks.json"), []byte("{}\n"), 0o644))
	script := "cat .vscode/tasks.json; for f in '" + strings.Join(names, "' '") + "'; do if grep -q CREDENTIAL \"$f\" 2>/dev/null; then echo \"read $f\"; fi; done"
	for _, network := range []bool{true, false} {
		r := newRunner(t, proc.Config{Level: proc.L2, Network: network, Environ: append(os.Environ(), "HOME="+filepath.Join(dir, "home"))})
		proc.TrustLevel(r, proc.L2)
		for range 2 { // the second one uses a prestarted supervisor
			_, out := run(t, r, proc.Command{Script: script, Dir: root, Rules: rulesOf(t, root)})
			readable := 0
			for _, name := range names {
				if !network && strings.HasSuffix(strings.TrimSuffix(name, "-link"), ".env") {
					readable++
					require.Contains(t, out, "read "+name+"\n")
				}
			}
			require.Equal(t, readable, strings.Count(out, "read "), out)
			require.Contains(t, out, "{}\n")
		}
		// The settings stay read-only; a copy or a moved directory shows nothing.
		_, out := run(t, r, proc.Command{
			Script: "echo x >> .vscode/tasks.json; echo x > .claude/new; mv .husky plain/h; cp -r .vscode plain/v; grep -rl CREDENTIAL plain/v plain/h; mv plain/h .husky; rm -r plain/v",
			Dir:    root, Rules: rulesOf(t, root),
		})
		for line := range strings.Lines(out) {
			line = strings.TrimSpace(line)
			require.False(t, strings.HasPrefix(line, "plain/") && (network || !strings.HasSuffix(line, "/.env")), out)
		}
		text, err := os.ReadFile(filepath.Join(root, ".vscode/tasks.json"))
		require.NoError(t, err)
		require.Equal(t, "{}\n", string(text))
		require.NoFileExists(t, filepath.Join(root, ".claude/new"))
	}
}

// TestFewMountsForProjectSettings: a directory of settings is one protected
// path, however many files it has.
func TestFewMountsForProjectSettings(t *testing.T) {
	root := t.TempDir()
	secretsInSettings(t, root)
	protected := proc.ProtectedIn(root, rulesOf(t, root))
	for _, path := range protected {
		for _, other := range protected {
			require.False(t, path != other && strings.HasPrefix(path, other+"/"), "%s is in %s", path, other)
		}
	}
	require.Contains(t, protected, filepath.Join(root, ".vscode"))
	require.Contains(t, protected, filepath.Join(root, "a/.git/hooks"))
}
