package markdown_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/chat/markdown"
	"github.com/toolroom-mcp/toolroom/host/internal/chat/screen"
)

// render shows a text that comes in pieces.
func render(width int, styled bool, pieces ...string) string {
	var out bytes.Buffer
	w := markdown.New(&out, markdown.Options{Width: func() int { return width }, Styled: styled})
	for _, piece := range pieces {
		w.Write([]byte(piece)) //nolint:errcheck // a buffer takes everything
	}
	w.Close() //nolint:errcheck // likewise
	return out.String()
}

// tagged makes what is unseen in a golden file seen.
func tagged(text string) string { return strings.ReplaceAll(text, "\x1b[", "␛") }

// testdata/NAME.md is what a model writes, NAME.NN.txt how it looks in NN
// columns, NAME.plain.txt without styles. UPDATE=1 writes them.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, view := range []struct {
			name   string
			width  int
			styled bool
		}{{"80", 80, true}, {"30", 30, true}, {"plain", 60, false}} {
			got := tagged(render(view.width, view.styled, string(text)))
			golden := strings.TrimSuffix(file, ".md") + "." + view.name + ".txt"
			if os.Getenv("UPDATE") != "" {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), got, golden)
		}
	}
}

// texts are all examples, and what is hard to cut well.
func texts(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.md")
	require.NoError(t, err)
	all := []string{
		"**a *b* c** d*e*f __x__ ***both*** *a **b***", "`` a ` b `` `open", "[a [b]](http://x/(y)) ![i](u) [no] (x) [x](", "\\*a\\* \\", "1. a\n   ```go\n   x := 1\n   ```\n2) b",
		"a\r\nb\rc\r", "> > q **b**\n> - i\n> ```\n> code\n> ```\n", "| a | b |\n|--|:-:|\n| 1 | `x|y` |\nafter", "|no table\n|at all", "- - -\n* * *\n---\n-\n- \n", "日本語の**強調**と長い文章がここにあります。👩‍👩‍👧 e\u0301",
		"\x1b[31mred\x07 \u009b31m \u202eevil \xff\xfe", "```\nopen", "~~~ x\n```\n~~~", strings.Repeat("*a ", 600), strings.Repeat("`", 700), "<https://x.y> <b> < a", "# \n#\n####### no\n#no",
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		all = append(all, string(text))
	}
	return all
}

// However a text is cut, it looks the same.
func TestAnyPiecesLookTheSame(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, text := range texts(t) {
		for _, width := range []int{20, 43, 120} {
			whole := render(width, true, text)
			require.Equal(t, whole, render(width, true, strings.Split(text, "")...), "%q", text)
			bytewise := make([]string, len(text))
			for i := range bytewise {
				bytewise[i] = text[i : i+1]
			}
			require.Equal(t, whole, render(width, true, bytewise...), "%q", text)
			for range 5 {
				require.Equal(t, whole, render(width, true, pieces(random, text)...), "%q", text)
			}
		}
	}
}

func pieces(random *rand.Rand, text string) []string {
	var all []string
	for text != "" {
		n := 1 + random.IntN(min(len(text), 40))
		all = append(all, text[:n])
		text = text[n:]
	}
	return all
}

// requireHarmless holds that a terminal is sent nothing but text and the styles
// of the package, and that no line but those of code is too long.
func requireHarmless(t *testing.T, out string, styled bool) {
	t.Helper()
	rest := out
	for {
		i := strings.IndexByte(rest, 0x1b)
		if i < 0 {
			break
		}
		require.True(t, styled)
		require.Regexp(t, `^\x1b\[0?(;?[123469]|;36)*m`, rest[i:])
		rest = rest[:i] + rest[i+1:]
	}
	before := rune(0)
	for _, r := range rest {
		require.False(t, screen.NeedsEscape(before, r), "%q", out)
		before = r
		require.True(t, r == '\n' || r == '\t' || !unicode.IsControl(r), "%q", out)
	}
}

func TestNothingSteersTheTerminal(t *testing.T) {
	for _, text := range texts(t) {
		requireHarmless(t, render(40, true, text), true)
		requireHarmless(t, render(40, false, text), false)
	}
	for _, within := range []string{"%", "# %", "```\n%\n```", "``` %\nx\n```", "`%`", "**%**", "[%](x)", "[x](%)", "![x](%)", "<a:%>", "| % | b |\n|--|--|\n| % | c |\n", "> %", "- %", "1. %", "| % x", "~~%~~"} {
		for _, evil := range []string{"\x1b]0;title\x07", "\x1b[2J", "\x9b2J", "\u009b2J", "\x1b]8;;http://evil\x1b\\", "a\rb", "\x08\x08", "\u202e", "\x00", "\u200b", "\u200d", "a\u200cb", "\ufeff", "\u00ad", "\u2060", "\u200f", "\u3164", "\ufe0f"} {
			out := render(60, true, strings.ReplaceAll(within, "%", evil))
			requireHarmless(t, out, true)
		}
	}
}

// Lines that are not code fit, wide characters and all.
func TestLinesFit(t *testing.T) {
	for _, text := range texts(t) {
		if strings.Contains(text, "```") || strings.Contains(text, "~~~") {
			continue
		}
		for _, width := range []int{20, 33, 80} {
			for line := range strings.Lines(render(width, false, text)) {
				require.LessOrEqual(t, screen.Columns(strings.TrimSuffix(line, "\n")), max(width-1, 20), "%q", line)
			}
		}
	}
}

// What was written does not wait for what comes: a word is there when it has
// ended, and nothing is held without bound.
func TestItComesAsItIsWritten(t *testing.T) {
	var out bytes.Buffer
	w := markdown.New(&out, markdown.Options{Width: func() int { return 80 }})
	write := func(text string) string {
		out.Reset()
		_, err := w.Write([]byte(text))
		require.NoError(t, err)
		return out.String()
	}
	require.Equal(t, "One", write("One t"))
	require.Equal(t, " two", write("wo "))
	require.Empty(t, write("**bold"))
	require.Empty(t, write("**"), "neither is it known that the word has ended, nor that there is no third mark")
	require.Equal(t, " bold", write(" "))
	require.Empty(t, write("**"))
	require.NotEmpty(t, write(strings.Repeat("never closed ", 60)))
	require.NotEmpty(t, write("\n| "+strings.Repeat("an endless row ", 6000)))
	require.NotEmpty(t, write("\n```\n"+strings.Repeat("endless code ", 30)))
}

// A text that is made to be slow to read is read in time all the same: the work
// a rune takes has a bound.
func TestHostileTextsAreBounded(t *testing.T) {
	for _, part := range []string{"*a ", "[", "![", "`", "_a*", "<a", "**a*", "\\", "> ", "- ", "|", "a`` ", "[a](", "~~a ", "\u0301", "1. ", "|-"} {
		text := strings.Repeat(part, 20_000/len(part))
		require.NotEmpty(t, render(80, true, text), part)
		require.NotEmpty(t, render(80, true, strings.ReplaceAll(text, "a", "a\n")), part)
	}
}

// A table has no more cells than somebody would read, whatever its second line says,
// and a long cell is no longer to read than a long line.
func TestHostileTables(t *testing.T) {
	text := "| a |\n|" + strings.Repeat("-|", 1000) + "\n" + strings.Repeat("|\n", 1000)
	require.LessOrEqual(t, len(render(80, true, text)), 2*len(text))
	text = "| " + strings.Repeat("long ", 2000) + strings.Repeat("| columns8 ", 12) + "|\n|" + strings.Repeat("-|", 13) + "\n" + strings.Repeat("|x|\n", 500)
	require.LessOrEqual(t, len(render(80, true, text)), 40*len(text))
	for _, part := range []string{"*a ", "[", "a`` ", "<a", "~~a "} {
		long := strings.Repeat(part, 10_000/len(part))
		require.Contains(t, render(80, false, "| h | i |\n|---|---|\n| "+long+" | b |\n"), "b")
	}
}

func FuzzPieces(f *testing.F) {
	f.Add("# a\n**b** `c`\n| a |\n|--|\n| b |\n", uint64(1), uint8(40))
	f.Add("- [x](y) *z\n```\n\x1b[m\n```", uint64(2), uint8(9))
	f.Fuzz(func(t *testing.T, text string, seed uint64, width uint8) {
		whole := render(int(width), true, text)
		require.Equal(t, whole, render(int(width), true, pieces(rand.New(rand.NewPCG(seed, 0)), text)...))
		requireHarmless(t, whole, true)
	})
}
