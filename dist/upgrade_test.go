//go:build oracle && linux

package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// newerPackages builds the packages of a newer version, which has two of the programs, and a
// text in place of the host: it is smaller, and no host is started from it. It returns the
// directory.
func newerPackages(t *testing.T) string {
	t.Helper()
	p := Platform{"linux", runtime.GOARCH}
	r := fakeRelease(t, p)
	r.Version, r.programs, r.binaries[p] = "v999.0.0", []string{"mcp-host", "mcp-view", "mcp-ls"}, t.TempDir()
	unpack := exec.Command("tar", "--extract", "--gzip", "--strip-components=1", "--wildcards", "--file="+built(t, "toolroom_*_linux_ARCH.tar.gz"),
		"--directory="+r.binaries[p], "*/mcp-view", "*/mcp-ls")
	succeed(t, unpack)
	require.NoError(t, os.WriteFile(filepath.Join(r.binaries[p], "mcp-host"), []byte("newer\n"), 0o755))
	require.NoError(t, r.linuxPackages(p))
	return r.Out
}

// A package is upgraded, downgraded and removed under a running host: it goes on to answer,
// and starts the programs that are there. The user's configuration and state stay.
func TestUpgrade(t *testing.T) {
	newer := newerPackages(t)
	for format, command := range map[string]struct{ database, prepare, install, downgrade, remove string }{
		"deb": {
			"var/lib/dpkg", `mkdir "$db/info" "$db/updates" "$db/triggers" && : > "$db/status"`,
			`dpkg --root="$root" --force-script-chrootless --log=/dev/null -i "$file"`, `dpkg --root="$root" --force-script-chrootless --log=/dev/null -i "$file"`,
			`dpkg --root="$root" --force-script-chrootless --log=/dev/null --purge toolroom`,
		},
		"rpm": {
			"var/lib/rpm", `rpm --root "$root" --dbpath /var/lib/rpm --initdb`,
			`rpm --root "$root" --dbpath /var/lib/rpm -U --nosignature "$file"`, `rpm --root "$root" --dbpath /var/lib/rpm -U --oldpackage --nosignature "$file"`,
			`rpm --root "$root" --dbpath /var/lib/rpm -e toolroom`,
		},
	} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			root := emptySystem(t)
			require.NoError(t, os.MkdirAll(filepath.Join(root, command.database), 0o755))
			require.NoError(t, os.MkdirAll(filepath.Join(root, "etc/toolroom"), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(root, "etc/toolroom/toolroom.yaml"), []byte("servers: {}\n"), 0o644))
			manage := func(script, file string) {
				cmd := asRoot("sh", "-c", script)
				cmd.Env = append(cmd.Env, "root="+root, "db="+filepath.Join(root, command.database), "file="+file)
				succeed(t, cmd)
			}
			manage(command.prepare, "")
			before := snapshot(t, root)

			found, err := filepath.Glob(filepath.Join(newer, "*."+format))
			require.NoError(t, err)
			require.Len(t, found, 1)
			release := built(t, "toolroom_*_linux_ARCH."+format)
			manage(command.install, release)
			ask := runningHost(t, root)
			require.Contains(t, ask("view", `{"file_path":"hello.txt"}`), `1\thello`)

			manage(command.install, found[0])
			text, err := os.ReadFile(filepath.Join(root, "usr/bin/mcp-host"))
			require.NoError(t, err)
			require.Equal(t, "newer\n", string(text))
			require.NoFileExists(t, filepath.Join(root, "usr/bin/mcp-grep"))
			require.Contains(t, ask("view", `{"file_path":"hello.txt"}`), `1\thello`)
			require.Contains(t, ask("ls", `{"path":"."}`), "hello.txt", "it starts the new program")

			manage(command.downgrade, release)
			require.Contains(t, succeed(t, inside(root, 0, "/usr/bin/mcp-host", "--version")), builtVersion(t))
			require.Contains(t, ask("grep", `{"pattern":"hello"}`), "hello.txt")
			manage(command.remove, "")
			require.Contains(t, ask("view", `{"file_path":"hello.txt"}`), `1\thello`)
			require.Equal(t, before, snapshot(t, root))
			kept, err := os.ReadDir(filepath.Join(root, "state"))
			require.NoError(t, err)
			require.NotEmpty(t, kept)
		})
	}
}

// runningHost starts the host of a root file system. It returns a function that calls a tool
// and returns the answer.
func runningHost(t *testing.T, root string) (ask func(tool, arguments string) string) {
	t.Helper()
	cmd := inside(root, 0, "/usr/bin/mcp-host", "stdio", "--root", "/project")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var said strings.Builder
	cmd.Stderr = &said
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, in.Close())
		require.NoError(t, cmd.Wait(), "%s", &said)
	})
	answers := bufio.NewReader(out)
	request := func(id, text string) string {
		_, err := io.WriteString(in, `{"jsonrpc":"2.0","id":`+id+`,"method":`+text+"}\n")
		require.NoError(t, err)
		for { // notifications can come first
			answer, err := answers.ReadString('\n')
			require.NoError(t, err)
			if strings.Contains(answer, `"id":`+id+`,`) {
				return answer
			}
		}
	}
	request("1", `"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)
	return func(tool, arguments string) string {
		return request("2", `"tools/call","params":{"name":"`+tool+`","arguments":`+arguments+`}`)
	}
}
