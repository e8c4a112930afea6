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
// froze them, against the host's HTTP port. Behind the host, over stdio, is a
// server with the tools that the suites call, which speaks the one era or the
// other. baseline.yaml names each check that may fail, with the reason. A
// failure it does not name fails the test, and so does an entry whose check
// passes: then the entry has to go.
func TestConformanceSuites(t *testing.T) {
	text, err := os.ReadFile("testdata/baseline.yaml")
	require.NoError(t, err)
	var baseline map[string]map[string]string // suite → scenario:check → reason
	require.NoError(t, yaml.UnmarshalWithOptions(text, &baseline, yaml.Strict()))
	for _, suite := range []struct{ revision, upstream string }{
		{"2025-11-25", modern}, {"2026-07-28", modern}, {"2025-11-25", legacy}, {"2026-07-28", legacy},
	} {
		name := suite.revision + " before a " + suite.upstream + " server"
		expected := baseline[name]
		delete(baseline, name)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := runSuite(t, serveUpstream(t, suite.upstream), suite.revision)
			for check, reason := range expected {
				require.Greater(t, len(reason), 10, "%s: say why it may fail", check)
				scenario, _, _ := strings.Cut(check, ":")
				require.Contains(t, r.ran, scenario, "baseline.yaml names a scenario that did not run")
			}
			for _, check := range slices.Sorted(maps.Keys(r.failures)) {
				if _, ok := expected[check]; !ok {
					t.Errorf("%s fails and baseline.yaml does not expect it: %s", check, r.failures[check])
				}
			}
			for _, check := range slices.Sorted(maps.Keys(expected)) {
				if _, ok := r.failures[check]; !ok {
					t.Errorf("%s passes now: take it out of baseline.yaml", check)
				}
			}
			t.Logf("%d scenarios: %d checks pass, %d fail as expected", len(r.ran), r.passed, len(r.failures))
		})
	}
	require.Empty(t, baseline, "baseline.yaml is about suites that are not run")
}

// serveUpstream serves the suites' own server through the host.
func serveUpstream(t *testing.T, era string) (url string) {
	t.Helper()
	dir, err := alone()
	require.NoError(t, err)
	config := filepath.Join(t.TempDir(), "config.json")
	text, err := json.Marshal(map[string]any{"servers": map[string]any{"suite": map[string]any{
		"command": filepath.Join(dir, "suite-upstream"), "args": []string{"-era", era},
		"prefix": "", // the suites call tools by their own names
	}}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(config, text, 0o600))
	// The suite cannot send a token, and it sets Host and Origin itself.
	return serveHost(t, filepath.Join(dir, "mcp-host"), fixtureRoot(t), "--no-token", "--config", config)
}

// outcome is what a suite found, of the scenarios that the revision scores.
type outcome struct {
	ran      []string
	passed   int               // checks
	failures map[string]string // "scenario:check" → message
}

func runSuite(t *testing.T, server, revision string) outcome {
	t.Helper()
	r := outcome{failures: map[string]string{}}
	script := filepath.Join(oracle.Module(t, "@modelcontextprotocol/conformance"), "dist", "index.js")
	node := oracle.Path(t, "node")
	list, err := exec.Command(node, script, "list", "--server", "--requirements", revision).CombinedOutput()
	require.NoError(t, err, string(list))
	_, scored, _ := strings.Cut(string(list), "Server scenarios")
	scored, _, _ = strings.Cut(scored, "\n\n") // client scenarios follow
	for _, match := range regexp.MustCompile(`(?m)^  - (\S+)`).FindAllStringSubmatch(scored, -1) {
		r.ran = append(r.ran, match[1])
	}
	require.Greater(t, len(r.ran), 20, "the suite's list has another form: %s", list)

	results := t.TempDir()
	out, err := exec.Command(node, script, "server", "--url", server, "--requirements", revision, "-o", results).CombinedOutput()
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &exit, string(out))
	}
	require.Contains(t, string(out), "=== SUMMARY ===", "the suite ran to its end")
	for _, scenario := range r.ran {
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
			switch check.Status {
			case "SUCCESS":
				r.passed++
			case "FAILURE":
				r.failures[scenario+":"+check.ID] = check.ErrorMessage
			}
		}
	}
	return r
}
