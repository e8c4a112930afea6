//go:build oracle && linux

package main

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// built returns the file of the build in $TOOLROOM_DIST (default: out) that matches a
// pattern.
func built(t *testing.T, pattern string) string {
	t.Helper()
	dir := os.Getenv("TOOLROOM_DIST")
	if dir == "" {
		dir = "out"
	}
	found, err := filepath.Glob(filepath.Join(dir, strings.ReplaceAll(pattern, "ARCH", runtime.GOARCH)))
	require.NoError(t, err)
	require.Len(t, found, 1, "%s in %s: run make dist", pattern, dir)
	name, err := filepath.Abs(found[0])
	require.NoError(t, err)
	return name
}

// asRoot returns a command that runs as root, or as root of its user namespace.
func asRoot(name string, args ...string) *exec.Cmd {
	args = append([]string{"--mount", name}, args...)
	if os.Geteuid() != 0 {
		args = append([]string{"--map-root-user"}, args...)
	}
	cmd := exec.Command("unshare", args...)
	cmd.Env = append(os.Environ(), "PATH=/usr/local/sbin:/usr/sbin:/sbin:"+os.Getenv("PATH"))
	return cmd
}

// inside returns a command that sees only the directory root, and /proc. If this test
// is run by root, the command runs as the given user.
func inside(root string, user int, name string, args ...string) *exec.Cmd {
	const enter = `mount --rbind /proc "$0/proc" && exec chroot $user "$0" "$@"`
	cmd := asRoot("sh", append([]string{"-c", enter, root, name}, args...)...)
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/state", "MCP_STATE_DIR=/state"}
	if os.Geteuid() == 0 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("user=--userspec=%d:%d", user, user))
	}
	return cmd
}

func succeed(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s\n%s", cmd, out)
	return string(out)
}

// emptySystem makes a root file system with a few files, but no program.
func emptySystem(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"etc/hostname": "system\n", "usr/bin/other": "other\n", "project/hello.txt": "hello\n",
		"usr/share/doc/other/copyright": "other\n", "state/.keep": "", "tmp/.keep": "", "proc/.keep": "",
	} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o644))
	}
	return root
}

// snapshot returns kind, mode and hash of all files below root, except the databases
// of package managers and the state of the tools.
func snapshot(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	require.NoError(t, filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		switch relative {
		case "state", "var/lib/dpkg", "var/lib/rpm", "lib/apk", "usr/lib/apk":
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		line := info.Mode().String()
		if info.Mode().IsRegular() {
			content, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			line += " " + hexSum(content)
		}
		found[relative] = line
		return nil
	}))
	return found
}

// tryInstalled runs every program in a root file system that has nothing else to run.
func tryInstalled(t *testing.T, root string) {
	t.Helper()
	version := builtVersion(t)
	programs, err := programs("..")
	require.NoError(t, err)
	for _, name := range programs {
		file := filepath.Join(root, "usr", "bin", name)
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.EqualValues(t, 0o755, info.Mode())
		require.Contains(t, succeed(t, inside(root, 0, "/usr/bin/"+name, "--version")), name+" "+version+" (revision ")
		binary, err := elf.Open(file)
		require.NoError(t, err)
		for _, segment := range binary.Progs {
			require.NotEqual(t, elf.PT_INTERP, segment.Type, "%s is static", name)
		}
		binary.Close()
	}
	require.Contains(t, succeed(t, inside(root, 0, "/usr/bin/mcp-ls", "--text", "--call", `{"path":"."}`, "--root", "/project")), "hello.txt")
	require.Contains(t, succeed(t, inside(root, 0, "/usr/bin/mcp-host", "call", "view", "file_path=hello.txt", "--root", "/project")), "hello")
	require.FileExists(t, filepath.Join(root, "usr/share/doc/toolroom/copyright"))
	require.FileExists(t, filepath.Join(root, "usr/share/doc/toolroom/THIRD_PARTY_LICENSES.txt"))
	require.FileExists(t, filepath.Join(root, "usr/share/bash-completion/completions/mcp-host"))
}

// builtVersion returns the version of the build, as its archive is named.
func builtVersion(t *testing.T) string {
	t.Helper()
	name := filepath.Base(built(t, "toolroom_*_linux_ARCH.tar.gz"))
	return "v" + strings.Split(name, "_")[1]
}

func TestDeb(t *testing.T) {
	root := emptySystem(t)
	for _, dir := range []string{"info", "updates", "triggers"} {
		require.NoError(t, os.MkdirAll(filepath.Join(root, "var/lib/dpkg", dir), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), nil, 0o644))
	before := snapshot(t, root)
	succeed(t, asRoot("dpkg", "--root="+root, "--force-script-chrootless", "--log=/dev/null", "-i", built(t, "toolroom_*_linux_ARCH.deb")))
	tryInstalled(t, root)
	succeed(t, asRoot("dpkg", "--root="+root, "--force-script-chrootless", "--log=/dev/null", "--purge", "toolroom"))
	require.Equal(t, before, snapshot(t, root))
}

func TestRPM(t *testing.T) {
	root := emptySystem(t)
	database := filepath.Join(root, "var/lib/rpm")
	require.NoError(t, os.MkdirAll(database, 0o755))
	rpm := func(args ...string) string {
		return succeed(t, asRoot("rpm", append([]string{"--root", root, "--dbpath", "/var/lib/rpm"}, args...)...))
	}
	rpm("--initdb")
	before := snapshot(t, root)
	rpm("-i", "--nosignature", built(t, "toolroom_*_linux_ARCH.rpm"))
	require.Contains(t, rpm("-qi", "toolroom"), "MIT")
	tryInstalled(t, root)
	rpm("-e", "toolroom")
	require.Equal(t, before, snapshot(t, root))
}

// An apk package is a sequence of compressed tar archives: the description with the
// hash of the data, then the data.
func TestAPK(t *testing.T) {
	content, err := os.ReadFile(built(t, "toolroom_*_linux_ARCH.apk"))
	require.NoError(t, err)
	reader := bytes.NewReader(content)
	var parts [][]byte // compressed
	for reader.Len() > 0 {
		start := len(content) - reader.Len()
		member, err := gzip.NewReader(reader)
		require.NoError(t, err)
		member.Multistream(false)
		_, err = io.Copy(io.Discard, member)
		require.NoError(t, err)
		parts = append(parts, content[start:len(content)-reader.Len()])
	}
	require.Len(t, parts, 2, "it is not signed")
	control, err := gzip.NewReader(bytes.NewReader(parts[0]))
	require.NoError(t, err)
	description, err := io.ReadAll(control)
	require.NoError(t, err)
	require.Contains(t, string(description), "pkgname = toolroom\n")
	require.Contains(t, string(description), "datahash = "+hexSum(parts[1])+"\n")

	root := emptySystem(t)
	tar := asRoot("tar", "-xzf", "-", "-C", root)
	tar.Stdin = bytes.NewReader(parts[1])
	succeed(t, tar)
	tryInstalled(t, root)
}

// The image runs as a user that is not root, without anything of this machine.
func TestImageServes(t *testing.T) {
	layout, root := t.TempDir(), t.TempDir()
	unpackTar(t, built(t, "toolroom_*_linux_ARCH_image.tar"), layout)
	text, err := os.ReadFile(filepath.Join(layout, "manifest.json"))
	require.NoError(t, err)
	var manifests []struct {
		Config string
		Layers []string
	}
	require.NoError(t, json.Unmarshal(text, &manifests))
	succeed(t, asRoot("tar", "-xzf", filepath.Join(layout, manifests[0].Layers[0]), "-C", root, "--no-same-owner"))
	require.NoError(t, os.Chmod(root, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "workspace/hello.txt"), []byte("hello\n"), 0o644))
	text, err = os.ReadFile(filepath.Join(layout, manifests[0].Config))
	require.NoError(t, err)
	var image struct {
		Config struct {
			Env, Entrypoint, Cmd []string
		}
	}
	require.NoError(t, json.Unmarshal(text, &image))

	for _, dir := range []string{"home/nonroot", "workspace"} {
		if os.Geteuid() == 0 {
			require.NoError(t, os.Chown(filepath.Join(root, dir), nonroot, nonroot))
		}
	}
	require.NoError(t, os.Mkdir(filepath.Join(root, "proc"), 0o755))
	cmd := inside(root, nonroot, image.Config.Entrypoint[0], image.Config.Cmd...)
	for _, variable := range image.Config.Env {
		if !strings.HasPrefix(variable, "PATH=") { // where mount and chroot are
			cmd.Env = append(cmd.Env, variable)
		}
	}
	// The temporary directories above it are for their owner only.
	for dir := root; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	var requests strings.Builder
	for i, call := range []string{
		`"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`,
		`"tools/call","params":{"name":"view","arguments":{"file_path":"hello.txt"}}`,
	} {
		fmt.Fprintf(&requests, `{"jsonrpc":"2.0","id":%d,"method":%s}`+"\n", i, call)
	}
	cmd.Stdin = strings.NewReader(requests.String())
	out := succeed(t, cmd)
	require.Contains(t, out, "hello")
	require.NotContains(t, out, `"isError":true`)
}

// Every file is in checksums.txt, and openssl verifies the signature as a user would.
func TestChecksumsVerify(t *testing.T) {
	list := built(t, checksumsFile)
	cmd := exec.Command("sha256sum", "--check", "--quiet", "--strict", list)
	cmd.Dir = filepath.Dir(list)
	succeed(t, cmd)
	text, err := os.ReadFile(list)
	require.NoError(t, err)
	require.NoError(t, filepath.WalkDir(filepath.Dir(list), func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasPrefix(d.Name(), ".toolroom") && !strings.HasPrefix(d.Name(), checksumsFile) {
			require.Contains(t, string(text), d.Name())
		}
		return err
	}))

	dir := t.TempDir()
	key, public, signature := filepath.Join(dir, "key"), filepath.Join(dir, "public"), filepath.Join(dir, "signature")
	succeed(t, exec.Command("openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key))
	succeed(t, exec.Command("openssl", "pkey", "-in", key, "-pubout", "-out", public))
	private, err := os.ReadFile(key)
	require.NoError(t, err)
	signed, err := sign(string(private), text)
	require.NoError(t, err)
	decoder := exec.Command("openssl", "base64", "-d", "-A", "-out", signature)
	decoder.Stdin = bytes.NewReader(bytes.TrimSpace(signed))
	succeed(t, decoder)
	require.Contains(t, succeed(t, exec.Command("openssl", "dgst", "-sha256", "-verify", public, "-signature", signature, list)), "Verified OK")
}
