//go:build linux

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTextOfTakenBack: the answer tells removed files from restored ones, says
// that a change may be the user's, and where its copy is.
func TestTextOfTakenBack(t *testing.T) {
	for _, level := range confinedLevels(t) {
		p := newTrapped(t)
		s := p.serve("--sandbox", level)
		s.bash("true")
		r := s.bash("echo x > .envrc; git config core.fsmonitor ./x.sh")
		require.Contains(t, r.Text, "protected, so removed: .envrc · ", level)
		require.Contains(t, r.Text, "protected, so put back as it was: .git/config (", level)
		require.Contains(t, r.Text, "may include changes that the user made in the meantime")
		dir := regexp.MustCompile(`copies are in (\S+), listed`).FindStringSubmatch(r.Text)
		require.NotNil(t, dir, r.Text)
		index, err := os.ReadFile(filepath.Join(dir[1], "index"))
		require.NoError(t, err)
		require.Contains(t, string(index), filepath.Join(p.root, ".envrc"))

		r = s.bash("for i in $(seq 300); do mkdir -p d$i; done")
		r = s.bash("for i in $(seq 300); do echo x > d$i/.envrc; done")
		require.Regexp(t, `removed: d1/\.envrc, [^…]* and 2\d\d more \(all 300 are in _meta\.taken_back; copies`, r.Text)
		require.Len(t, r.Meta["taken_back"], 300)

		// What a checkout writes: the text says how the user gets it back.
		p.user("git checkout -q -b other; echo mine > .envrc; git add .envrc; git commit -qm e; git checkout -q -")
		r = s.bash("git checkout -q other")
		require.Contains(t, r.Text, "removed: .envrc", level)
		require.Contains(t, r.Text, "git checkout -- FILE", level)
		p.user("git checkout -- .envrc; grep -q mine .envrc; git diff --exit-code")
	}
}

// TestTextOfAJobsTakenBack: the answer about an ended job names the files, too.
func TestTextOfAJobsTakenBack(t *testing.T) {
	for _, level := range confinedLevels(t) {
		p := newTrapped(t)
		s := p.serve("--sandbox", level)
		s.bash("true")
		id := text(t, s.bash("echo x > .envrc; sleep 0.3", "run_in_background", true), "job_id")
		var last string
		within(t, "the job ends", func() bool {
			r := s.job("action", "poll", "job_id", id, "wait_ms", 5000)
			last = r.Text
			return r.Meta["running"] != true
		})
		require.Contains(t, last, "protected, so removed: .envrc", level)
	}
}

func TestListedPaths(t *testing.T) {
	long := strings.Repeat("x", 200)
	for _, c := range []struct {
		paths   []string
		text    string
		omitted int
	}{
		{[]string{"a", "b"}, "a, b", 0},
		{[]string{long, long, "c"}, long + " and 2 more", 2},
		{[]string{long + long, "c"}, long + long[:100] + "… and 1 more", 1},
	} {
		text, omitted := listedPaths(c.paths, 300)
		require.Equal(t, c.text, text)
		require.Equal(t, c.omitted, omitted)
	}
}
