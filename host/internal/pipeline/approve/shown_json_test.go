package approve_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/approve"
)

// Arguments are shown as what they mean, however they are spelt, and nothing
// in them can hide or look like what is around them.
func TestShown(t *testing.T) {
	for _, c := range []struct{ raw, line, lines string }{
		{`{}`, `{}`, `{}`},
		{` {"b" : 1.50, "a":[ ] , "n":null} `, `{"b":1.50,"a":[],"n":null}`, "{\n  \"b\": 1.50,\n  \"a\": [],\n  \"n\": null\n}"},
		{`{"command":"\u0072\u006d \u002d\u0072\u0066 ~"}`, `{"command":"rm -rf ~"}`, "{\n  \"command\": \"rm -rf ~\"\n}"},
		{`"a\"b\\c\/d"`, `"a\"b\\c/d"`, `"a\"b\\c/d"`},
		{`"a\nb\\nc\n"`, `"a\nb\\nc\n"`, "\"a\\n\n    b\\\\nc\\n\""},
		{`"\t\r\u0000\u001b[1m\u007f\u0085"`, `"\t\r\u0000\u001b[1m\u007f\u0085"`, `"\t\r\u0000\u001b[1m\u007f\u0085"`},
		{`"\\u200b"`, `"\\u200b"`, `"\\u200b"`},
		{`"Zürich 東京 🙂"`, `"Zürich 東京 🙂"`, `"Zürich 東京 🙂"`},
	} {
		require.Equal(t, c.line, approve.FormatJSONLine(json.RawMessage(c.raw)))
		require.Equal(t, c.lines, approve.FormatJSON(json.RawMessage(c.raw)))
	}
	for _, hidden := range []string{
		"\u200b", "\u200c", "\u200d", "\u200e", "\u200f", "\u202a", "\u202e", "\u2060", "\u2064", "\u2066", "\u2069", "\ufeff", "\u00ad", "\u034f", "\u061c",
		"\u115f", "\u1160", "\u17b4", "\u180e", "\u3164", "\uffa0", "\u2028", "\u2029", "\u00a0", "\u2003", "\u3000", "\u2800", "\ufe0f", "\ufff9", "\ue000",
		"\U000e0001", "\U000e0041", "\U000e0100", "\U0001d159", "\U000f0000", "\x1b", "\x7f", "\u009b", "\r",
	} {
		raw, err := json.Marshal("a" + hidden + "b")
		require.NoError(t, err)
		for _, shown := range []string{approve.FormatJSON(raw), approve.FormatJSONLine(raw), approve.EscapeInvisible("a" + hidden + "b"), approve.EscapeInvisibleLine("a" + hidden + "b")} {
			require.NotContains(t, shown, hidden, "%U", []rune(hidden))
			require.Contains(t, shown, `\`)
		}
	}
	require.Equal(t, "a\n\tb", approve.EscapeInvisible("a\n\tb"))
	require.Equal(t, `a\nstate     approved`, approve.EscapeInvisibleLine("a\nstate     approved"))
	require.Equal(t, `{"a":\n1`, approve.FormatJSON(json.RawMessage("{\"a\":\n1")), "what is not JSON is shown as it is")
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	require.Equal(t, deep, approve.FormatJSON(json.RawMessage(deep)))
}

// Blanks cannot move the rest of a text out of sight.
func TestLongRunsOfBlanksAreCounted(t *testing.T) {
	for given, want := range map[string]string{
		"a" + strings.Repeat("\n", 501) + "rm":    `"a… 501 line breaks …rm"`,
		"a" + strings.Repeat(" \n", 501) + "  rm": `"a… 501 line breaks …  rm"`,
		"a" + strings.Repeat(" ", 600) + "rm":     `"a… 600 spaces …rm"`,
		"a" + strings.Repeat("\t", 30) + "rm":     `"a… 30 spaces …rm"`,
		"a\n\n\nrm":                               `"a\n\n\nrm"`,
		"a\n\t\trm":                               `"a\n\t\trm"`,
	} {
		raw, err := json.Marshal(given)
		require.NoError(t, err)
		require.Equal(t, want, approve.FormatJSONLine(raw))
		require.LessOrEqual(t, strings.Count(approve.FormatJSON(raw), "\n"), 3)
	}
}
