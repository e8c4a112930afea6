//go:build oracle && linux

package main

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha1" //nolint:gosec // the npm registry's format has it
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// npmRegistry serves the packed npm packages of the build in the format of the npm registry.
func npmRegistry(t *testing.T) string {
	t.Helper()
	archives, descriptions := map[string][]byte{}, map[string]map[string]any{}
	for _, file := range []string{built(t, "npm/toolroom-[0-9]*.tgz"), built(t, "npm/toolroom-linux-"+nodeArch[runtime.GOARCH]+"-*.tgz")} {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		described := describedPackage(t, file)
		name, version := described["name"].(string), described["version"].(string)
		sum, old := sha512.Sum512(content), sha1.Sum(content) //nolint:gosec // the format has it
		described["dist"] = map[string]any{
			"integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]), "shasum": hex.EncodeToString(old[:]), "tarball": name + "/-/" + filepath.Base(file),
		}
		archives[filepath.Base(file)] = content
		descriptions[name] = map[string]any{
			"name": name, "dist-tags": map[string]any{"latest": version}, "versions": map[string]any{version: described},
			"time": map[string]any{version: "2026-01-01T00:00:00.000Z"},
		}
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if content, ok := archives[path.Base(r.URL.Path)]; ok {
			w.Write(content) //nolint:errcheck // the client says what it misses
			return
		}
		description, ok := descriptions[strings.TrimPrefix(r.URL.Path, "/")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(description) //nolint:errcheck // the client says what it misses
	}))
	address := "http://" + server.Listener.Addr().String() + "/"
	for _, description := range descriptions {
		for _, version := range description["versions"].(map[string]any) {
			dist := version.(map[string]any)["dist"].(map[string]any)
			dist["tarball"] = address + dist["tarball"].(string)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	return address
}

// describedPackage returns the package.json of a packed npm package.
func describedPackage(t *testing.T, file string) map[string]any {
	t.Helper()
	in, err := os.Open(file)
	require.NoError(t, err)
	defer in.Close()
	unpacked, err := gzip.NewReader(in)
	require.NoError(t, err)
	for reader := tar.NewReader(unpacked); ; {
		header, err := reader.Next()
		require.NoError(t, err)
		if header.Name == "package/package.json" {
			text, err := io.ReadAll(reader)
			require.NoError(t, err)
			return decode(t, text)
		}
	}
}

// pnpm and Yarn, which has no node_modules here, install the packages from a registry. A
// client gets a path that is there after the command, and never one of a cache.
func TestNPMPackagesOfOtherManagers(t *testing.T) {
	registry := npmRegistry(t)
	for name, c := range map[string]struct {
		program      string
		run          []string
		cache, place string
		moves        bool
	}{
		"pnpm": {"pnpm/bin/pnpm.cjs", []string{"exec"}, "pnpm dlx", "/node_modules/.pnpm/node_modules/@toolroom/", false},
		"yarn": {"@yarnpkg/cli-dist/bin/yarn.js", []string{"run"}, "dlx", "/.yarn/unplugged/@toolroom-", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home, dir := t.TempDir(), project(t)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"private": true}`), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "yarn.lock"), nil, 0o600)) // else Yarn looks for a project above
			command := func(args ...string) *exec.Cmd {
				cmd := exec.Command("node", append([]string{filepath.Join(oracles(t), "node_modules", c.program)}, args...)...)
				cmd.Dir = dir
				cmd.Env = []string{
					"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + t.TempDir(), "CI=true", "npm_config_registry=" + registry,
					"YARN_NPM_REGISTRY_SERVER=" + registry, "YARN_UNSAFE_HTTP_WHITELIST=127.0.0.1", "YARN_ENABLE_TELEMETRY=0",
				}
				return cmd
			}
			installed := func(args ...string) *exec.Cmd {
				return command(append(append([]string{}, c.run...), append([]string{"toolroom"}, args...)...)...)
			}
			succeed(t, command("add", "toolroom"))
			require.Contains(t, succeed(t, installed("verify")), "9 programs are equal to ")
			require.Contains(t, succeed(t, installed("ls", "--text", "--call", `{"path":"."}`, "--root", dir)), "hello.txt")

			said := succeed(t, installed("host", "install", "cursor", "--root", dir))
			require.Equal(t, c.moves, strings.Contains(said, "after an update, run this command again"), said)
			text, err := os.ReadFile(filepath.Join(home, ".cursor", "mcp.json"))
			require.NoError(t, err)
			entry := decode(t, text)["mcpServers"].(map[string]any)["toolroom"].(map[string]any)["command"].(string)
			require.Contains(t, entry, c.place)
			require.Contains(t, succeed(t, exec.Command(entry, "--version")), builtVersion(t))
			succeed(t, installed("host", "uninstall", "cursor"))

			out, err := command("dlx", "toolroom", "host", "install", "cursor", "--root", dir).CombinedOutput()
			require.Error(t, err, "%s", out)
			require.Contains(t, string(out), "this copy of toolroom is in the cache of "+c.cache+", which is cleared at times")
			require.NoFileExists(t, filepath.Join(home, ".cursor", "mcp.json"))
		})
	}
}
