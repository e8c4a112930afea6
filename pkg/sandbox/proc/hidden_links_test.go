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

// storeCase is a secret that commands must not read.
type storeCase struct {
	file     string // in the place, holds the secret
	link     string // a hard link of it
	variable string // names the store, PLACE is the place
	levels   string
}

// Stores that a variable names, files of stores with a second name, and stores in
// hidden directories of a home.
var storeCases = map[string]storeCase{
	"a file of a variable":             {"home/w/aws", "", "AWS_SHARED_CREDENTIALS_FILE=PLACE/home/w/aws", bothLevels},
	"the second of a list":             {"home/w/kube", "", "KUBECONFIG=PLACE/home/none:PLACE/home/w/kube", bothLevels},
	"a directory of a variable":        {"home/w/gnupg/x", "", "GNUPGHOME=PLACE/home/w/gnupg", bothLevels},
	"a file in a variable's":           {"home/w/docker/config.json", "", "DOCKER_CONFIG=PLACE/home/w/docker", bothLevels},
	"a directory in a variable's":      {"home/w/gh/hosts.yml", "", "XDG_CONFIG_HOME=PLACE/home/w", bothLevels},
	"a history":                        {"home/w/history", "", "HISTFILE=PLACE/home/w/history", bothLevels},
	"outside the home":                 {"other/netrc", "", "NETRC=PLACE/other/netrc", bothLevels},
	"in a root":                        {"root/pgpass", "", "PGPASSFILE=PLACE/root/pgpass", onlyL2},
	"dots in a variable":               {"home/w/aws", "", "AWS_CONFIG_FILE=PLACE/home/../home/./w/aws", bothLevels},
	"a hard link in the home":          {"home/.aws/credentials", "home/plain", "", bothLevels},
	"a hard link in a root":            {"home/.aws/credentials", "root/a/plain", "", onlyL2},
	"a hard link of a file below":      {"home/.gnupg/a/b/x", "home/w/plain", "", bothLevels},
	"a hard link in .config":           {"home/.ssh/x", "home/.config/plain", "", bothLevels},
	"a hard link in hidden":            {"home/.ssh/x", "home/.backup/plain", "", bothLevels},
	"a hard link of a variable's":      {"home/w/docker/config.json", "root/plain", "DOCKER_CONFIG=PLACE/home/w/docker", onlyL2},
	"a store in a hidden directory":    {"home/.dotfiles/.aws/credentials", "", "", bothLevels},
	"a file in a hidden directory":     {"home/.backup/.netrc", "", "", bothLevels},
	"a keystore in a hidden directory": {"home/.android/debug.jks", "", "", bothLevels},
}

func TestStoresByOtherNames(t *testing.T) {
	t.Parallel()
	for name, c := range storeCases {
		for _, level := range levels(t) {
			t.Run(name+" at "+string(level), func(t *testing.T) {
				if level != proc.Off && !strings.Contains(c.levels, string(level)) {
					t.Skip("readable there")
				}
				t.Parallel()
				dir := place(t)
				in := func(name string) string { return filepath.Join(dir, name) }
				for _, file := range []string{"root/x", c.file, c.link} {
					require.NoError(t, os.MkdirAll(filepath.Dir(in(file)), 0o755))
				}
				require.NoError(t, os.WriteFile(in(c.file), []byte("CREDENTIAL\n"), 0o644))
				script := "cat " + in(c.file)
				if c.link != "" {
					require.NoError(t, os.Link(in(c.file), in(c.link)))
					script = "cat " + in(c.link)
				}
				environ := append(os.Environ(), "HOME="+in("home"), strings.ReplaceAll(c.variable, "PLACE", dir))
				r := newRunner(t, proc.Config{Level: level, Environ: environ})
				proc.TrustLevel(r, level)
				for range 2 { // the second is prepared ahead
					_, out := run(t, r, proc.Command{Script: script, Dir: in("root"), Rules: rulesOf(t, in("root"))})
					if level == proc.Off {
						require.Contains(t, out, "CREDENTIAL")
					} else {
						require.NotContains(t, out, "CREDENTIAL")
					}
				}
			})
		}
	}
}

// A variable that names what commands need hides nothing.
func TestVariablesOfStoresHideNothingElse(t *testing.T) {
	t.Parallel()
	dir := place(t)
	for _, sub := range []string{"root", "home"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, sub), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "root/x"), []byte("x\n"), 0o644))
	for _, level := range levels(t) {
		r := newRunner(t, proc.Config{Level: level, Environ: append(os.Environ(), "HOME="+filepath.Join(dir, "home"),
			"HISTFILE=/dev/null", "GNUPGHOME="+dir+"/root", "AZURE_CONFIG_DIR=", "GH_CONFIG_DIR=relative", "CLOUDSDK_CONFIG="+dir, "KUBECONFIG=/dev/null::/")})
		proc.TrustLevel(r, level)
		_, out := run(t, r, proc.Command{Script: "cat x; echo y > /dev/null && echo y > y && cat y", Dir: filepath.Join(dir, "root"), Rules: rulesOf(t, filepath.Join(dir, "root"))})
		require.Equal(t, "x\ny\n", out, level)
	}
}
