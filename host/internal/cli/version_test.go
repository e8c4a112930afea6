package cli_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVersionCheck(t *testing.T) {
	var requests atomic.Int32
	feed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		fmt.Fprint(w, `[{"tag_name": "v1.2.3", "html_url": "https://example.com/1", "published_at": "2026-11-01T00:00:00Z", "body": "### Fixed\n- \u001b[31mred"}]`)
	}))
	defer feed.Close()
	check := func(args ...string) (string, error) {
		cmd := exec.Command("mcp-host", append([]string{"version"}, args...)...)
		cmd.Env = append(os.Environ(), "TOOLROOM_RELEASES="+feed.URL)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	_, err := check()
	require.NoError(t, err)
	require.Zero(t, requests.Load(), "version alone asks nobody")

	out, err := check("--check")
	require.NoError(t, err, out)
	require.Regexp(t, `(?s)^the latest release is v1\.2\.3; this is .*, which is not a release\n\nv1\.2\.3 \(2026-11-01\) https://example\.com/1\n  ### Fixed\n  - `, out)
	require.NotContains(t, out, "\x1b", "control characters do not reach the terminal")
	require.EqualValues(t, 1, requests.Load())

	out, err = check("--check", "--json")
	require.NoError(t, err, out)
	require.Contains(t, out, `"latest":"v1.2.3"`)

	feed.Close()
	out, err = check("--check")
	require.ErrorContains(t, err, "exit status 3")
	require.Contains(t, out, "mcp-host: cannot reach 127.0.0.1:")
}
