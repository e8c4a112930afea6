package match_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
	"github.com/toolroom-mcp/toolroom/tools/edit/match"
)

// TestNewTextIndentedAsTheFile sends an old text with other indentation than
// the file's. A new text with the file's indentation is not shifted; one with
// the old text's is.
func TestNewTextIndentedAsTheFile(t *testing.T) {
	const nested = "f {\n\tif x {\n\t\ty()\n\t}\n}\n"
	const class = "class A:\n    def f():\n        a()\n        b()\n\ndef g():\n    pass\n"
	for name, c := range map[string]struct{ file, old, new, want string }{
		"one line":                   {class, "a()\n        b()", "        a(1)\n        b()", "class A:\n    def f():\n        a(1)\n        b()\n\ndef g():\n    pass\n"},
		"one line, shifted":          {"x\n\t\ty()\n", "  y()", "  z()", "x\n\t\tz()\n"},
		"one line, tabs":             {"x\n\t\ty()\n", "    y()", "\t\tz()", "x\n\t\tz()\n"},
		"one line, blanks for tabs":  {"x\n        y()\n", "\t\ty()", "        z()", "x\n        z()\n"},
		"less indented in the file":  {"a:\n  b()\n", "      b()", "  c()", "a:\n  c()\n"},
		"at the margin in the file":  {"a()\nb()\n", "    a()\n    b()", "a(1)\nb()", "a(1)\nb()\n"},
		"two lines":                  {class, "def f():\n    a()\n    b()\n", "    def f():\n        a()\n        c()\n", "class A:\n    def f():\n        a()\n        c()\n\ndef g():\n    pass\n"},
		"all lines changed":          {class, "def f():\n    a()\n    b()\n", "    def h():\n        c()\n", "class A:\n    def h():\n        c()\n\ndef g():\n    pass\n"},
		"a line more at the margin":  {class, "    a()\n    b()\n", "        return a()\n\ndef h():\n", "class A:\n    def f():\n        return a()\n\ndef h():\n\ndef g():\n    pass\n"},
		"wrapped":                    {nested, "  y()\n", "\t\tif z {\n\t\t\ty()\n\t\t}\n", "f {\n\tif x {\n\t\tif z {\n\t\t\ty()\n\t\t}\n\t}\n}\n"},
		"wrapped, shifted":           {class, "a()\nb()\n", "if c:\n    a()\n    b()\n", "class A:\n    def f():\n        if c:\n            a()\n            b()\n\ndef g():\n    pass\n"},
		"wrapped by as much":         {"if x:\n    a()\n    b()\n", "a()\nb()\n", "if c:\n    a()\n    b()\n", "if x:\n    if c:\n        a()\n        b()\n"},
		"before a brace, shifted":    {"f {\n    g {\n    }\n}\n", "g {\n}\n", "g {\n    h {\n    }\n}\n", "f {\n    g {\n        h {\n        }\n    }\n}\n"},
		"braces":                     {nested, "if x {\n    y()\n}", "\tif x {\n\t\tif z {\n\t\t\ty()\n\t\t}\n\t}", "f {\n\tif x {\n\t\tif z {\n\t\t\ty()\n\t\t}\n\t}\n}\n"},
		"tabs for the new line only": {nested, "    if x {\n        y()\n    }", "    if x {\n        y()\n\t\tz()\n    }", "f {\n\tif x {\n\t\ty()\n\t\tz()\n\t}\n}\n"},
		"blanks for a new line":      {"f {\n    if x {\n        y()\n    }\n}\n", "\tif x {\n\t\ty()\n\t}", "\tif x {\n\t\ty()\n        z()\n\t}", "f {\n    if x {\n        y()\n        z()\n    }\n}\n"},
		"other unit":                 {"a:\n    b:\n        c: 1\n", "a:\n  b:\n    c: 1", "a:\n    b:\n        c: 2\n        d: 3", "a:\n    b:\n        c: 2\n        d: 3\n"},
		"other unit, changed":        {"a:\n    b: 1\n", "a:\n  b: 1", "a:\n    c: 2", "a:\n    c: 2\n"},
		"first line without":         {"x\n        if a:\n            b()\n", "if a:\n    b()", "if a:\n            c()\n            d()", "x\n        if a:\n            c()\n            d()\n"},
		"first without, else":        {"x\n        if a:\n            b()\n", "if a:\n    b()", "if a:\n            b()\n        else:\n            c()", "x\n        if a:\n            b()\n        else:\n            c()\n"},
		"first without, braces":      {nested, "if x {\n\ty()", "if x {\n\t\ty()\n\t} else {\n\t\tz()", "f {\n\tif x {\n\t\ty()\n\t} else {\n\t\tz()\n\t}\n}\n"},
		"first without, put inside":  {"f:\n    if a:\n        b()\n", "if a:\n    b()", "if a:\n    if q:\n        b()", "f:\n    if a:\n        if q:\n            b()\n"},
		"first line changed":         {nested, "if x {\n  y()\n}", "\tif z {\n\t\ty()\n\t}", "f {\n\tif z {\n\t\ty()\n\t}\n}\n"},
		"blank lines":                {"if x:\n    a()\n\n    b()\n", "a()\n\nb()\n", "    a(1)\n\n    b()\n", "if x:\n    a(1)\n\n    b()\n"},
		"line endings":               {"x\r\n\ta()\r\n\tb()\r\n", "a()\nb()\n", "\ta()\n\tc()\n\td()\n", "x\r\n\ta()\r\n\tc()\r\n\td()\r\n"},
		"blanks at the end stay":     {"x\n\ta()  \n\tb()  \n", "a()\nb()\n", "\ta()\n\tc()\n", "x\n\ta()  \n\tc()\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, plan, err := edited(t, c.file, match.Options{}, match.Edit{Old: c.old, New: c.new})
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			if plan.Found[0].Step != match.Indentation {
				t.Logf("found by %s", plan.Found[0].Step)
			}
		})
	}
	for name, c := range map[string]struct{ file, old, new, want string }{
		"in a line":                    {"x\n\t\ty()\n", "y()", "\t\tz()", "x\n\t\tz()\n"},
		"a part of the indentation":    {"x\n    y()\n", "  y()", "    z()", "x\n    z()\n"},
		"more lines":                   {"x\n    y()\n", "y()", "    z()\n    w()", "x\n    z()\n    w()\n"},
		"behind a blank end":           {"x\n    y() \n    z()\n", "y()\n    z()", "    y(1)\n    z()", "x\n    y(1)\n    z()\n"},
		"indented further":             {"x\n    y()\n", "y()", "    y()", "x\n        y()\n"},
		"indented further, more lines": {"x\n    y()\n    z()\n", "y()\n    z()", "    y()\n        z()", "x\n        y()\n        z()\n"},
		"other indentation":            {"x\n    y()\n", "y()", "  z()", "x\n      z()\n"},
		"behind text":                  {"x  y()\n", "y()", "  z()", "x    z()\n"},
		"at the margin":                {"y()\n", "y()", "  z()", "  z()\n"},
	} {
		t.Run("exact, "+name, func(t *testing.T) {
			got, _, err := edited(t, c.file, match.Options{}, match.Edit{Old: c.old, New: c.new})
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
	got, _, err := edited(t, "x\n    y()\n", match.Options{Strict: true}, match.Edit{Old: "y()", New: "    z()"})
	require.NoError(t, err)
	require.Equal(t, "x\n        z()\n", got, "strict is literal")

	// The file already equals the new text: nothing is shifted to make a
	// difference.
	_, _, err = edited(t, "x\n\ta()\n", match.Options{}, match.Edit{Old: "  a()", New: "\ta()"})
	require.Equal(t, toolerr.NoChange, toolerr.CodeOf(err))

	_, plan, err := edited(t, "x\n\ta()\n", match.Options{}, match.Edit{Old: "  a()", New: "\tb()"})
	require.NoError(t, err)
	require.True(t, plan.Found[0].NotShifted)
	_, plan, err = edited(t, "x\n\ta()\n", match.Options{}, match.Edit{Old: "  a()", New: "  b()"})
	require.NoError(t, err)
	require.False(t, plan.Found[0].NotShifted)
}

// codeLine is a line of a block, with its depth.
type codeLine struct {
	depth int
	text  string
}

// printed returns lines with an indentation.
func printed(lines []codeLine, base int, unit string) string {
	var out strings.Builder
	for _, l := range lines {
		if l.text != "" {
			out.WriteString(strings.Repeat(unit, base+l.depth))
		}
		out.WriteString(l.text + "\n")
	}
	return out.String()
}

// changedBlock returns a block with lines changed, added, removed or wrapped in
// another block, like models do: its first line keeps its depth.
func changedBlock(rng *rand.Rand, block []codeLine) []codeLine {
	var out []codeLine
	wrap := rng.IntN(4) == 0
	if wrap {
		out = append(out, codeLine{0, "wrap {"})
	}
	change := rng.IntN(len(block))
	for i, l := range block {
		if wrap {
			l.depth++
		}
		switch {
		case i == change && rng.IntN(2) == 0:
			l.text = fmt.Sprintf("changed %d", i)
		case i == change && i > 0 && rng.IntN(2) == 0:
			continue
		case i == change:
			out = append(out, l)
			l = codeLine{l.depth, "added"}
		}
		out = append(out, l)
	}
	if wrap {
		out = append(out, codeLine{0, "}"})
	}
	return out
}

// TestBothIndentationsLeadToOneFile changes a block like a model that sees it
// with other indentation. The file is the same whether the new text has that
// indentation or the file's.
func TestBothIndentationsLeadToOneFile(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 2))
	units := []string{"\t", "  ", "    "}
	done := 0
	for range 20_000 {
		unit, base := units[rng.IntN(3)], rng.IntN(4)
		block := []codeLine{{0, "begin 0"}}
		for i := range rng.IntN(6) {
			depth := rng.IntN(min(block[len(block)-1].depth+2, 4))
			text := fmt.Sprintf("line %d", i+1)
			if rng.IntN(5) == 0 {
				text = ""
			}
			block = append(block, codeLine{depth, text})
		}
		if block[len(block)-1].text == "" {
			block = append(block, codeLine{0, "end"})
		}
		otherUnit, otherBase := units[rng.IntN(3)], rng.IntN(4)
		before, after := "top {\n", "}\n"
		file := before + printed(block, base, unit) + after
		old := printed(block, otherBase, otherUnit)
		changed := changedBlock(rng, block)
		want := before + printed(changed, base, unit) + after
		told := unit == otherUnit || slices.ContainsFunc(block, func(l codeLine) bool { return l.depth == 1 && l.text != "" })
		if want == file || strings.Contains(file, old) || !told { // deeper lines alone do not give the unit
			continue
		}
		done++
		all := []string{printed(changed, base, unit)}
		if unit == otherUnit { // otherwise a single line does not give the unit of the others
			all = append(all, printed(changed, otherBase, otherUnit))
		}
		for _, newText := range all {
			got, _, err := edited(t, file, match.Options{}, match.Edit{Old: old, New: newText})
			require.NoError(t, err, "file %q old %q new %q", file, old, newText)
			require.Equal(t, want, got, "file %q old %q new %q", file, old, newText)
		}
	}
	require.Greater(t, done, 5000)
}
