package sandboxtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// plainEnv is the environment variable with the directory of the process that runs as a
// plain user.
const plainEnv = "SANDBOXTEST_PLAIN"

// PlainUserDir returns the directory of this process if AsPlainUser has started it,
// otherwise "". The plain user can write it.
func PlainUserDir() string { return os.Getenv(plainEnv) }

// AsPlainUser runs tests of this test binary again as a plain user, and fails if one of them
// fails. Of several, those run that are in the sample, with all their cases; without
// tests it runs nothing. It skips the test if the test does not run as root.
func AsPlainUser(t *testing.T, tests ...string) {
	t.Helper()
	if os.Geteuid() != 0 || os.Getenv(plainEnv) != "" {
		t.Skip("the tests themselves run as a plain user")
	}
	if len(tests) > 1 {
		tests = slices.DeleteFunc(tests, func(name string) bool { return !InSample(name + " as a plain user") })
	}
	if len(tests) == 0 {
		t.Skip("none of the tests is in the sample; make corpora runs all")
	}
	dir := mcpkittest.OuterDir(t, "/srv")
	require.NoError(t, os.Chmod(dir, 0o755))
	self, err := os.Executable()
	require.NoError(t, err)
	program, work := filepath.Join(dir, "test"), filepath.Join(dir, "work")
	mcpkittest.CopyProgram(t, self, program)
	require.NoError(t, os.Mkdir(work, 0o777))
	require.NoError(t, os.Chown(work, 65534, 65534))
	nobody := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	enter := exec.Command("test", "-x", work)
	enter.SysProcAttr = nobody
	if err := enter.Run(); err != nil {
		t.Skip("no other user can enter " + dir)
	}
	cmd := exec.Command(program, "-test.v", "-test.run", "^("+strings.Join(tests, "|")+")$")
	cmd.SysProcAttr = nobody
	cmd.Dir = work
	cmd.Env = append(os.Environ(), plainEnv+"="+work, sampleEnv+"=all", "HOME="+work, "XDG_CACHE_HOME="+work, "TMPDIR="+work)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.NotContains(t, string(out), "no tests to run")
	t.Logf("%s", out)
}
