package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

const guide = "# Guide\nintro\n## Getting started\nsteps\n## Usage (CLI)\nu\n### Flags\nf\n## API\n### Flags\ng\n"

const server = "package s\n\n// Server serves.\ntype Server struct{}\n\n// Close stops.\nfunc (s *Server) Close() {\n}\n\ntype Conn struct{}\n\nfunc (c Conn) Close() {\n}\n\nfunc NewServer() {}\n"

func TestFindSection(t *testing.T) {
	tests := []struct {
		file, text, want string
		first, last      int
		note             string
	}{
		{"a.md", guide, "Getting started", 3, 4, ""},
		{"a.md", guide, "## Getting started", 3, 4, ""},
		{"a.md", guide, "getting STARTED", 3, 4, "closest"},
		{"a.md", guide, "#getting-started", 3, 4, "closest"},
		{"a.md", guide, "usage", 5, 8, "closest"},
		{"a.md", guide, "usage-cli", 5, 8, "closest"},
		{"a.md", guide, "Flags", 7, 8, "2 sections have this name; others at lines 10"},
		{"a.md", guide, "Guide", 1, 11, ""},
		{"s.go", server, "Server", 3, 4, ""},
		{"s.go", server, "Server.Close", 6, 8, ""},
		{"s.go", server, "Conn.Close", 12, 13, ""},
		{"s.go", server, "Close", 6, 8, "others at lines 12"},
		{"s.go", server, "func NewServer", 15, 15, "closest"},
		{"s.go", server, "newserver", 15, 15, "closest"},
		{"settings.md", "---\ntitle: x\n# no heading\n---\n# Real\ntext\n", "real", 5, 6, "closest"},
		{"comment.md", "# One\n<!--\n# Two\n-->\n<!-- x -->\ntext\n# Three\n", "One", 1, 6, ""},
		{"a.py", "class A:\n    def m(self):\n        pass\n\nclass B:\n    def m(self):\n        pass\n", "B.m", 6, 7, "closest"},
	}
	for _, test := range tests {
		t.Run(test.want, func(t *testing.T) {
			found, err := findSection(test.file, []byte(test.text), test.want)
			require.NoError(t, err)
			require.Equal(t, []int{test.first, test.last}, []int{found.First, found.Last})
			if test.note == "" {
				require.Empty(t, found.Note)
			}
			require.Contains(t, found.Note, test.note)
		})
	}
}

func TestMissingSection(t *testing.T) {
	_, err := findSection("a.md", []byte(guide), "Geting startd")
	require.Equal(t, toolerr.NotFound, toolerr.CodeOf(err))
	require.Contains(t, err.Error(), `Did you mean "Getting started"?`)
	require.Contains(t, err.Error(), "(11 lines)")
	require.Contains(t, err.Error(), "9-11  ## API")
	_, err = findSection("a.md", []byte("no headings\n"), "x")
	require.Equal(t, toolerr.NotFound, toolerr.CodeOf(err))
	require.Contains(t, err.Error(), "no headings or symbols")
	_, err = findSection("a.md", []byte("# A\nthe last line has no ending"), "x")
	require.ErrorContains(t, err, "(2 lines)")
	_, err = findSection("a.md", make([]byte, maxOutline+1), "x")
	require.Equal(t, toolerr.TooLarge, toolerr.CodeOf(err))
	_, err = findSection("a.md", []byte(guide), " ## ")
	require.Equal(t, toolerr.InvalidParams, toolerr.CodeOf(err))
}
