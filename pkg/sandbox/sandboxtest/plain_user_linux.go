package sandboxtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// plainEnv is set in the process that runs as a plain user.
const plainEnv = "SANDBOXTEST_PLAIN"

// AsPlainUser runs those tests of this test binary whose names match a regular
// expression, as a plain user, and fails if one of them fails. It skips the
// test if the test does not run as root.
func AsPlainUser(t *testing.T, names string) {
	t.Helper()
	if os.Geteuid() != 0 || os.Getenv(plainEnv) != "" {
		t.Skip("the tests themselves run as a plain user")
	}
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip(err)
	}
	dir := mcpkittest.OuterDir(t, "/srv")
	require.NoError(t, os.Chmod(dir, 0o755))
	self, err := os.Executable()
	require.NoError(t, err)
	program, work := filepath.Join(dir, "test"), filepath.Join(dir, "work")
	mcpkittest.CopyProgram(t, self, program)
	require.NoError(t, os.Mkdir(work, 0o777))
	require.NoError(t, os.Chown(work, 65534, 65534))
	if err := exec.Command("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "test", "-x", work).Run(); err != nil {
		t.Skip("no other user can enter " + dir)
	}
	cmd := exec.Command("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program, "-test.v", "-test.run", names)
	cmd.Dir = work
	cmd.Env = append(os.Environ(), plainEnv+"=1", "HOME="+work, "XDG_CACHE_HOME="+work, "TMPDIR="+work)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	t.Logf("%s", out)
}
