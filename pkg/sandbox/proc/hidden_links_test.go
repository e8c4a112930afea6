//go:build linux

package proc_test

import (
	"fmt"
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
	"a token of a variable's home":     {"home/w/hf/token", "", "HF_HOME=PLACE/home/w/hf", bothLevels},
	"a registry's of a variable":       {"home/w/cargo/credentials.toml", "", "CARGO_HOME=PLACE/home/w/cargo", bothLevels},
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
	"below a hidden directory":         {"home/.backup/home/.ssh/id_rsa", "", "", bothLevels},
	"hidden in a visible directory":    {"home/work/.hidden/.aws/credentials", "", "", bothLevels},
	"in a directory of .config":        {"home/.config/old/.ssh/id_rsa", "", "", bothLevels},
	"a key below a hidden directory":   {"home/.dotfiles/ssh/id_rsa", "", "", bothLevels},
	"a history in .config":             {"home/.config/fish/fish_history", "", "", bothLevels},
	"a hard link below a hidden one":   {"home/.ssh/id_ed25519", "home/.x/y/copy", "", bothLevels},
	"a listed store of 12 characters":  {"home/.terraform.d/credentials.tfrc.json", "", "", bothLevels},
	"a token of Hugging Face":          {"home/.huggingface/token", "", "", bothLevels},
	"a PEM key in the home":            {"home/server.pem", "", "", bothLevels},
	"a PEM key below":                  {"home/certs/a/server.key", "", "", bothLevels},
	"a PEM key in a hidden directory":  {"home/.ssl/private/server.key", "", "", bothLevels},
	"a key behind a certificate":       {"root/chain.pem", "", "", onlyL2},
	"the same in a home":               {"home/chain.pem", "", "", bothLevels},
	"a hard link of a PEM key":         {"home/certs/server.key", "home/w/plain", "", bothLevels},
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
				content := "CREDENTIAL\n"
				if strings.HasSuffix(c.file, ".pem") || strings.HasSuffix(c.file, ".key") {
					content = "-----BEGIN PRIVATE KEY-----\n" + content
				}
				if strings.HasSuffix(c.file, "chain.pem") {
					content = "-----BEGIN CERTIFICATE-----\n" + strings.Repeat("MIIB\n", 1000) + "-----END CERTIFICATE-----\n" + content + strings.Repeat("#\n", 40_000)
				}
				require.NoError(t, os.WriteFile(in(c.file), []byte(content), 0o644))
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

// The gaps say that a home was too large to search.
func TestLargeHomes(t *testing.T) {
	t.Parallel()
	dir := place(t)
	for i := range 320 {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, "home", fmt.Sprint("d", i)), 0o755))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "root"), 0o755))
	for _, level := range levels(t) {
		result, out := run(t, homeRunner(t, level, filepath.Join(dir, "home")), proc.Command{Script: "true", Rules: rulesOf(t, filepath.Join(dir, "root"))})
		require.Equal(t, level != proc.Off, strings.Contains(strings.Join(result.Gaps, "\n"), "more than 300 directories"), "%s %s", level, out)
	}
}

// A directory of Config.Hidden in a root is hidden, or the gaps name it.
func TestHiddenDirectoryInARoot(t *testing.T) {
	t.Parallel()
	root := filesIn(t, place(t), "sub/f", "a")
	for _, level := range levels(t) {
		r := newRunner(t, proc.Config{Level: level, Hidden: []string{filepath.Join(root, "sub")}})
		proc.TrustLevel(r, level)
		result, out := run(t, r, proc.Command{Script: "cat sub/f", Dir: root, Rules: rulesOf(t, root)})
		named := strings.Contains(strings.Join(result.Gaps, "\n"), filepath.Join(root, "sub"))
		require.Equal(t, level == proc.L1, named, level)
		require.Equal(t, level != proc.L2, result.ExitCode == 0, "%s: %s", level, out)
	}
}

// Public certificates and other files in a home stay readable.
func TestHomesStayReadable(t *testing.T) {
	t.Parallel()
	dir := place(t)
	files := map[string]string{
		"home/ca.pem": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", "home/.ssl/ca.crt": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
		"home/.local/bin/rsatool": "#!/bin/sh\n", "home/.config/app/private.json": "{}\n", "home/.npm/x/y": "x\n", "home/keys/id_rsa.pub": "ssh-rsa AAAA\n",
	}
	script := "cat"
	for name, text := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
		script += " " + filepath.Join(dir, name)
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "root"), 0o755))
	for _, level := range levels(t) {
		result, out := run(t, homeRunner(t, level, filepath.Join(dir, "home")), proc.Command{Script: script, Rules: rulesOf(t, filepath.Join(dir, "root"))})
		require.Zero(t, result.ExitCode, "%s %s", level, out)
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
