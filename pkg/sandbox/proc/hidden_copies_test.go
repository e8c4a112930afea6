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

// TestCopiesOfSecretsAreMasked: the copies that editors and people make of keys
// and of settings are masked like the originals.
func TestCopiesOfSecretsAreMasked(t *testing.T) {
	t.Parallel()
	const key = "-----BEGIN OPENSSH PRIVATE KEY-----\nCREDENTIAL\n"
	swap := "b0VIM 9.1\x00" + strings.Repeat("\x00", 8182) + "CREDENTIAL\x00-----BEGIN PRIVATE KEY-----\x00"
	secrets := map[string]string{
		"a/.server.pem.swp": swap, "Copy of .env": "K=CREDENTIAL\n", "env.copy": "K=CREDENTIAL\n", ".env - Copy": "K=CREDENTIAL\n",
		"Copy of .netrc": "CREDENTIAL\n", ".netrc copy 2": "CREDENTIAL\n", "id_rsa (1)": "CREDENTIAL\n", ".aws-old/credentials": "CREDENTIAL\n",
	}
	for _, name := range []string{
		"server.pem", "server.pem~", "server.key~", "server.key.bak", ".server.pem.un~", "#server.pem#", ".#server.pem", "server.pem.orig", "server.pem.old",
		"server.pem.save", "server.pem.1", "server.pem.txt", "server.pem copy", "server copy.pem", "Copy of server.pem", "server (1).pem", "server.pem.~1~",
		"tls.key.2024", "ca.key.tmp", "SERVER.KEY.BAK", "server.pem-backup", "id_dsa.old", "k.p8_old", "server.pem.swp",
	} {
		secrets["b/"+name] = key
	}
	harmless := map[string]string{
		"b/ca.pem~": "-----BEGIN CERTIFICATE-----\nPUBLIC\n", "b/about.key.md": "PUBLIC\n", "b/x.keys": "PUBLIC\n", "b/.notes.key.swp": "b0VIM 9.1\x00PUBLIC\n",
		"b/copy of env": "PUBLIC\n", "b/.env.example": "PUBLIC\n",
	}
	dir := place(t)
	for _, sub := range []string{"home/w", "root"} {
		for name, text := range secrets {
			name = filepath.Join(dir, sub, name)
			require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
			require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
		}
		for name, text := range harmless {
			require.NoError(t, os.WriteFile(filepath.Join(dir, sub, name), []byte(text), 0o644))
		}
	}
	root := filepath.Join(dir, "root")
	for _, level := range levels(t) {
		r := newRunner(t, proc.Config{Level: level, Network: true, Environ: append(os.Environ(), "HOME="+filepath.Join(dir, "home"))})
		proc.TrustLevel(r, level)
		for range 2 { // the second one uses a prestarted supervisor
			_, out := run(t, r, proc.Command{Script: "grep -rlaE 'CREDENTIAL|PUBLIC' . ../home/w 2>/dev/null", Dir: root, Rules: rulesOf(t, root)})
			for _, sub := range []string{"./", "../home/w/"} {
				hidden := level == proc.L2 || level == proc.L1 && sub != "./"
				for name := range secrets {
					require.Equal(t, !hidden, strings.Contains(out, sub+name+"\n"), "%s at %s", sub+name, level)
				}
				if level != proc.L1 { // reads of homes are not restricted to secrets there
					for name := range harmless {
						require.Contains(t, out, sub+name+"\n", level)
					}
				}
			}
		}
	}
}
