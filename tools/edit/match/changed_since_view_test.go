package match_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
	"github.com/toolroom-mcp/toolroom/tools/edit/match"
	"github.com/toolroom-mcp/toolroom/tools/edit/splice"
)

// shown returns the record of a view of some lines of a version.
func shown(version string, spans ...[2]int) *state.Seen {
	lines := strings.SplitAfter(version, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	seen := &state.Seen{}
	seen.Index.Etag, seen.Index.Lines = textfile.EtagOf([]byte(version)), int64(len(lines))
	for _, span := range spans {
		r := state.Range{First: int64(span[0]), Last: int64(span[1])}
		for _, line := range lines[span[0]-1 : span[1]] {
			r.Sums = append(r.Sums, textfile.LineSum([]byte(line)))
		}
		seen.Ranges = append(seen.Ranges, r)
	}
	return seen
}

func TestFresh(t *testing.T) {
	var b strings.Builder
	for i := range 60 {
		fmt.Fprintf(&b, "entry number %d has a value\n", i+1)
	}
	version := b.String()
	etag := textfile.EtagOf([]byte(version)).String()
	line := func(n int) string { return fmt.Sprintf("entry number %d has a value\n", n) }
	all := shown(version, [2]int{1, 60})
	some := shown(version, [2]int{1, 20}, [2]int{30, 40})
	changedAt := func(n int) string { return strings.Replace(version, line(n), "something else has a value\n", 1) }
	inserted := strings.Replace(version, line(3), line(3)+"one line more\n", 1)

	for name, c := range map[string]struct {
		file, old string
		given     string
		seen      *state.Seen
		stale     bool
	}{
		"same version":                          {version, "number 5 ", etag, nil, false},
		"never seen":                            {version, "number 5 ", "", nil, false},
		"seen, unchanged":                       {version, "number 5 ", "", all, false},
		"changed elsewhere":                     {changedAt(9), "number 5 ", etag, all, false},
		"changed elsewhere, no etag":            {changedAt(9), "number 5 ", "", all, false},
		"lines moved":                           {inserted, "number 35 ", etag, all, false},
		"the line changed":                      {changedAt(9), "something else", etag, all, true},
		"the line changed, no etag":             {changedAt(9), "something else", "", all, true},
		"one of the lines changed":              {changedAt(9), "number 8 has a value\nsomething", "", all, true},
		"the first line changed":                {changedAt(1), "something", "", all, true},
		"the last line changed":                 {changedAt(60), "something", "", all, true},
		"a line between":                        {inserted, "one line more", "", all, true},
		"not shown, etag":                       {changedAt(9), "number 25 ", etag, some, true},
		"not shown, no etag":                    {changedAt(9), "number 25 ", "", some, false},
		"not shown and changed, no etag":        {changedAt(25), "something else", "", some, false},
		"shown and changed in the second range": {changedAt(35), "something else", "", some, true},
		"an etag of another version":            {version, "number 5 ", "0123456789abcdef", all, true},
		"an etag of another version, unknown":   {version, "number 5 ", "0123456789abcdef", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := splice.Open(t.Context(), []byte(c.file))
			require.NoError(t, err)
			v := match.Version{CurrentEtag: textfile.EtagOf(f.Raw), GivenEtag: c.given, Seen: c.seen}
			plan, err := match.Find(t.Context(), f, []match.Edit{{Old: c.old, New: "new"}}, match.Options{Changed: v.HasChanged()})
			require.NoError(t, err)
			err = match.CheckStale(t.Context(), f, plan.Places, v, match.Options{Name: "list"})
			if !c.stale {
				require.NoError(t, err)
				return
			}
			require.True(t, toolerr.Is(err, toolerr.Stale))
			require.ErrorContains(t, err, strings.SplitN(c.old, "\n", 2)[0], "it says what stands there now")
			require.ErrorContains(t, err, v.CurrentEtag.String())
		})
	}
}

// TestFreshOtherEncodings: checksums are computed over the file's bytes.
func TestFreshOtherEncodings(t *testing.T) {
	raw := []byte("\xff\xfea\x00\r\x00\n\x00b\x00\r\x00\n\x00c\x00\r\x00\n\x00")
	seen := &state.Seen{Ranges: []state.Range{{First: 2, Last: 2, Sums: []uint32{textfile.LineSum([]byte("b\x00\r\x00\n\x00"))}}}}
	f, err := splice.Open(t.Context(), raw)
	require.NoError(t, err)
	plan, err := match.Find(t.Context(), f, []match.Edit{{Old: "b", New: "x"}}, match.Options{})
	require.NoError(t, err)
	v := match.Version{CurrentEtag: textfile.EtagOf(raw), GivenEtag: seen.Index.Etag.Full(), Seen: seen}
	require.True(t, v.HasChanged())
	require.NoError(t, match.CheckStale(t.Context(), f, plan.Places, v, match.Options{}))
}
