package cli_test

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func sha(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// State directories of older versions work: testdata/state has one for each
// format that was released, as files and as the commands of its database. When a
// format changes, a new directory is added, and the others stay.
func TestStateOfOlderVersions(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the recorded paths have slashes")
	}
	versions, err := filepath.Glob("testdata/state/*")
	require.NoError(t, err)
	require.NotEmpty(t, versions)
	for _, version := range versions {
		t.Run(filepath.Base(version), func(t *testing.T) {
			home, err := filepath.EvalSymlinks(t.TempDir())
			require.NoError(t, err)
			state, project := filepath.Join(home, "state"), filepath.Join(home, "project")
			config := "servers:\n  notes: {url: https://notes.example.com/mcp}\n"
			client := `{"mcpServers": {"toolroom": {"command": "` + filepath.Join(home, "mcp-host") + `", "args": ["stdio"]}}}`
			write(t, filepath.Join(project, "toolroom.yaml"), config)
			write(t, filepath.Join(home, ".cursor", "mcp.json"), client)
			restore(t, version, state, strings.NewReplacer("HOME", home, "AFTER", sha(client), "TRUSTED", sha(config)))
			run := func(args ...string) string {
				cmd := exec.Command("mcp-host", args...)
				cmd.Dir = project
				cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+filepath.Join(home, "config"), "MCP_STATE_DIR="+state)
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, "%v: %s", args, out)
				return string(out)
			}
			checked := run("config", "check")
			require.Contains(t, checked, "notes  streamable-http  https://notes.example.com/mcp", "the project is still trusted")
			require.Contains(t, checked, "notes: signed in, scopes read")
			require.Contains(t, run("tools", "hello"), "Says hello", "the registered tool is there")
			require.Contains(t, run("call", "hello"), "hi")
			require.Contains(t, run("uninstall", "cursor"), "removed toolroom")
			require.NoFileExists(t, filepath.Join(home, ".cursor", "mcp.json"), "install had created it")
		})
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
}

// restore writes a recorded state directory.
func restore(t *testing.T, from, to string, names *strings.Replacer) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(from, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if filepath.Ext(name) != ".sql" {
			write(t, filepath.Join(to, name), names.Replace(string(text)))
			return nil
		}
		require.NoError(t, os.MkdirAll(to, 0o700))
		db, err := sql.Open("sqlite", filepath.Join(to, strings.TrimSuffix(name, ".sql")+".db"))
		if err != nil {
			return err
		}
		defer db.Close() //nolint:errcheck // its commands have succeeded
		_, err = db.Exec(string(text))
		return err
	}))
}
