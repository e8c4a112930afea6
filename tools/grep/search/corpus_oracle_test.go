//go:build oracle

package search_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/tools/grep/search"
)

// TestCountsOnSource compares the number of matching lines in each file of a
// part of Go's source with ripgrep, for patterns of every search method. With
// the race detector the part is smaller, unless GREP_CORPUS=1. If \r\n is one
// line ending, ripgrep searches a copy of the file with \n: its --crlf also
// treats a lone \r as a line ending.
func TestCountsOnSource(t *testing.T) {
	rg := oracle.Path(t, "rg")
	root, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	dir := filepath.Join(strings.TrimSpace(string(root)), "src")
	parts := []string{"unicode", "strings", "regexp", "text", "encoding", "net/http", "runtime"}
	if mcpkittest.RaceEnabled && stateMask(t, "GREP_CORPUS", 0) == 0 {
		parts = parts[:4]
	}
	var files []string
	for _, part := range parts {
		err := filepath.WalkDir(filepath.Join(dir, part), func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				files = append(files, name)
			}
			return err
		})
		require.NoError(t, err)
	}
	plain := withoutReturns(t, files)
	compared, lines := 0, 0
	for _, test := range []struct {
		pattern string
		o       search.Options
	}{
		{"ErrUnexpectedEOF", search.Options{}}, {"return", search.Options{}}, {"e", search.Options{}}, {".", search.Options{}}, {"", search.Options{}},
		{"unexpectedeof", search.Options{IgnoreCase: true}}, {"deadlock", search.Options{IgnoreCase: true}}, {"k", search.Options{IgnoreCase: true}},
		{"straße|naïve|日本語", search.Options{IgnoreCase: true}}, {`(foo|bar)\d+`, search.Options{}}, {"alpha|beta|gamma|delta|eta", search.Options{}},
		{"sherlock|holmes|task|risk", search.Options{IgnoreCase: true}}, {`func \w+Reader\(`, search.Options{}}, {`\w+Mutex\w*\.Lock\(`, search.Options{}},
		{`\bfunc\b`, search.Options{}}, {`\bunsafe\b`, search.Options{IgnoreCase: true}}, {`[A-Z]\w+\d`, search.Options{}}, {`\w{5}\s+\w{5}\s+\w{5}`, search.Options{}},
		{`^\s*//`, search.Options{}}, {`\) \{$`, search.Options{}}, {`^$`, search.Options{}}, {`\B_\B|\b_\b`, search.Options{}}, {`[^\x00-\x7f]+`, search.Options{}},
		{`\p{Greek}|\p{Han}{2}`, search.Options{}}, {`(?-u:[\x80-\xff])$`, search.Options{}}, {`[[:upper:]]{6,}`, search.Options{}}, {`\d{4,}`, search.Options{}},
		{`"[^"\\]*(?:\\.[^"\\]*)*"`, search.Options{}}, {`(x+x+)+y`, search.Options{}}, {`\r$`, search.Options{}}, {`[a-z&&[^aeiou]]{7}`, search.Options{}},
	} {
		m, err := search.Compile(test.pattern, test.o)
		require.NoError(t, err)
		args := []string{"--no-config", "-a", "-c", "--include-zero", "-H", "--encoding", "none", "-j" + strconv.Itoa(runtime.NumCPU())}
		if test.o.IgnoreCase {
			args = append(args, "-i")
		}
		searched := files
		if m.CRLF() {
			searched = plain
		}
		out, _ := exec.Command(rg, append(append(args, "-e", test.pattern, "--"), searched...)...).Output()
		counts := map[string]int{}
		for line := range strings.Lines(string(out)) {
			at := strings.LastIndexByte(line, ':')
			counts[line[:at]], err = strconv.Atoi(strings.TrimSpace(line[at+1:]))
			require.NoError(t, err)
		}
		for i, name := range files {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			if !utf8.Valid(text) && strings.Contains(test.pattern, `\B`) {
				continue // see the package's comment on stray bytes
			}
			want, ok := counts[searched[i]]
			require.True(t, ok || len(text) == 0, name)
			require.Equal(t, want, m.Count(text), "%q in %s", test.pattern, name)
			compared, lines = compared+1, lines+want
		}
	}
	require.Positive(t, lines)
	t.Logf("%d pairs compared, %d matching lines", compared, lines)
}

// withoutReturns returns for each file one with \n for each \r\n: the file
// itself or a copy.
func withoutReturns(t *testing.T, files []string) (plain []string) {
	t.Helper()
	dir, copies := t.TempDir(), 0
	for i, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		if bytes.Contains(text, []byte("\r\n")) {
			name = filepath.Join(dir, strconv.Itoa(i))
			require.NoError(t, os.WriteFile(name, bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")), 0o600))
			copies++
		}
		plain = append(plain, name)
	}
	require.Positive(t, copies)
	return plain
}
