//go:build linux

package proc_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// TestStoresOfPrograms: the credentials of widespread programs in a home are
// masked. Build tools find an empty file instead of their settings while the
// network is on, and the settings while it is off.
func TestStoresOfPrograms(t *testing.T) {
	t.Parallel()
	always := []string{
		".config/chromium/Default/Cookies", ".config/BraveSoftware/Brave-Browser/Default/Login Data", ".config/microsoft-edge/Default/Cookies", ".config/vivaldi/x",
		".config/opera/x", ".claude.json", ".claude.json.backup", ".config/glab-cli/config.yml", ".vercel/auth.json", ".local/share/com.vercel.cli/auth.json", ".config/age/keys.txt",
		"passwords.kdbx", "Documents/p.KDBX", ".mylogin.cnf", ".config/composer/auth.json", ".composer/auth.json", ".config/pulumi/credentials.json", ".sbt/.credentials", ".ivy2/.credentials",
		".config/solana/id.json", ".msmtprc", ".m2/settings-security.xml", ".env", ".env.local", "work/.env",
	}
	builds := map[string]string{".npmrc": "", ".gradle/gradle.properties": "", ".m2/settings.xml": "<settings/>\n"}
	dir := place(t)
	home, root := filepath.Join(dir, "home"), filepath.Join(dir, "root")
	put := func(name string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte("k=CREDENTIAL\n"), 0o644))
	}
	for _, name := range always {
		put(filepath.Join(home, name))
	}
	for name := range builds {
		put(filepath.Join(home, name))
	}
	put(filepath.Join(root, ".env"))
	put(filepath.Join(root, "linked"))
	require.NoError(t, os.Symlink("../root/linked", filepath.Join(home, ".env.linked")))
	require.NoError(t, os.Link(filepath.Join(root, ".env"), filepath.Join(home, ".env.hard")))
	for _, level := range levels(t) {
		for _, network := range []bool{false, true} {
			r := newRunner(t, proc.Config{Level: level, Network: network, Environ: append(os.Environ(), "HOME="+home)})
			proc.TrustLevel(r, level)
			_, out := run(t, r, proc.Command{Script: "cd ~ && grep -rl CREDENTIAL . 2>/dev/null", Dir: root, Rules: rulesOf(t, root)})
			for _, name := range always {
				require.Equal(t, level == proc.Off, strings.Contains(out, "./"+name+"\n"), "%s at %s", name, level)
			}
			for name, text := range builds {
				require.Equal(t, level == proc.Off || level == proc.L2 && !network, strings.Contains(out, "./"+name+"\n"), "%s at %s", name, level)
				if level == proc.L2 && network {
					result, out := run(t, r, proc.Command{Script: "cat ~/" + name, Dir: root, Rules: rulesOf(t, root)})
					require.Zero(t, result.ExitCode)
					require.Equal(t, text, out)
				}
			}
			if level == proc.L2 {
				result, out := run(t, r, proc.Command{Script: "cat ~/.composer/auth.json", Dir: root, Rules: rulesOf(t, root)})
				require.Zero(t, result.ExitCode)
				require.Equal(t, "{}\n", out)
			}
			// What a build in the root reads is not masked because of a name outside.
			_, out = run(t, r, proc.Command{Script: "cat .env linked", Dir: root, Rules: rulesOf(t, root)})
			if !network {
				require.Equal(t, "k=CREDENTIAL\nk=CREDENTIAL\n", out, level)
			} else if level == proc.L2 {
				require.NotContains(t, out, "CREDENTIAL")
			}
		}
	}
}

// TestSettingsOfAHomeThatIsARoot: in a root, commands can read .env while the
// network is off, also if the root is the home.
func TestSettingsOfAHomeThatIsARoot(t *testing.T) {
	t.Parallel()
	dir := filesIn(t, place(t), "home/.env", "home/a/.env", "home/a/b/.env.local", "home/.npmrc")
	home := filepath.Join(dir, "home")
	for _, level := range levels(t) {
		for _, root := range []string{home, filepath.Join(home, "a")} {
			r := homeRunner(t, level, home)
			_, out := run(t, r, proc.Command{Script: "cat ~/a/.env ~/a/b/.env.local", Dir: root, Rules: rulesOf(t, root)})
			require.Equal(t, 2, strings.Count(out, "old"), "%s %s: %s", level, root, out)
			_, out = run(t, r, proc.Command{Script: "cat ~/.env", Dir: root, Rules: rulesOf(t, root)})
			require.Equal(t, level == proc.Off || root == home, strings.Contains(out, "old"), "%s %s: %s", level, root, out)
		}
	}
}
