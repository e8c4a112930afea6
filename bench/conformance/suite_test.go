//go:build oracle

package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
)

// TestConformanceSuites runs the official suites as each protocol revision fixed them.
// baseline.yaml lists each check that may fail, with the reason. A failure that it
// does not list fails the test. So does an entry whose check passes; it must then be
// removed.
//
// The server suites run against the host's HTTP port. Behind the host, over stdio,
// runs a server with the tools that the suites call, in one era or the other. The
// client suites contain the servers; package driver connects the host to them and acts
// as the host's client in one era or the other.
func TestConformanceSuites(t *testing.T) {
	text, err := os.ReadFile("testdata/baseline.yaml")
	require.NoError(t, err)
	var baseline map[string]map[string]string // suite → scenario[:check] → reason
	require.NoError(t, yaml.Unmarshal(text, &baseline))
	var counts suiteCounts
	t.Cleanup(func() { counts.checkReadme(t) }) // after the suites, which run at the same time
	for _, side := range []struct {
		role, where string
		run         func(t *testing.T, revision, era string) outcome
	}{
		{"server", "before a %s server", serverSuite},
		{"client", "behind a %s client", clientSuite},
	} {
		for _, revision := range []string{"2025-11-25", "2026-07-28"} {
			for _, era := range []string{modern, legacy} {
				name := fmt.Sprintf(side.role+" "+revision+" "+side.where, era)
				expected := baseline[name]
				delete(baseline, name)
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					counts.set(name, side.run(t, revision, era).judge(t, expected))
				})
			}
		}
	}
	for _, era := range []string{modern, legacy} {
		name := "client extensions behind a " + era + " client"
		expected := baseline[name]
		delete(baseline, name)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			counts.set(name, extensionSuite(t, era).judge(t, expected))
		})
	}
	require.Empty(t, baseline, "baseline.yaml is about suites that are not run")
}

// outcome holds the results of a suite for the scenarios that the revision scores.
type outcome struct {
	ran      []string
	passed   map[string]int    // scenario → checks
	failures map[string]string // "scenario:check" → message
	output   map[string]string // scenario → output of the program under test, for the client suites
}

// judge compares the failures with the expected ones, each for one check or for a
// whole scenario. It returns the counts for the README.
func (r outcome) judge(t *testing.T, expected map[string]string) suiteCount {
	t.Helper()
	for entry, reason := range expected {
		require.Greater(t, len(reason), 10, "%s: say why it may fail", entry)
		scenario, _, _ := strings.Cut(entry, ":")
		require.Contains(t, r.ran, scenario, "baseline.yaml names a scenario that did not run")
	}
	stale := maps.Clone(expected)
	for _, check := range slices.Sorted(maps.Keys(r.failures)) {
		scenario, _, _ := strings.Cut(check, ":")
		_, whole := expected[scenario]
		_, one := expected[check]
		delete(stale, scenario)
		delete(stale, check)
		if !whole && !one {
			t.Errorf("%s fails and baseline.yaml does not expect it: %s\n%s", check, r.failures[check], r.output[scenario])
			delete(r.output, scenario) // printed once
		}
	}
	for _, entry := range slices.Sorted(maps.Keys(stale)) {
		t.Errorf("%s passes now: take it out of baseline.yaml", entry)
	}
	excused, passed, failed := 0, 0, 0
	for _, scenario := range r.ran {
		if _, whole := expected[scenario]; whole {
			excused++
			continue
		}
		passed += r.passed[scenario]
		for check := range r.failures {
			if strings.HasPrefix(check, scenario+":") {
				failed++
			}
		}
	}
	t.Logf("%d scenarios, %d of them excused: of the others %d checks pass, %d fail as expected", len(r.ran), excused, passed, failed)
	return r.count()
}

// suiteScript returns the path of the suite's program.
func suiteScript(t *testing.T) string {
	t.Helper()
	return filepath.Join(oracle.Module(t, "@modelcontextprotocol/conformance"), "dist", "index.js")
}

// scenarios returns the scenarios of a revision for a role, "Server" or "Client".
func scenarios(t *testing.T, role, revision string) (names []string) {
	t.Helper()
	list, err := exec.Command(oracle.Path(t, "node"), suiteScript(t), "list", "--requirements", revision).CombinedOutput()
	require.NoError(t, err, string(list))
	_, scored, _ := strings.Cut(string(list), role+" scenarios")
	scored, _, _ = strings.Cut(scored, "\n\n") // the list ends at the empty line
	for _, match := range regexp.MustCompile(`(?m)^  - (\S+)`).FindAllStringSubmatch(scored, -1) {
		names = append(names, match[1])
	}
	require.Greater(t, len(names), 15, "the suite's list has another form: %s", list)
	return names
}

// serverSuite runs the suite against a host with the suites' server.
func serverSuite(t *testing.T, revision, era string) outcome {
	t.Helper()
	dir := alone(t)
	config := filepath.Join(t.TempDir(), "config.json")
	upstream := map[string]any{"command": filepath.Join(dir, "suite-upstream"), "args": []string{"-era", era}}
	maps.Copy(upstream, patient)
	text, err := json.Marshal(map[string]any{"servers": map[string]any{"suite": upstream}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(config, text, 0o600))
	// The suite cannot send a token, and it sets Host and Origin itself.
	url := serveHost(t, filepath.Join(dir, "mcp-host"), fixtureRoot(t), "--no-token", "--config", config)
	return runSuite(t, "Server", revision, "server", "--url", url)
}

// clientSuite runs the suite's servers against a host that connects to them.
func clientSuite(t *testing.T, revision, era string) outcome {
	t.Helper()
	dir := alone(t)
	command := filepath.Join(dir, "driver") + " -host " + filepath.Join(dir, "mcp-host") + " -era " + era
	// All scenarios run concurrently, which takes long on a busy machine.
	return runSuite(t, "Client", revision, "client", "--command", command, "--timeout", "120000")
}

// runSuite runs the scenarios of a revision for a role and returns the results.
func runSuite(t *testing.T, role, revision string, args ...string) outcome {
	t.Helper()
	prefix := map[string]string{"Server": "server-"}[role]
	return runScenarios(t, scenarios(t, role, revision), prefix, append(args, "--requirements", revision)...)
}

// extensionSuite runs the scenarios of the extensions repository, which no revision
// scores.
func extensionSuite(t *testing.T, era string) outcome {
	t.Helper()
	dir := alone(t)
	command := filepath.Join(dir, "driver") + " -host " + filepath.Join(dir, "mcp-host") + " -era " + era
	return runScenarios(t, []string{
		"auth/client-credentials-basic", "auth/client-credentials-jwt", "auth/wif-jwt-bearer",
		"auth/enterprise-managed-authorization", "auth/dpop", "auth/dpop-nonce",
	}, "", "client", "--suite", "extensions", "--command", command, "--timeout", "120000")
}

// runScenarios runs the suite's program and reads its results for the scenarios.
func runScenarios(t *testing.T, names []string, prefix string, args ...string) outcome {
	t.Helper()
	r := outcome{ran: names, passed: map[string]int{}, failures: map[string]string{}, output: map[string]string{}}
	results := t.TempDir()
	args = append([]string{suiteScript(t)}, append(args, "-o", results)...)
	out, err := exec.Command(oracle.Path(t, "node"), args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &exit, string(out))
	}
	require.Contains(t, string(out), "SUMMARY ===", "the suite ran to its end")
	for _, scenario := range r.ran {
		dirs, err := filepath.Glob(filepath.Join(results, prefix+filepath.FromSlash(scenario)+"-20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]T*"))
		require.NoError(t, err)
		require.Len(t, dirs, 1, "one result of %s\n%s", scenario, out)
		r.read(t, scenario, dirs[0])
	}
	return r
}

// read reads the suite's results for one scenario.
func (r *outcome) read(t *testing.T, scenario, dir string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "checks.json"))
	require.NoError(t, err)
	for _, stream := range []string{"stdout.txt", "stderr.txt"} {
		if text, err := os.ReadFile(filepath.Join(dir, stream)); err == nil {
			r.output[scenario] += stream + ": " + string(text) + "\n"
		}
	}
	var checks []struct {
		ID, Status, ErrorMessage string
	}
	require.NoError(t, json.Unmarshal(raw, &checks), string(raw))
	for _, check := range checks {
		switch check.Status {
		case "SUCCESS":
			r.passed[scenario]++
		case "FAILURE":
			r.failures[scenario+":"+check.ID] = check.ErrorMessage
		}
	}
}
