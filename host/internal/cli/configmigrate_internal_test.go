package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// renameCaches is a migration of a later version: no key has been renamed yet.
func renameCaches(file string, text []byte) ([]byte, []string, error) {
	after := bytes.ReplaceAll(text, []byte("old_cache:"), []byte("cache:"))
	if bytes.Equal(after, text) {
		return text, nil, nil
	}
	return after, []string{"line 2: old_cache is now cache"}, nil
}

func TestMigrateKeepsABackup(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "toolroom", "toolroom.yaml")
	var out, errs bytes.Buffer
	p := &program{out: &out, err: &errs, getenv: func(name string) string {
		return map[string]string{"XDG_CONFIG_HOME": dir}[name]
	}}
	migrate := func(dryRun bool) {
		out.Reset()
		errs.Reset()
		require.NoError(t, p.runMigrate("", dryRun, renameCaches))
	}
	err := p.runMigrate("", false, renameCaches)
	require.ErrorContains(t, err, file+" does not exist")

	require.NoError(t, os.Mkdir(filepath.Dir(file), 0o700))
	const before = "# mine\r\nold_cache: {} # theirs\n"
	write := func(text string) {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		require.NoError(t, os.Chmod(file, 0o640))
	}
	read := func(name string) string {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		return string(text)
	}
	write(before)
	migrate(true)
	require.Contains(t, out.String(), "-old_cache: {} # theirs\n+cache: {} # theirs\n")
	require.Equal(t, before, read(file))
	require.NoFileExists(t, file+".before-migration")

	migrate(false)
	require.Equal(t, "line 2: old_cache is now cache\n"+file+"\n", out.String())
	require.Contains(t, errs.String(), "the content before is in "+file+".before-migration\n")
	require.Equal(t, strings.Replace(before, "old_cache", "cache", 1), read(file))
	require.Equal(t, before, read(file+".before-migration"))
	if runtime.GOOS != "windows" {
		for _, name := range []string{file, file + ".before-migration"} {
			info, err := os.Stat(name)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o640), info.Mode().Perm(), name)
		}
	}

	migrate(false)
	require.Contains(t, out.String(), "has no keys of older versions; nothing was changed")
	require.NoFileExists(t, file+".before-migration-2")

	write("old_cache: {}\n") // an older copy comes back: the first backup stays
	migrate(false)
	require.Equal(t, before, read(file+".before-migration"))
	require.Equal(t, "old_cache: {}\n", read(file+".before-migration-2"))
}
