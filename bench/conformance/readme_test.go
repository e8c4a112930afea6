//go:build oracle

package conformance

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// suiteCount is what the README says of one run of a suite.
type suiteCount struct {
	scenarios, passedScenarios int // a scenario passes if none of its checks fails
	auth, passedAuth           int // scenarios of OAuth, which are among them
	checks, passedChecks       int
}

// count counts the results.
func (r outcome) count() (c suiteCount) {
	failed := map[string]int{}
	for check := range r.failures {
		scenario, _, _ := strings.Cut(check, ":")
		failed[scenario]++
	}
	for _, scenario := range r.ran {
		c.scenarios++
		c.passedChecks += r.passed[scenario]
		c.checks += r.passed[scenario] + failed[scenario]
		passes := failed[scenario] == 0 && r.passed[scenario] > 0
		if passes {
			c.passedScenarios++
		}
		if strings.HasPrefix(scenario, "auth/") {
			c.auth++
			if passes {
				c.passedAuth++
			}
		}
	}
	return c
}

// suiteCounts holds the counts of the suites by their names. It is safe for concurrent use.
type suiteCounts struct {
	mu sync.Mutex
	of map[string]suiteCount
}

func (s *suiteCounts) set(name string, c suiteCount) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[string]suiteCount{}
	}
	s.of[name] = c
}

// The part of bench/README.md that the suites generate.
const (
	countsBegin = "<!-- begin: counts of the suites (written by make conformance UPDATE=1) -->\n"
	countsEnd   = "<!-- end: counts of the suites -->\n"
)

// checkReadme compares the counts with those in bench/README.md, and replaces these with
// UPDATE=1. It does nothing if a suite failed, or did not run because -run selected others.
func (s *suiteCounts) checkReadme(t *testing.T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.Failed() || len(s.of) < 10 {
		t.Logf("the counts in bench/README.md are not compared: %d of 10 suites ran", len(s.of))
		return
	}
	const file = "../README.md"
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), countsBegin)
	require.True(t, ok)
	written, after, ok := strings.Cut(rest, countsEnd)
	require.True(t, ok)
	now := s.table()
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile(file, []byte(before+countsBegin+now+countsEnd+after), 0o644))
		return
	}
	require.Equal(t, now, written, "bench/README.md is stale: run make conformance UPDATE=1")
}

// table returns the counts as Markdown.
func (s *suiteCounts) table() string {
	var b strings.Builder
	b.WriteString(`
| suite | server checks passed through the host | the same, with a server of 2025-11-25 behind the host | client scenarios passed by the host | OAuth scenarios among these |
| --- | ---: | ---: | ---: | ---: |
`)
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		now, before := s.of["server "+revision+" before a modern server"], s.of["server "+revision+" before a legacy server"]
		client := fewest(s.of["client "+revision+" behind a modern client"], s.of["client "+revision+" behind a legacy client"])
		fmt.Fprintf(&b, "| %s | %d of %d checks | %d of %d checks | %d of %d scenarios | %d of %d |\n", revision,
			now.passedChecks, now.checks, before.passedChecks, before.checks,
			client.passedScenarios, client.scenarios, client.passedAuth, client.auth)
	}
	client := fewest(s.of["client extensions behind a modern client"], s.of["client extensions behind a legacy client"])
	fmt.Fprintf(&b, "| extensions | | | %d of %d scenarios | %d of %d |\n\n", client.passedScenarios, client.scenarios, client.passedAuth, client.auth)
	return b.String()
}

// fewest returns the count with fewer passed scenarios: the README does not tell the eras
// of the client apart.
func fewest(a, b suiteCount) suiteCount {
	if b.passedScenarios < a.passedScenarios {
		return b
	}
	return a
}
