package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// site builds the site of this repository and returns its files by name.
func site(t *testing.T) (dir string, files map[string]string) {
	t.Helper()
	dir, files = t.TempDir(), map[string]string{}
	count, err := build("../..", dir)
	require.NoError(t, err)
	require.Greater(t, count, 20)
	err = filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		relative, _ := filepath.Rel(dir, name) //nolint:errcheck // below dir
		files[filepath.ToSlash(relative)] = string(text)
		return err
	})
	require.NoError(t, err)
	return dir, files
}

// Every link leads to a file of the site and to an anchor in it, or into the
// repository on the web; nothing is loaded from elsewhere.
func TestLinksOfTheSite(t *testing.T) {
	_, files := site(t)
	count := 0
	for name, text := range files {
		if path.Ext(name) != ".html" {
			continue
		}
		for _, m := range regexp.MustCompile(`(href|src)="([^"]*)"`).FindAllStringSubmatch(text, -1) {
			count++
			if strings.Contains(m[2], "://") {
				require.Equal(t, "href", m[1], "%s loads %s", name, m[2])
				if rest, ok := strings.CutPrefix(m[2], source); ok {
					_, err := os.Stat(filepath.Join("../..", filepath.FromSlash(rest)))
					require.NoError(t, err, name)
				}
				continue
			}
			file, anchor, _ := strings.Cut(m[2], "#")
			target := path.Join(path.Dir(name), file)
			if file == "" {
				target = name
			}
			require.Contains(t, files, target, "%s links to %s", name, m[2])
			if anchor != "" {
				require.Contains(t, files[target], `id="`+anchor+`"`, "%s links to %s", name, m[2])
			}
		}
	}
	require.Greater(t, count, 500)
}

func TestAddress(t *testing.T) {
	for name, want := range map[string]string{
		"docs/README.md": "index.html", "docs/security.md": "security.html", "SECURITY.md": "repository/SECURITY.html",
		"docs/tools/README.md": "tools/index.html", "docs/tools/ls.md": "tools/ls.html",
	} {
		require.Equal(t, want, address(name))
	}
}

// The search index has every page, and its entries lead to pages.
func TestIndex(t *testing.T) {
	_, files := site(t)
	line, _, _ := strings.Cut(strings.TrimPrefix(files["search.js"], "const sections = "), ";\n")
	var sections []section
	require.NoError(t, json.Unmarshal([]byte(line), &sections))
	listed := map[string]bool{}
	for _, s := range sections {
		file, _, _ := strings.Cut(s.URL, "#")
		require.Contains(t, files, file)
		require.NotEmpty(t, s.Title)
		listed[file] = true
	}
	for name := range files {
		require.True(t, listed[name] || path.Ext(name) != ".html", name)
	}
}

// The search finds the page of a tool by its name, and sections by words.
func TestSearch(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	dir, _ := site(t)
	for query, want := range map[string]string{
		"grep": "tools/grep.html", "approve calls": "host.html#approve-calls", "error codes": "tools/index.html#error-codes",
		"nothing has these words together": "none",
	} {
		cmd := exec.CommandContext(t.Context(), node, "-e", //nolint:gosec // this test's own script
			`const {runInThisContext} = require("vm"); runInThisContext(require("fs").readFileSync("search.js", "utf8") +
			";globalThis.first = (find(process.argv[1], sections)[0] || {url: 'none'}).url"); console.log(first)`, query)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Equal(t, want, strings.TrimSpace(string(out)), query)
	}
}
