//go:build oracle

package conformance

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
)

// TestConformanceSuites runs the official server suites, as each revision
// froze them, against the host's HTTP port. baseline.yaml names each check
// that may fail, with the reason. A failure it does not name fails the test,
// and so does an entry whose check passes: then the entry has to go.
func TestConformanceSuites(t *testing.T) {
	text, err := os.ReadFile("testdata/baseline.yaml")
	require.NoError(t, err)
	var baseline map[string]map[string]string // revision → scenario:check → reason
	require.NoError(t, yaml.UnmarshalWithOptions(text, &baseline, yaml.Strict()))
	dir, err := binaries()
	require.NoError(t, err)
	// The suite cannot send a token, and it sets Host and Origin itself.
	server := serveHost(t, filepath.Join(dir, "mcp-host"), fixtureRoot(t), "--no-token")
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			ran, failures := runSuite(t, server, revision)
			expected := baseline[revision]
			for check, reason := range expected {
				require.Greater(t, len(reason), 10, "%s: say why it may fail", check)
				scenario, _, _ := strings.Cut(check, ":")
				require.Contains(t, ran, scenario, "baseline.yaml names a scenario that did not run")
			}
			for _, check := range slices.Sorted(maps.Keys(failures)) {
				if _, ok := expected[check]; !ok {
					t.Errorf("%s fails and baseline.yaml does not expect it: %s", check, failures[check])
				}
			}
			for _, check := range slices.Sorted(maps.Keys(expected)) {
				if _, ok := failures[check]; !ok {
					t.Errorf("%s passes now: take it out of baseline.yaml", check)
				}
			}
			t.Logf("%d scenarios, %d checks fail as expected", len(ran), len(failures))
		})
	}
}

// runSuite returns the scenarios that the revision scores and the checks of
// these that failed, as "scenario:check", with their messages.
func runSuite(t *testing.T, server, revision string) (ran []string, failures map[string]string) {
	t.Helper()
	script := filepath.Join(oracle.Module(t, "@modelcontextprotocol/conformance"), "dist", "index.js")
	node := oracle.Path(t, "node")
	list, err := exec.Command(node, script, "list", "--server", "--requirements", revision).CombinedOutput()
	require.NoError(t, err, string(list))
	_, scored, _ := strings.Cut(string(list), "Server scenarios")
	scored, _, _ = strings.Cut(scored, "\n\n") // client scenarios follow
	for _, match := range regexp.MustCompile(`(?m)^  - (\S+)`).FindAllStringSubmatch(scored, -1) {
		ran = append(ran, match[1])
	}
	require.Greater(t, len(ran), 20, "the suite's list has another form: %s", list)

	results := t.TempDir()
	out, err := exec.Command(node, script, "server", "--url", server, "--requirements", revision, "-o", results).CombinedOutput()
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &exit, string(out))
	}
	require.Contains(t, string(out), "=== SUMMARY ===", "the suite ran to its end")
	failures = map[string]string{}
	for _, scenario := range ran {
		dirs, err := filepath.Glob(filepath.Join(results, "server-"+scenario+"-20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]T*"))
		require.NoError(t, err)
		require.Len(t, dirs, 1, "one result of %s\n%s", scenario, out)
		raw, err := os.ReadFile(filepath.Join(dirs[0], "checks.json"))
		require.NoError(t, err)
		var checks []struct {
			ID, Status, ErrorMessage string
		}
		require.NoError(t, json.Unmarshal(raw, &checks), string(raw))
		for _, check := range checks {
			if check.Status == "FAILURE" {
				failures[scenario+":"+check.ID] = check.ErrorMessage
			}
		}
	}
	return ran, failures
}
