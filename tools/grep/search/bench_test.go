package search_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/tools/grep/search"
)

// goSource returns the sources of the Go distribution, one text per file.
var goSource = sync.OnceValues(func() ([][]byte, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	var texts [][]byte
	err = filepath.WalkDir(filepath.Join(strings.TrimSpace(string(root)), "src"), func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || !strings.HasSuffix(name, ".go") {
			return err
		}
		text, err := os.ReadFile(name)
		texts = append(texts, text)
		return err
	})
	return texts, err
})

func BenchmarkGoSource(b *testing.B) {
	texts, err := goSource()
	require.NoError(b, err)
	size := 0
	for _, text := range texts {
		size += len(text)
	}
	for _, test := range []struct {
		name, pattern string
		o             search.Options
	}{
		{"literal", "ErrUnexpectedEOF", search.Options{}},
		{"literal-common", "return", search.Options{}},
		{"literal-none", "zqxjk_never", search.Options{}},
		{"one-letter", "e", search.Options{}},
		{"any", ".", search.Options{}},
		{"fold", "unexpectedeof", search.Options{IgnoreCase: true}},
		{"fold-sign", "deadlock", search.Options{IgnoreCase: true}},
		{"fold-common", "error", search.Options{IgnoreCase: true}},
		{"two", `(foo|bar)\d+`, search.Options{}},
		{"five", `Sherlock|Holmes|Watson|Adler|Moriarty`, search.Options{}},
		{"five-fold", `Sherlock|Holmes|Watson|Adler|Moriarty`, search.Options{IgnoreCase: true}},
		{"prefix", `func \w+Reader\(`, search.Options{}},
		{"inner", `\w+Mutex\w*\.Lock\(`, search.Options{}},
		{"word", `\bfunc\b`, search.Options{}},
		{"word-rare", `\bunsafe\b`, search.Options{}},
		{"classes", `[A-Z]\w+\d`, search.Options{}},
		{"no-literal", `\w{5}\s+\w{5}\s+\w{5}`, search.Options{}},
		{"greedy", `(x+x+)+y`, search.Options{}},
		{"multiline", `func \w+\(\) \{\n\}`, search.Options{Multiline: true}},
	} {
		b.Run(test.name, func(b *testing.B) {
			m, err := search.Compile(test.pattern, test.o)
			require.NoError(b, err)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			lines := 0
			for b.Loop() {
				lines = 0
				for _, text := range texts {
					lines += m.Count(text)
				}
			}
			b.ReportMetric(float64(lines), "lines")
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	for _, pattern := range []string{`ErrUnexpectedEOF`, `\w+`, `(?i)\bfunc\s+\w+\(`, `[\w&&[^\d]]{1,50}\p{Greek}`} {
		b.Run(pattern, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := search.Compile(pattern, search.Options{})
				require.NoError(b, err)
			}
		})
	}
}

// BenchmarkShortTexts measures the fixed cost of a search per file.
func BenchmarkShortTexts(b *testing.B) {
	for _, pattern := range []string{`needle`, `\bneedle\b`, `[A-Z]\w+\d`, `(foo|bar)\d+`} {
		b.Run(pattern, func(b *testing.B) {
			m, err := search.Compile(pattern, search.Options{})
			require.NoError(b, err)
			text := []byte(strings.Repeat("not what is asked for, foo\n", 4))
			b.ReportAllocs()
			for b.Loop() {
				m.Next(text, 0)
			}
		})
	}
}
