//go:build oracle && linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pageCommands returns the commands of docs/install.md, with the version of the build
// and the architecture of this machine.
func pageCommands(t *testing.T) (commands []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", "install.md"))
	require.NoError(t, err)
	fill := strings.NewReplacer("VERSION", strings.TrimPrefix(builtVersion(t), "v"), "linux_amd64", "linux_"+runtime.GOARCH, "linux-x64", "linux-"+nodeArch[runtime.GOARCH])
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(block[1]) {
			command, _, _ := strings.Cut(line, "  #")
			commands = append(commands, fill.Replace(strings.TrimSpace(command)))
		}
	}
	for _, code := range regexp.MustCompile("`((?:dpkg|rpm|apk) [^`]+)`").FindAllStringSubmatch(string(text), -1) {
		commands = append(commands, code[1])
	}
	require.NotEmpty(t, commands)
	return commands
}

// pageCommand returns the command of the page that begins with a text. root runs it
// without sudo, and in place of the file's name a shell finds $FILE.
func pageCommand(t *testing.T, prefix string) string {
	t.Helper()
	for _, command := range pageCommands(t) {
		command = strings.TrimPrefix(command, "sudo ")
		if strings.HasPrefix(command, prefix) {
			return regexp.MustCompile(`toolroom_\S+`).ReplaceAllString(command, `"$$FILE"`)
		}
	}
	require.Fail(t, "docs/install.md has no command "+prefix)
	return ""
}

// elsewhere are the beginnings of commands that TestSystems runs.
var elsewhere = []string{"sudo dpkg -i ", "sudo rpm -i ", "dpkg --purge ", "rpm -e "}

// cannotRun are the beginnings of commands for which this machine has no program.
var cannotRun = map[string]string{
	"sudo apk ": "Alpine's apk is not in Debian; TestSystems installs the package with go-apk",
	"apk ":      "Alpine's apk is not in Debian; TestSystems removes what apk's database says",
	"docker ":   "it needs Docker's daemon; TestImageServes runs the image",
	"cosign ":   "cosign is not in Debian; openssl verifies the same signature",
}

// Every command of the page runs in a directory with the files of the release, or is
// named with the reason.
func TestInstallPage(t *testing.T) {
	out, dir := filepath.Dir(built(t, checksumsFile)), t.TempDir()
	files, err := os.ReadDir(out)
	require.NoError(t, err)
	for _, file := range files {
		require.NoError(t, os.Symlink(filepath.Join(out, file.Name()), filepath.Join(dir, file.Name())))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"private": true}`), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "DIR"), 0o700))
	signedBy(t, dir)

	ran := 0
	for _, command := range pageCommands(t) {
		if begins(command, elsewhere) {
			continue
		}
		reason := ""
		for prefix, why := range cannotRun {
			if strings.HasPrefix(command, prefix) {
				reason = why
			}
		}
		if reason != "" {
			t.Logf("not run: %s: %s", command, reason)
			continue
		}
		cmd := exec.Command("bash", "-ec", command)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "npm_config_offline=true", "npm_config_audit=false", "npm_config_cache="+filepath.Join(dir, "cache"), "MCP_STATE_DIR="+filepath.Join(dir, "state"))
		said := succeed(t, cmd)
		switch {
		case strings.HasSuffix(command, " verify"):
			require.Contains(t, said, "programs are equal to ")
		case strings.HasPrefix(command, "sha256sum "):
			require.Contains(t, said, ".deb: OK")
		case strings.HasPrefix(command, "openssl dgst "):
			require.Contains(t, said, "Verified OK")
		}
		ran++
	}
	require.Equal(t, 6, ran, "three of npm, the checksums, two of openssl")
}

func begins(command string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(command, prefix) {
			return true
		}
	}
	return false
}

// signedBy signs the checksums in a directory, as the maintainers do, and writes their
// public key.
func signedBy(t *testing.T, dir string) {
	t.Helper()
	key := filepath.Join(t.TempDir(), "key")
	succeed(t, exec.Command("openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key))
	succeed(t, exec.Command("openssl", "pkey", "-in", key, "-pubout", "-out", filepath.Join(dir, "toolroom.pub")))
	private, err := os.ReadFile(key)
	require.NoError(t, err)
	list, err := os.ReadFile(filepath.Join(dir, checksumsFile))
	require.NoError(t, err)
	signature, err := sign(string(private), list)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, signatureFile), signature, 0o600))
}
