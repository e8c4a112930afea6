package docs_test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	fenced  = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	inline  = regexp.MustCompile("`[^`\n]*`")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.+)$`)
)

// anchors returns the anchors that GitHub makes of a page's headings.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		name := strings.ToLower(regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(h[1], "$1"))
		name = regexp.MustCompile(`[^\p{L}\p{N}\- _]`).ReplaceAllString(name, "")
		found[strings.ReplaceAll(strings.TrimSpace(name), " ", "-")] = true
	}
	return found
}

// Each link of the book leads to a file or directory of the repository and to
// a heading in it; links into the web use https.
func TestLinks(t *testing.T) {
	count := 0
	for _, page := range pages(t) {
		text := inline.ReplaceAllString(fenced.ReplaceAllString(read(t, page), ""), "")
		for _, l := range link.FindAllStringSubmatch(text, -1) {
			count++
			if strings.Contains(l[1], "://") {
				require.True(t, strings.HasPrefix(l[1], "https://"), "%s: %s", page, l[1])
				continue
			}
			file, anchor, _ := strings.Cut(l[1], "#")
			target := page
			if file != "" {
				target = path.Join(path.Dir(page), file)
			}
			_, err := os.Stat(filepath.FromSlash(target))
			require.NoError(t, err, "%s: %s", page, l[1])
			if anchor != "" {
				require.True(t, anchors(read(t, target))[anchor], "%s: %s: no such heading", page, l[1])
			}
		}
	}
	require.Greater(t, count, 80)
}

// The index names every page, in this directory and in tools.
func TestTheIndexIsComplete(t *testing.T) {
	index := read(t, "README.md")
	for _, page := range pages(t) {
		if page != "README.md" && !strings.HasPrefix(page, "../") {
			require.Contains(t, index, "]("+page+")", "docs/README.md does not name docs/%s", page)
		}
	}
}

// Paths of the repository that pages name in backquotes exist.
func TestNamedPathsExist(t *testing.T) {
	named := regexp.MustCompile("`((?:pkg|host|tools|internal|bench|examples)/(?:[A-Za-z0-9_./-]+?|[A-Za-z0-9_./*-]+\\.go))/?`")
	count := 0
	for _, page := range pages(t) {
		for _, m := range named.FindAllStringSubmatch(fenced.ReplaceAllString(read(t, page), ""), -1) {
			count++
			found, err := filepath.Glob(filepath.FromSlash("../" + m[1]))
			require.NoError(t, err)
			require.NotEmpty(t, found, "%s names %s, which does not exist", page, m[1])
		}
	}
	require.Greater(t, count, 10)
}
