package supervise_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// TestImportsLittle: what this package imports is initialized before each
// command, and what it does not import comes after it only as long as it is
// itself ready before them.
func TestImportsLittle(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	for _, dep := range strings.Fields(string(out)) {
		switch {
		case dep == "net", dep == "regexp", dep == "text/template", dep == "os/exec", strings.HasPrefix(dep, "net/"), strings.HasPrefix(dep, "crypto/tls"):
			t.Errorf("%s is imported", dep)
		case strings.Contains(dep, ".") && !strings.HasPrefix(dep, "vendor/"):
			require.Contains(t, []string{"golang.org/x/sys/unix", "github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"}, dep)
		}
	}
}

func TestBeneath(t *testing.T) {
	for _, c := range []struct {
		dir, path string
		want      bool
	}{
		{"/a", "/a", true}, {"/a", "/a/b", true}, {"/a", "/ab", false}, {"/a/b", "/a", false}, {"/", "/a", true}, {"/", "/", true},
	} {
		require.Equal(t, c.want, supervise.Beneath(c.dir, c.path), "%s in %s", c.path, c.dir)
	}
}
