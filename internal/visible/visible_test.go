package visible_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/internal/visible"
)

func TestHiddenCharactersAreEscaped(t *testing.T) {
	for given, want := range map[string]string{
		"plain\ttext\n":  "plain\ttext\n",
		"a\u200bb":       `a\u200bb`,
		"a\rb":           `a\rb`,
		"\x1b[2J":        `\u001b[2J`,
		"a\u00a0b":       `a\u00a0b`,
		"\u202egnp.exe":  `\u202egnp.exe`,
		"x\U000e0041":    `x\U000e0041`,
		"grün 漢字 \u2800": "grün 漢字 \\u2800",
	} {
		require.Equal(t, want, visible.Text(given))
	}
	require.Equal(t, `a\nb\tc`, visible.Line("a\nb\tc"))
}

func TestLongRunsOfBlanksAreCounted(t *testing.T) {
	for given, want := range map[string]string{
		"a\n\n\n\nb":                                 "a\n\n\n\nb",
		"a" + strings.Repeat("\n", 481) + "b":        "a\n… 480 blank lines …\nb",
		"a\n" + strings.Repeat(" \t\n", 500) + "b":   "a\n… 500 blank lines …\nb",
		"a" + strings.Repeat(" ", 24) + "b\n":        "a" + strings.Repeat(" ", 24) + "b\n",
		"a" + strings.Repeat(" \t", 300) + "b":       "a… 600 spaces …b",
		strings.Repeat("\t", 30) + "b  c":            "… 30 spaces …b  c",
		"a" + strings.Repeat("\n", 9) + "  b\n\nc\n": "a\n… 8 blank lines …\n  b\n\nc\n",
		"": "",
	} {
		require.Equal(t, want, visible.CollapseBlanks(given))
	}
}
