package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestVersionOf(t *testing.T) {
	committed := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const commit = "0123456789abcdef0123456789abcdef01234567"
	for _, c := range []struct {
		tag, exact string
		dirty      bool
		want, apk  string
	}{
		{"", "", false, "v0.0.0-20260102030405-0123456789ab", "0.0.0_git20260102030405"},
		{"v1.2.3", "v1.2.3", false, "v1.2.3", "1.2.3"},
		{"v1.2.3", "", false, "v1.2.4-0.20260102030405-0123456789ab", "1.2.4_git20260102030405"},
		{"v1.2.3", "v1.2.3", true, "v1.2.4-0.20260102030405-0123456789ab.dirty", "1.2.4_git20260102030405"},
		{"v2.0.0-rc.1", "v2.0.0-rc.1", false, "v2.0.0-rc.1", "2.0.0_rc1"},
		{"v2.0.0-rc.1", "", false, "v2.0.0-rc.1.0.20260102030405-0123456789ab", "2.0.0_git20260102030405"},
		{"v1", "v1.x", false, "v1.0.1-0.20260102030405-0123456789ab", "1.0.1_git20260102030405"},
	} {
		version := versionOf(c.tag, c.exact, commit, committed, c.dirty)
		require.Equal(t, c.want, version)
		require.Equal(t, c.apk, apkVersion(version))
	}
}

// A clone has the version of its tag; a changed or new file takes it away.
func TestDescribe(t *testing.T) {
	dir := t.TempDir()
	main := filepath.Join(dir, "tools", "say", "main.go")
	require.NoError(t, os.MkdirAll(filepath.Dir(main), 0o755))
	require.NoError(t, os.WriteFile(main, []byte("package main\n"), 0o600))
	for name, value := range map[string]string{
		"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com",
		"GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z",
		"GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_SYSTEM": os.DevNull, "SOURCE_DATE_EPOCH": "",
	} {
		t.Setenv(name, value)
	}
	git := func(args ...string) {
		_, err := output(dir, "git", args...)
		require.NoError(t, err)
	}
	described := func() *Release {
		r, err := describe(dir)
		require.NoError(t, err)
		return r
	}
	git("init", "-q")
	git("add", ".")
	git("commit", "-qm", "first")
	require.Regexp(t, `^v0\.0\.0-20260102030405-[0-9a-f]{12}$`, described().Version)
	require.Equal(t, []string{"mcp-say", "mcp-host"}, described().programs)
	require.Equal(t, "2026-01-02T03:04:05Z", described().Time.Format(time.RFC3339))
	git("tag", "-a", "-m", "release", "v1.2.3")
	git("tag", "nightly")
	require.Equal(t, "v1.2.3", described().Version)
	extra := filepath.Join(filepath.Dir(main), "extra.go")
	require.NoError(t, os.WriteFile(extra, []byte("package main\n"), 0o600))
	require.Contains(t, described().Version, ".dirty")
	require.NoError(t, os.Remove(extra))
	require.Equal(t, "v1.2.3", described().Version)
	require.NoError(t, os.WriteFile(main, []byte("package main // changed\n"), 0o600))
	require.Regexp(t, `^v1\.2\.4-0\.20260102030405-[0-9a-f]{12}\.dirty$`, described().Version)
	t.Setenv("SOURCE_DATE_EPOCH", "86400")
	require.Equal(t, "1970-01-02T00:00:00Z", described().Time.Format(time.RFC3339))
	require.NoError(t, os.RemoveAll(filepath.Dir(main)))
	_, err := describe(dir)
	require.ErrorContains(t, err, "no clone of toolroom")
}

func TestParsePlatforms(t *testing.T) {
	platforms, err := parsePlatforms("linux/amd64,windows/arm64,linux/amd64")
	require.NoError(t, err)
	require.Equal(t, []Platform{{"linux", "amd64"}, {"windows", "arm64"}}, platforms)
	for _, bad := range []string{"", "linux", "linux/386", "linux/amd64,"} {
		_, err := parsePlatforms(bad)
		require.ErrorContains(t, err, "unknown platform", bad)
	}
}

// A directory with files of somebody else is left as it is.
func TestOutputIsEmptiedOnlyIfItIsOurs(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious")
	require.NoError(t, os.WriteFile(precious, nil, 0o600))
	require.ErrorContains(t, emptyOutput(dir), "was not made by dist")
	require.FileExists(t, precious)

	require.NoError(t, os.Remove(precious))
	require.NoError(t, emptyOutput(dir))
	require.NoError(t, os.WriteFile(precious, nil, 0o600))
	require.NoError(t, emptyOutput(dir), "an earlier build made it")
	require.NoFileExists(t, precious)
}

func TestCompare(t *testing.T) {
	const first = "aa  x\nbb  y\n"
	require.NoError(t, compare(first, first))
	require.ErrorContains(t, compare(first, "aa  x\ncc  y\n"), "the second build differs: cc  y")
	require.ErrorContains(t, compare(first, "aa  x\n"), "the first build has: bb  y")
	require.Error(t, compare("", ""), "nothing was built")
}
