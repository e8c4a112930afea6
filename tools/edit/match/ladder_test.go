package match_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
	"github.com/toolroom-mcp/toolroom/tools/edit/match"
	"github.com/toolroom-mcp/toolroom/tools/edit/splice"
)

// edited makes one edit.
func edited(t testing.TB, raw string, o match.Options, edits ...match.Edit) (string, *match.Plan, error) {
	t.Helper()
	f, err := splice.Open(t.Context(), []byte(raw))
	require.NoError(t, err)
	plan, err := match.Find(t.Context(), f, edits, o)
	if err != nil {
		return raw, nil, err
	}
	result, err := f.Apply(t.Context(), plan.Changes)
	if err != nil {
		return raw, nil, err
	}
	require.Len(t, result.Bytes(), result.Size())
	return string(result.Bytes()), plan, nil
}

func TestLadder(t *testing.T) {
	for name, c := range map[string]struct {
		file, old, new string
		step           match.Step
		want           string
	}{
		"exact":                      {"a b c\n", "b", "x", match.Exact, "a x c\n"},
		"exact over lines":           {"a\nb\nc\n", "a\nb\n", "x\n", match.Exact, "x\nc\n"},
		"deleted":                    {"a\nb\nc\n", "b\n", "", match.Exact, "a\nc\n"},
		"crlf":                       {"a\r\nb\r\nc\r\n", "a\nb", "a\nx\ny", match.Endings, "a\r\nx\r\ny\r\nc\r\n"},
		"crlf in lf file":            {"a\nb\nc\n", "a\r\nb", "a\r\nx\r\ny", match.Endings, "a\nx\ny\nc\n"},
		"new lines in crlf":          {"a\r\nb\r\n", "b", "x\ny", match.Exact, "a\r\nx\r\ny\r\n"},
		"mixed keeps":                {"a\r\nb\nc\r\nd\n", "a\nb\nc", "a\nx\nc", match.Endings, "a\r\nx\nc\r\nd\n"},
		"mixed inserts as before":    {"a\r\nb\nc\r\nd\n", "b\nc", "b\nx\nc", match.Exact, "a\r\nb\nx\nc\r\nd\n"},
		"not between cr and lf":      {"a\r\nb\r\n", "\nb", "\nx", match.Endings, "a\r\nx\r\n"},
		"nothing between cr and lf":  {"a\r\nb\r\n", "\nb", "Z\nb", match.Endings, "aZ\r\nb\r\n"},
		"cr file":                    {"a\rb\rc\r", "a\nb", "a\nx\ny", match.Endings, "a\rx\ry\rc\r"},
		"no final newline":           {"a\nb", "a\nb\n", "a\nx\n", match.Endings, "a\nx"},
		"no final newline, one line": {"a", "a\n", "x\ny\n", match.Endings, "x\ny"},
		"bom":                        {"\xef\xbb\xbfa\nb\n", "a\n", "x\n", match.Exact, "\xef\xbb\xbfx\nb\n"},
		"view's numbers":             {"x\nfunc a() {\n\treturn\n}\n", "     2\tfunc a() {\n     3\t\treturn", "     2\tfunc b() {\n     3\t\treturn 1", match.Numbers, "x\nfunc b() {\n\treturn 1\n}\n"},
		"grep's numbers":             {"x\n  foo: 1\n  bar: 2\n", "  2:   foo: 1\n  3-   bar: 2", "  foo: 3\n  bar: 2", match.Numbers, "x\n  foo: 3\n  bar: 2\n"},
		"first number lost":          {"x\ny\nz\n", "x\n     2\ty", "x\n     2\tq", match.Numbers, "x\nq\nz\n"},
		"one number":                 {"alpha\nbeta\n", "  2: beta", "gamma", match.Numbers, "alpha\ngamma\n"},
		"numbers and crlf":           {"a\r\nb\r\n", "1\ta\n2\tb", "1\ta\n2\tx", match.Numbers, "a\r\nx\r\n"},
		"numbers in the file":        {"1: a\n2: b\n", "1: a", "1: x", match.Exact, "1: x\n2: b\n"},
		"trailing blanks kept":       {"a  \nb\t\nc\n", "a\nb\nc", "a\nb\nx", match.Trailing, "a  \nb\t\nx\n"},
		"trailing blanks changed":    {"a  \nb  \nc\n", "a\nb\nc", "a\nx\nc", match.Trailing, "a  \nx\nc\n"},
		"trailing blanks given":      {"a  \nb  \nc\n", "a\nb\nc", "a\nx \nc", match.Trailing, "a  \nx \nc\n"},
		"trailing blanks inserted":   {"a  \nb\t\r\nc\n", "a\nb\nc", "a\nn\nb\nc", match.Trailing, "a  \nn\nb\t\r\nc\n"},
		"trailing blanks last line":  {"a  \nb  \nc\n", "a\nb\n", "a\nx\n", match.Trailing, "a  \nx\nc\n"},
		"trailing blanks, shifted":   {"\ta  \n\tb  \n", "a\nb\n", "a\nx\n", match.Indentation, "\ta  \n\tx\n"},
		"trailing blanks, line more": {"a  \nb  \nc\n", "a\nb", "a\nb\nx", match.Trailing, "a  \nb  \nx\nc\n"},
		"trailing blanks, last":      {"a  \r\nb\t\r\nc\r\n", "a\nb", "a\nx", match.Trailing, "a  \r\nx\r\nc\r\n"},
		"trailing blanks, less":      {"a  \nb  \nc\n", "a\nb", "a", match.Trailing, "a  \nc\n"},
		"trailing blanks, indented":  {"\ta  \n\tb  \n", "a\nb", "a\nx", match.Indentation, "\ta  \n\tx\n"},
		"trailing blanks, as given":  {"\ta  \n\tb  \n", "a\nb", "\ta\n\tb\n\tx", match.Indentation, "\ta  \n\tb  \n\tx\n"},
		"trailing blanks, no ending": {"a  \nb  ", "a\nb", "a\nx", match.Trailing, "a  \nx"},
		"trailing blanks, next":      {"a\nb  \na\nb  \n\n", "  \na\nb", "  \na\nx", match.Exact, "a\nb  \na\nx  \n\n"},
		"trailing blanks of model":   {"a\nb\nc\n", "a  \nb \nc", "a\nx\nc", match.Trailing, "a\nx\nc\n"},
		"blanks on an empty line":    {"a\n    \nb\n", "a\n\nb", "a\n\nx", match.Trailing, "a\n    \nx\n"},
		"one line, trailing":         {"ab\nc\n", "ab  ", "x", match.Trailing, "x\nc\n"},
		"curly quotes":               {"say(“hi”)\n", `say("hi")`, `say("hi there")`, match.Punctuation, "say(“hi there”)\n"},
		"curly quotes of model":      {"say('hi')\n", "say(‘hi’)", "say(‘ho’)", match.Punctuation, "say('ho')\n"},
		"dash and nbsp":              {"a\u00a0– b\nnext\n", "a - b\nnext", "a - c\nnext", match.Punctuation, "a\u00a0– c\nnext\n"},
		"ellipsis":                   {"wait… now\n", "wait... now", "wait... later", match.Punctuation, "wait… later\n"},
		"tabs for blanks":            {"f {\n\tif x {\n\t\ty()\n\t}\n}\n", "    if x {\n        y()\n    }", "    if x {\n        y()\n        z()\n            w()\n    }", match.Indentation, "f {\n\tif x {\n\t\ty()\n\t\tz()\n\t\t\tw()\n\t}\n}\n"},
		"blanks for tabs":            {"f {\n    if x {\n        y()\n    }\n}\n", "\tif x {\n\t\ty()\n\t}", "\tif x {\n\t\tz()\n\t}", match.Indentation, "f {\n    if x {\n        z()\n    }\n}\n"},
		"more indented":              {"class A:\n    def f():\n        return 1\n", "def f():\n    return 1", "def f():\n    x = 2\n    return x", match.Indentation, "class A:\n    def f():\n        x = 2\n        return x\n"},
		"less indented":              {"if a:\n  b\n", "    if a:\n      b", "    if a:\n      c\n      d", match.Indentation, "if a:\n  c\n  d\n"},
		"first line's indent lost":   {"f {\n\tif x {\n\t\ty()\n\t}\n}\n", "if x {\n        y()\n    }", "if x {\n        z()\n    }", match.Indentation, "f {\n\tif x {\n\t\tz()\n\t}\n}\n"},
		"one line, other indent":     {"f {\n\t\ty()\n}\n", "        y()", "        z()\n            w()", match.Indentation, "f {\n\t\tz()\n\t\t\tw()\n}\n"},
		"two blanks for four":        {"a:\n    b:\n        c: 1\n", "a:\n  b:\n    c: 1", "a:\n  b:\n    c: 2\n    d: 3", match.Indentation, "a:\n    b:\n        c: 2\n        d: 3\n"},
		"empty line between":         {"\ta\n\n\tb\n", "a\n\nb", "a\n\nc\n\nd", match.Indentation, "\ta\n\n\tc\n\n\td\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, plan, err := edited(t, c.file, match.Options{}, match.Edit{Old: c.old, New: c.new})
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			require.Equal(t, c.step, plan.Found[0].Step, plan.Found[0].Step.String())
		})
	}
}

func TestRefused(t *testing.T) {
	for name, c := range map[string]struct {
		file, old, new string
		code           toolerr.Code
	}{
		"nothing":              {"a\n", "b", "c", toolerr.NoMatch},
		"twice":                {"a\na\n", "a", "c", toolerr.NotUnique},
		"overlapping":          {"aaa\n", "aa", "c", toolerr.NotUnique},
		"twice, crlf":          {"a\r\nb\r\na\r\nb\r\n", "a\nb", "c", toolerr.NotUnique},
		"twice, indentation":   {"\ta\n\tb\n\t\ta\n\t\tb\n", "a\n  b\n", "c", toolerr.NotUnique},
		"case":                 {"Hello\n", "hello", "c", toolerr.NoMatch},
		"similar":              {"func long(name string) error {\n", "func long(name string) errors {", "c", toolerr.NoMatch},
		"uneven indentation":   {"a\n\tb\n\t\t\tc\n", "  a\n    b\n      c", "x", toolerr.NoMatch},
		"only line endings":    {"a\r\nb\n", "a\r\n", "a\n", toolerr.NoChange},
		"same":                 {"a\n", "a", "a", toolerr.NoChange},
		"empty":                {"a\n", "", "x", toolerr.InvalidParams},
		"blank start is blank": {"x\nb\n", "  \nb", "c", toolerr.NoMatch},
		"an ending at the end": {"abc", "\n", "x", toolerr.NoMatch},
		"too little to remove": {"a:\n  b\n", "      a:\n        b", "  x\n        b", toolerr.NoMatch},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := edited(t, c.file, match.Options{}, match.Edit{Old: c.old, New: c.new})
			require.Error(t, err)
			require.Equal(t, c.code, toolerr.CodeOf(err), err.Error())
		})
	}
	_, _, err := edited(t, "a  \nb\n", match.Options{Strict: true}, match.Edit{Old: "a\nb", New: "x"})
	require.True(t, toolerr.Is(err, toolerr.NoMatch))
}

func TestReplaceAll(t *testing.T) {
	got, plan, err := edited(t, "a b a\na\n", match.Options{}, match.Edit{Old: "a", New: "xx", All: true})
	require.NoError(t, err)
	require.Equal(t, "xx b xx\nxx\n", got)
	require.Equal(t, 3, plan.Found[0].Count)
	require.Equal(t, []int{1, 1, 2}, plan.Found[0].LineNumbers)

	got, _, err = edited(t, "aaaa\n", match.Options{}, match.Edit{Old: "aa", New: "b", All: true})
	require.NoError(t, err)
	require.Equal(t, "bb\n", got)

	got, _, err = edited(t, "a\nb\na\r\nb\r\n", match.Options{}, match.Edit{Old: "a\nb\n", New: "a\nc\n", All: true})
	require.NoError(t, err)
	require.Equal(t, "a\nc\na\r\nc\r\n", got)

	for _, raw := range []string{"a\r\nb\r\nc", "a\nb\r\nc", "a\nb\nc"} { // the last line has no ending to replace
		got, _, err = edited(t, raw, match.Options{}, match.Edit{Old: "\n", New: ",", All: true})
		require.NoError(t, err)
		require.Equal(t, "a,b,c", got)
	}

	_, _, err = edited(t, "a b a\na\n", match.Options{}, match.Edit{Old: "a", New: "x", Expected: 2})
	require.True(t, toolerr.Is(err, toolerr.NotUnique))
	got, _, err = edited(t, "a b a\n", match.Options{}, match.Edit{Old: "a", New: "x", Expected: 2})
	require.NoError(t, err)
	require.Equal(t, "x b x\n", got)
}

func TestSeveralEdits(t *testing.T) {
	got, _, err := edited(t, "a\nb\nc\n", match.Options{}, match.Edit{Old: "c", New: "a"}, match.Edit{Old: "a", New: "x"})
	require.NoError(t, err, "each is found in the original")
	require.Equal(t, "x\nb\na\n", got)

	_, _, err = edited(t, "a\nb\nc\n", match.Options{}, match.Edit{Old: "a\nb", New: "x"}, match.Edit{Old: "b\nc", New: "y"})
	require.True(t, toolerr.Is(err, toolerr.Conflict))

	_, _, err = edited(t, "a\nb\nb\n", match.Options{}, match.Edit{Old: "q", New: "x"}, match.Edit{Old: "a", New: "y"}, match.Edit{Old: "b", New: "y"})
	require.ErrorContains(t, err, "edit 1:")
	require.ErrorContains(t, err, "edit 3:")
	require.NotContains(t, err.Error(), "edit 2:")
}

func TestEncodings(t *testing.T) {
	utf16 := func(s string) string {
		out := "\xff\xfe"
		for _, c := range s {
			out += string([]byte{byte(c), byte(c >> 8)})
		}
		return out
	}
	got, _, err := edited(t, utf16("één\r\ntwee\r\n"), match.Options{}, match.Edit{Old: "één\ntwee", New: "één\n€\ntwee"})
	require.NoError(t, err)
	require.Equal(t, utf16("één\r\n€\r\ntwee\r\n"), got)

	got, _, err = edited(t, "caf\xe9 noir\nth\xe9 vert\n", match.Options{}, match.Edit{Old: "café noir", New: "café crème"})
	require.NoError(t, err)
	require.Equal(t, "caf\xe9 cr\xe8me\nth\xe9 vert\n", got)

	_, _, err = edited(t, "caf\xe9 noir\nth\xe9 vert\n", match.Options{}, match.Edit{Old: "noir", New: "日本"})
	require.True(t, toolerr.Is(err, toolerr.BadEncoding))

	// Invalid bytes and their surroundings are kept.
	got, _, err = edited(t, "naïve café\nbroken \xe9\xff bytes\n", match.Options{}, match.Edit{Old: " bytes", New: " ones"})
	require.NoError(t, err)
	require.Equal(t, "naïve café\nbroken \xe9\xff ones\n", got)
}

func TestWarnings(t *testing.T) {
	_, plan, err := edited(t, "a\nb\nc\n", match.Options{}, match.Edit{Old: "b", New: "b\nc"})
	require.NoError(t, err)
	require.Len(t, plan.Warnings, 1)
	require.Contains(t, plan.Warnings[0], "twice")
}
