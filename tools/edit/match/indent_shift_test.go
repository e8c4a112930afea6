package match_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
	"github.com/toolroom-mcp/toolroom/tools/edit/match"
)

// TestNewLinesAreIndented has new lines that replace lines without indentation,
// or with only a part of it.
func TestNewLinesAreIndented(t *testing.T) {
	for name, c := range map[string]struct{ file, old, new, want string }{
		"for an empty one":       {"if x:\n    a()\n\n    b()\n", "a()\n\nb()\n", "a()\nc()\nb()\n", "if x:\n    a()\n    c()\n    b()\n"},
		"for an empty one, tabs": {"\ta()\n\n\t\tb()\n", "a()\n\n    b()\n", "a()\n    c()\n    b()\n", "\ta()\n\t\tc()\n\t\tb()\n"},
		"for blanks":             {"if x:\n    a()\n    \n    b()\n", "a()\n\nb()\n", "a()\nc()\nb()\n", "if x:\n    a()\n    c()\n    b()\n"},
		"an empty one for text":  {"if x:\n    a()\n    c()\n    b()\n", "a()\nc()\nb()\n", "a()\n\nb()\n", "if x:\n    a()\n\n    b()\n"},
		"an empty one, deeper":   {"\ta()\n\t\tc()\n\t\tb()\n", "  a()\n    c()\n    b()\n", "  a()\n\n    b()\n", "\ta()\n\n\t\tb()\n"},
		"first line taken away":  {"\ta {\n\t\tb()\n", "a {\n    b()", "    b()", "\t\tb()\n"},
		"first line goes deeper": {"\ta()\n\t\tb()\n", "a()\n    b()", "    a()\n    b()", "\t\ta()\n\t\tb()\n"},
		"first line tells it":    {"a:\n    - b\n      c\n", "- b\n    c\n", "- b\nd\n    c\n", "a:\n    - b\n    d\n      c\n"},
		"tab for the file's":     {"if x:\n    a()\n    b()\n", "a()\nb()\n", "a()\nb()\n\tc()\n", "if x:\n    a()\n    b()\n        c()\n"},
		"blanks for its tabs":    {"if x {\n\ta()\n\tb()\n}\n", "a()\nb()\n", "a()\nb()\n    c()\n", "if x {\n\ta()\n\tb()\n\t\tc()\n}\n"},
		"aligned behind tabs":    {"{\n\t/* a\n\t * b\n\t */\n}\n", "/* a\n * b\n */\n", "/* a\n * c\n * d\n */\n", "{\n\t/* a\n\t * c\n\t * d\n\t */\n}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, plan, err := edited(t, c.file, match.Options{}, match.Edit{Old: c.old, New: c.new})
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			require.Equal(t, match.Indentation, plan.Found[0].Step, plan.Found[0].Step.String())
		})
	}
}

// TestBareNumbers: lines that consist of a number are not pasted line numbers.
func TestBareNumbers(t *testing.T) {
	got, _, err := edited(t, "x\n    its\n    3\n", match.Options{}, match.Edit{Old: "  its\n  3", New: "  its\n  new\n  3"})
	require.NoError(t, err)
	require.Equal(t, "x\n    its\n    new\n    3\n", got)

	got, _, err = edited(t, "x\n3\n", match.Options{}, match.Edit{Old: "     3\t3", New: "3\n4"})
	require.NoError(t, err)
	require.Equal(t, "x\n3\n4\n", got)
	got, _, err = edited(t, "a\n\nb\n", match.Options{}, match.Edit{Old: "1\ta\n2\n3\tb", New: "1\tc\n2\n3\tb"})
	require.NoError(t, err)
	require.Equal(t, "c\n\nb\n", got)

	for name, c := range map[string]struct{ file, old, new string }{
		"one": {"total its\nfoo\n", "its\n3", "other\n4"},
		"two": {"total its\n\nfoo\n", "its\n3\n4", "other\n4"},
	} {
		_, _, err = edited(t, c.file, match.Options{}, match.Edit{Old: c.old, New: c.new})
		require.Error(t, err, name)
		require.Equal(t, toolerr.NoMatch, toolerr.CodeOf(err), name)
	}
}

// TestNumbersBeginLines has text that begins like a pasted line number.
func TestNumbersBeginLines(t *testing.T) {
	for name, c := range map[string]struct{ file, old, new string }{
		"a word":    {"a 2-column layout\n", "3-column layout", "3-column grid"},
		"a key":     {"x = {500: 'none'}\n", "404: 'none'", "404: 'some'"},
		"two lines": {"map 500: a\nb\n", "404: a\n405: b\n", "404: c\n405: b\n"},
		"blanks":    {"x 500: a  \nb\n", "404: a\n405: b\n", "404: c\n405: b\n"},
	} {
		got, _, err := edited(t, c.file, match.Options{}, match.Edit{Old: c.old, New: c.new})
		require.Error(t, err, "%s: %q", name, got)
		require.Equal(t, toolerr.NoMatch, toolerr.CodeOf(err), name)
	}
	got, _, err := edited(t, "x\n\tfoo(a)\n", match.Options{}, match.Edit{Old: "7: foo(a)", New: "7: foo(b)"})
	require.NoError(t, err)
	require.Equal(t, "x\n\tfoo(b)\n", got)
}
