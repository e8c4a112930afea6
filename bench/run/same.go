//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// comparison is a differential test with more cases than CI has time for.
type comparison struct {
	name, test, pkg string
	cases, seed     int
}

var comparisons = []comparison{
	{"mcp-grep, trees and flags", "TestLikeRipgrep", "./tools/grep", 20_000, 100_000},
	{"the search engine, patterns and texts", "TestSameAsRipgrep", "./tools/grep/search", 100_000, 200_000},
}

// measureSame gives ripgrep and grep the same random queries. A difference is an
// error, so a reported number means that all were equal.
func measureSame(b *bench) ([]table, error) {
	t := table{
		title: "The tests below make random searches with grep and with ripgrep 15. Files, lines, context and counts were the same in each case. One run of each test.",
		unit:  "cases", target: "20,000 cases without a difference",
	}
	for _, c := range comparisons {
		got, said, err := c.run()
		if err != nil {
			return nil, err
		}
		t.series = append(t.series, series{
			subject: subject{name: c.name, ours: true, command: fmt.Sprintf("GREP_CASES=%d GREP_SEED=%d go test -tags oracle -run %s %s", c.cases, c.seed, c.test, c.pkg)},
			samples: []sample{got},
		})
		t.notes = append(t.notes, c.test+": "+said)
	}
	return []table{t}, nil
}

// summary matches the line in which such a test prints its number of cases.
var summary = regexp.MustCompile(`(?m)^\s+\w+_test\.go:\d+: (.*\b(?:cases|pairs compared)\b.*)$`)

func (c comparison) run() (sample, string, error) {
	cmd := exec.Command("go", "test", "-tags", "oracle", "-count=1", "-v", "-timeout=30m", "-run", "^"+c.test+"$", c.pkg)
	cmd.Env = append(os.Environ(), "GREP_CASES="+strconv.Itoa(c.cases), "GREP_SEED="+strconv.Itoa(c.seed))
	out, err := cmd.CombinedOutput()
	text := string(out)
	said := summary.FindStringSubmatch(text)
	switch {
	case err != nil:
		return sample{}, "", fmt.Errorf("%s: %w\n%s", c.test, err, text[max(0, len(text)-2000):])
	case said == nil:
		return sample{}, "", errors.New(c.test + " does not say how many cases it had")
	}
	got := sample{value: float64(c.cases)}
	if state := cmd.ProcessState; state != nil {
		got.cpu = (state.UserTime() + state.SystemTime()).Round(time.Millisecond)
	}
	return got, strings.TrimSpace(said[1]), nil
}
