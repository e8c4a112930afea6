package tokens_test

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/tokens"
)

var load = sync.OnceValues(tokens.LoadVocabulary)

func vocabulary(t testing.TB) *tokens.Vocabulary {
	t.Helper()
	v, err := load()
	require.NoError(t, err)
	return v
}

// The counts are those of the tokenizer the vocabulary comes from (npm's
// tiktoken 1.0.22, encode_ordinary), over texts made of what its expression
// tells apart: cases, marks, scripts, spaces, line ends, contractions.
func TestCountsAreThoseOfTheReference(t *testing.T) {
	file, err := os.Open("testdata/vectors.jsonl")
	require.NoError(t, err)
	defer file.Close() //nolint:errcheck // it is only read
	v, n := vocabulary(t), 0
	for lines := bufio.NewScanner(file); lines.Scan(); n++ {
		var one struct {
			Text   string
			Tokens int
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &one))
		require.Equal(t, one.Tokens, v.Count(one.Text), "%q", one.Text)
	}
	require.Equal(t, 400, n)
	for text, want := range map[string]int{
		"": 0, "hello world": 2, "<|endoftext|>": 7,
		strings.Repeat("a", 5000): 625, strings.Repeat("=-", 500): 63, strings.Repeat(" ", 777): 7,
	} {
		require.Equal(t, want, v.Count(text), "%.20q", text)
	}
}

// Text that is not UTF-8 counts as its bytes do, and a word without end takes
// no more memory than a long one.
func TestCountOfWhatIsNoText(t *testing.T) {
	v := vocabulary(t)
	require.Positive(t, v.Count("\xff\xfe caf\xe9"))
	require.Positive(t, tokens.Estimate("\xff\xfe caf\xe9"))
	require.InEpsilon(t, 3*v.Count(strings.Repeat("xyz", 1<<14)), v.Count(strings.Repeat("xyz", 3<<14)), 0.01)
}

// How far estimates are from exact counts, by kind of text.
func TestEstimatesAreNear(t *testing.T) {
	v := vocabulary(t)
	for pattern, within := range map[string]float64{
		"../../../../tools/*/testdata/tool.json": 0.06,
		"../../../../tools/*/*.md":               0.08,
		"../../../../*.md":                       0.08,
		"../../catalog/*.go":                     0.06,
	} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		var estimated, exact int
		worst := 0.0
		for _, name := range files {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			e, x := tokens.Estimate(string(text)), v.Count(string(text))
			estimated, exact = estimated+e, exact+x
			if x > 100 {
				worst = max(worst, max(float64(e-x), float64(x-e))/float64(x))
			}
		}
		t.Logf("%-34s estimated %d, exact %d (%+.1f %%), worst file %.1f %%", pattern, estimated, exact, 100*(float64(estimated)/float64(exact)-1), 100*worst)
		require.InEpsilon(t, exact, estimated, within, pattern)
		require.Less(t, worst, 0.25, pattern)
	}
	for _, text := range []string{
		"Инструмент ищет файлы по образцу и возвращает их имена. Если их слишком много, уточните запрос.",
		"该工具按模式查找文件并返回它们的名称。如果结果太多，请缩小查询范围或提高上限。",
		"このツールはパターンでファイルを検索し、その名前を返します。",
		"Das Werkzeug sucht Dateien nach einem Muster und gibt ihre Namen und Größen zurück.",
	} {
		require.InEpsilon(t, v.Count(text), tokens.Estimate(text), 0.35, text) // words are longer, and parts of words, than in English
	}
}

func TestEstimateOfLittle(t *testing.T) {
	require.Zero(t, tokens.Estimate(""))
	require.Equal(t, 1, tokens.Estimate("a"))
	require.Equal(t, tokens.Estimate(`{"a":1}`), tokens.EstimateJSON(json.RawMessage(`{"a":1}`)))
	require.Equal(t, tokens.Estimate("some text"), tokens.Estimator{}.Count("some text"))
}

func FuzzCount(f *testing.F) {
	for _, text := range []string{"", "Hello, world's", "\r\n \n x", "é́ʰǅ中", "\xff"} {
		f.Add(text)
	}
	v := vocabulary(f)
	f.Fuzz(func(t *testing.T, text string) {
		n := v.Count(text)
		require.LessOrEqual(t, n, len(text))
		require.Equal(t, text == "", n == 0)
		require.Equal(t, text == "", tokens.Estimate(text) == 0)
	})
}

func BenchmarkTokens(b *testing.B) {
	text, err := os.ReadFile("../../../../README.md")
	require.NoError(b, err)
	b.Run("estimate", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			tokens.Estimate(string(text))
		}
	})
	b.Run("load", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			tokens.LoadVocabulary() //nolint:errcheck // the tests look
		}
	})
	v := vocabulary(b)
	b.Run("count", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			v.Count(string(text))
		}
	})
}
