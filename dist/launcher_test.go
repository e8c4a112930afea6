//go:build oracle && linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// Virus scanners remove programs after the installation.
func TestNPMLauncherWithoutItsProgram(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a directory")
	platform := "@toolroom/linux-" + nodeArch[runtime.GOARCH]
	for name, text := range map[string]string{
		"toolroom/bin/toolroom.js":  string(npmLauncher),
		"toolroom/package.json":     `{"name": "toolroom", "version": "1.0.0"}`,
		"toolroom/checksums.json":   `{"` + platform + `": {"mcp-host": "00"}}`,
		platform + "/package.json":  `{"version": "1.0.0"}`,
		platform + "/bin/README.md": "nothing else",
	} {
		name = filepath.Join(dir, "node_modules", name)
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	}
	for _, args := range []string{"host", "verify"} {
		out, err := exec.Command("node", filepath.Join(dir, "node_modules/toolroom/bin/toolroom.js"), args).CombinedOutput()
		require.Error(t, err)
		require.Regexp(t, `^toolroom: cannot read .*/bin/mcp-host \(ENOENT\): install toolroom again\n$`, string(out))
	}
}
