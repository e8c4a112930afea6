//go:build oracle && linux

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// debian is a package of Debian that is installed on this machine.
type debian struct {
	name    string // with its architecture, as dpkg-query accepts it
	depends string
}

// installedPackages returns the packages of this machine by their names and by what
// they provide.
func installedPackages(t *testing.T) map[string]debian {
	t.Helper()
	const format = `${db:Status-Abbrev}\t${Package}\t${Architecture}\t${Pre-Depends},${Depends}\t${Provides}\n`
	found := map[string]debian{}
	for line := range strings.Lines(succeed(t, exec.Command("dpkg-query", "--show", "--showformat", format))) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		require.Len(t, fields, 5, line)
		if state := fields[0][1]; state != 'i' && state != 't' && state != 'W' {
			continue // not installed; triggers of an installed one may be pending
		}
		pkg := debian{fields[1] + ":" + fields[2], fields[3]}
		found[fields[1]] = pkg
		for _, provided := range packageName.FindAllString(fields[4], -1) {
			if _, known := found[provided]; !known {
				found[provided] = pkg
			}
		}
	}
	return found
}

// packageName finds the names in a list of dependencies, without their versions.
var packageName = regexp.MustCompile(`\b[a-z][a-z0-9+.-]+\b`)

// debianSystem makes a root file system of packages of Debian and their dependencies,
// as debootstrap does. It copies them from this machine, so that it needs no network.
// A dependency that the test does not need is left out.
func debianSystem(t *testing.T, wanted []string, without ...string) string {
	t.Helper()
	present, taken := installedPackages(t), map[string]bool{}
	var status bytes.Buffer
	var files []string
	root := t.TempDir()
	info := filepath.Join(root, "var/lib/dpkg/info")
	require.NoError(t, os.MkdirAll(info, 0o755))
	for queue := slices.Clone(wanted); len(queue) > 0; queue = queue[1:] {
		pkg, ok := present[queue[0]]
		require.True(t, ok, "%s is not installed on this machine", queue[0])
		if taken[pkg.name] {
			continue
		}
		taken[pkg.name] = true
		status.WriteString(succeed(t, exec.Command("dpkg-query", "--status", pkg.name)) + "\n")
		list := succeed(t, exec.Command("dpkg-query", "--listfiles", pkg.name))
		name, arch, _ := strings.Cut(pkg.name, ":")
		if _, err := os.Stat("/var/lib/dpkg/info/" + pkg.name + ".list"); err == nil {
			name += ":" + arch // more than one architecture of it may be installed
		}
		require.NoError(t, os.WriteFile(filepath.Join(info, name+".list"), []byte(list), 0o644))
		files = append(files, strings.Fields(list)...)
		for _, needed := range regexp.MustCompile(`\([^)]*\)|:any`).Split(pkg.depends, -1) {
			for _, choice := range strings.Split(needed, ",") {
				names := packageName.FindAllString(choice, -1)
				if i := slices.IndexFunc(names, func(n string) bool { _, ok := present[n]; return ok }); i >= 0 && !slices.Contains(without, names[i]) {
					queue = append(queue, names[i])
				}
			}
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, "var/lib/dpkg/status"), status.Bytes(), 0o644))
	copyFiles(t, root, append(files, "/bin/sh")) // which a script of dash makes
	return root
}

// copyFiles copies files of this machine, as far as they exist, into a root file system.
func copyFiles(t *testing.T, root string, files []string) {
	t.Helper()
	var list strings.Builder
	for _, name := range files {
		if _, err := os.Lstat(name); err == nil && strings.HasPrefix(name, "/") && name != "/." {
			list.WriteString("." + name + "\n")
		}
	}
	for _, name := range []string{"bin", "sbin", "lib", "lib64"} {
		if leads, err := os.Readlink("/" + name); err == nil {
			require.NoError(t, os.MkdirAll(filepath.Join(root, leads), 0o755))
			require.NoError(t, os.Symlink(leads, filepath.Join(root, name)))
		}
	}
	cmd := asRoot("sh", "-c", `tar --create --file="$0/tar" --directory=/ --no-recursion --files-from=- && tar --extract --file="$0/tar" --directory="$0" && rm "$0/tar"`, root)
	cmd.Stdin = strings.NewReader(list.String())
	succeed(t, cmd)
}
