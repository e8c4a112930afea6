//go:build oracle && linux

package main

import (
	"archive/tar"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chainguard-dev/go-apk/pkg/apk"
	apkfs "github.com/chainguard-dev/go-apk/pkg/fs"
	"github.com/stretchr/testify/require"
)

// Alpine's own apk is in none of the registries that the tests use. This is the
// implementation with which Chainguard builds the images of Wolfi: it installs a
// package and records it in apk's database, but removes none.

// apkFile is a package in a file.
type apkFile string

func (f apkFile) URL() string          { return string(f) }
func (apkFile) PackageName() string    { return "toolroom" }
func (apkFile) ChecksumString() string { return "" }

// apkAdd installs a package as apk add does. The database is empty before.
func apkAdd(t *testing.T, root, file string) {
	t.Helper()
	database := filepath.Join(root, "lib/apk/db")
	require.NoError(t, os.MkdirAll(database, 0o755))
	for _, name := range []string{"installed", "triggers"} {
		require.NoError(t, os.WriteFile(filepath.Join(database, name), nil, 0o644))
	}
	scripts, err := os.Create(filepath.Join(database, "scripts.tar"))
	require.NoError(t, err)
	require.NoError(t, tar.NewWriter(scripts).Close())
	require.NoError(t, scripts.Close())

	manager, err := apk.New(apk.WithFS(apkfs.DirFS(root)))
	require.NoError(t, err)
	require.NoError(t, manager.InstallPackages(t.Context(), nil, []apk.InstallablePackage{apkFile(file)}))
	scripts, err = os.Open(filepath.Join(database, "scripts.tar"))
	require.NoError(t, err)
	defer scripts.Close()
	_, err = tar.NewReader(scripts).Next()
	require.ErrorIs(t, err, io.EOF, "the package has no scripts")
}

// ownLib makes lib a directory, as Alpine has it: this implementation does not follow
// Debian's link to usr/lib.
func ownLib(t *testing.T, root string) {
	t.Helper()
	lib := filepath.Join(root, "lib")
	if os.Remove(lib) != nil {
		return // it is a directory
	}
	require.NoError(t, os.Mkdir(lib, 0o755))
	present, err := os.ReadDir(filepath.Join(root, "usr/lib"))
	require.NoError(t, err)
	for _, entry := range present {
		require.NoError(t, os.Symlink("../usr/lib/"+entry.Name(), filepath.Join(lib, entry.Name())))
	}
}

// apkDel removes what the database says of the package, as apk del does.
func apkDel(t *testing.T, root string) {
	t.Helper()
	database, err := os.Open(filepath.Join(root, "lib/apk/db/installed"))
	require.NoError(t, err)
	defer database.Close()
	packages, err := apk.ParseInstalled(database)
	require.NoError(t, err)
	require.Len(t, packages, 1)
	require.Equal(t, "toolroom", packages[0].Name)
	var dirs []string
	for _, file := range packages[0].Files {
		name := filepath.Join(root, file.Name)
		if file.Typeflag == tar.TypeDir {
			dirs = append(dirs, name)
			continue
		}
		require.NoError(t, os.Remove(name))
	}
	for _, dir := range slices.Backward(slices.Sorted(slices.Values(dirs))) {
		os.Remove(dir) // it fails for a directory that has other files
	}
}
