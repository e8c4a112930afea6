package match_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/textdiff"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
	"github.com/toolroom-mcp/toolroom/tools/edit/match"
	"github.com/toolroom-mcp/toolroom/tools/edit/splice"
)

// FuzzFind: for any file and edit, a successful edit changes nothing outside of
// its places, a failed one has a specific code, and the size of the answer is
// bounded.
func FuzzFind(f *testing.F) {
	f.Add([]byte("a\r\nb\n\tc\n"), "a\nb", "x\ny", false)
	f.Add([]byte("\xff\xfea\x00\n\x00b\x00"), "     1\ta\n     2\tb", "q", false)
	f.Add([]byte("“x” – y…\n    z\n"), "\"x\" - y...\n  z", "w", true)
	f.Add([]byte("caf\xe9 \n\n}\n}\n"), "}\n}", "\n}", true)
	f.Fuzz(func(t *testing.T, raw []byte, old, newText string, all bool) {
		if !utf8.ValidString(old) || !utf8.ValidString(newText) {
			return // strings from JSON are always valid UTF-8
		}
		file, err := splice.Open(t.Context(), raw)
		if err != nil {
			require.True(t, toolerr.Is(err, toolerr.BinaryFile))
			return
		}
		plan, err := match.Find(t.Context(), file, []match.Edit{{Old: old, New: newText, All: all}}, match.Options{})
		if err != nil {
			require.Contains(t, []toolerr.Code{toolerr.NoMatch, toolerr.NotUnique, toolerr.NoChange, toolerr.InvalidParams}, toolerr.CodeOf(err))
			require.Less(t, len(err.Error()), 200_000+len(old))
			return
		}
		require.True(t, all || len(plan.Places) == 1)
		result, err := file.Apply(t.Context(), plan.Changes)
		if err != nil {
			require.True(t, toolerr.Is(err, toolerr.BadEncoding), "%v", err)
			return
		}
		checkOutside(t, file, plan, result)
		if utf8.Valid(raw) && file.Encoding == textfile.UTF8 { // UTF-16 may be valid by chance
			require.True(t, utf8.Valid(result.Bytes()), "valid text stays valid")
		}
	})
}

// checkOutside checks that changes are within places, and that the result is
// the file's bytes with only the changes replaced, in the file's encoding.
func checkOutside(t *testing.T, file *splice.File, plan *match.Plan, result *splice.Result) {
	t.Helper()
	inside := func(c textdiff.Change) bool {
		for _, p := range plan.Places {
			if p.Start <= c.Start && c.End <= p.End {
				return true
			}
		}
		return false
	}
	var want []byte
	at := 0
	for _, c := range plan.Changes {
		require.True(t, inside(c), "%v is in one of %v", c, plan.Places)
		start, ok := file.RawOffset(c.Start)
		require.True(t, ok)
		end, ok := file.RawOffset(c.End)
		require.True(t, ok)
		added := []byte(c.New)
		if file.Encoding != textfile.UTF8 && c.New != "" {
			var err error
			added, err = file.Encoding.Encode(c.New)
			require.NoError(t, err)
		}
		want = append(append(want, file.Raw[at:start]...), added...)
		at = end
	}
	want = append(want, file.Raw[at:]...)
	require.Equal(t, string(want), string(result.Bytes()))
}

// FuzzNumbers: line numbers put before a text's lines are removed again.
func FuzzNumbers(f *testing.F) {
	f.Add("a\n\tb\n\n  c", 7, byte(0))
	f.Add("x: 1\ny: 2", 99, byte(1))
	f.Fuzz(func(t *testing.T, text string, from int, kind byte) {
		if from < 1 || from > 1_000_000 || strings.TrimSpace(text) == "" || !utf8.ValidString(text) || strings.ContainsAny(text, "\r\x00") || len(text) > 10_000 {
			return
		}
		sep := []string{"\t", "→", ": ", " | "}[kind%4]
		file, err := splice.Open(t.Context(), []byte(text+"\nlast line of all\n"))
		if err != nil || file.Encoding != "utf-8" {
			return
		}
		numbered := prefixed(text, from, sep)
		if strings.Contains(string(file.Text), numbered) {
			return
		}
		plan, err := match.Find(t.Context(), file, []match.Edit{{Old: numbered, New: "new", All: true}}, match.Options{})
		require.NoError(t, err, "%q in %q", numbered, file.Text)
		require.LessOrEqual(t, plan.Found[0].Step, match.Trailing, "%q", numbered)
	})
}

func prefixed(text string, from int, sep string) string {
	var b strings.Builder
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(strings.Repeat(" ", i%3))
		b.WriteString(itoa(from + i))
		b.WriteString(sep + line)
	}
	return b.String()
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + string(rune('0'+n%10))
}
