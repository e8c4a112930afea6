// The tests of this directory keep the book true: each command and snippet is
// run or parsed, links lead somewhere, generated parts are up to date.
package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A block is one fenced block of a page.
type block struct {
	page      string // file name, with slashes
	line      int    // of the opening fence, from 1
	language  string // console, sh, yaml, …
	directive string // text of <!-- test: … --> above the fence
	text      string
}

// pages returns the names of the book's pages and of other documents that are
// tested with them, relative to this directory.
func pages(t *testing.T) []string {
	t.Helper()
	var found []string
	for _, pattern := range []string{"*.md", "tools/*.md", "../CONTRIBUTING.md", "../CODE_OF_CONDUCT.md", "../SECURITY.md", "../bench/README.md", "../examples/README.md"} {
		names, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, name := range names {
			found = append(found, filepath.ToSlash(name))
		}
	}
	require.Greater(t, len(found), 20)
	return found
}

func read(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(page))
	require.NoError(t, err)
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}

var directiveComment = regexp.MustCompile(`^<!-- test: (.*) -->$`)

// blocks returns the fenced blocks of a page.
func blocks(t *testing.T, page string) []block {
	t.Helper()
	var found []block
	var open *block
	directive, indent := "", ""
	for number, line := range strings.Split(read(t, page), "\n") {
		fence := strings.TrimLeft(line, " ")
		switch {
		case open != nil && strings.TrimRight(fence, " ") == "```":
			found = append(found, *open)
			open, directive = nil, ""
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
		case strings.HasPrefix(fence, "```"):
			indent = line[:len(line)-len(fence)]
			open = &block{page: page, line: number + 1, language: strings.TrimPrefix(fence, "```"), directive: directive}
		case directiveComment.MatchString(fence):
			directive = directiveComment.FindStringSubmatch(fence)[1]
		case fence != "":
			directive = ""
		}
	}
	require.Nil(t, open, "%s: a block is not closed", page)
	return found
}

// languages are those that a test checks; text is output, or a file of a command.
var languages = []string{"console", "sh", "yaml", "json", "toml", "go", "mermaid", "text"}

// directives are the comments above blocks that CONTRIBUTING.md describes.
var directives = regexp.MustCompile(`^(?:|parse|syntax|serve|sandbox|sandbox review|file \S+)$`)

func TestEveryBlockHasALanguageThatIsChecked(t *testing.T) {
	for _, page := range documents(t) {
		for _, b := range blocks(t, page) {
			require.Contains(t, languages, b.language, "%s:%d", page, b.line)
			require.Regexp(t, directives, b.directive, "%s:%d", page, b.line)
			if b.directive == "parse" || b.directive == "serve" { // only TestCommands and TestRequests know them
				require.Equal(t, "sh", b.language, "%s:%d", page, b.line)
			}
			if b.language == "go" { // compiled by the commands that follow it
				require.True(t, strings.HasPrefix(b.directive, "file "), "%s:%d", page, b.line)
			}
		}
	}
}

// A diagram is a flow chart of nodes, arrows and subgraphs.
func TestDiagrams(t *testing.T) {
	node := `[a-z]+(?:\[(?:[\w ]+|"[^"]+")\])?`
	line := regexp.MustCompile(`^\s*(?:` + node + `(?: (?:-- (?:[\w ]+|"[^"]+") )?--> ` + node + `)+|direction (?:LR|TB)|subgraph [a-z]+ \["[\w, ]+"\]|end)$`)
	count := 0
	for _, page := range documents(t) {
		for _, b := range blocks(t, page) {
			if b.language != "mermaid" {
				continue
			}
			count++
			first, rest, _ := strings.Cut(strings.TrimSpace(b.text), "\n")
			require.Regexp(t, `^flowchart (LR|TB)$`, first)
			for l := range strings.SplitSeq(rest, "\n") {
				require.Regexp(t, line, l, "%s:%d", page, b.line)
			}
			require.Equal(t, strings.Count(rest, "subgraph "), strings.Count(rest, "  end"), "%s:%d", page, b.line)
		}
	}
	require.Greater(t, count, 1)
}
