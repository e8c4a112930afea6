// Site writes the pages of docs as a static site that needs no network: HTML,
// one style sheet, one script, and an index for the search.
//
//	go run ./docs/site [-out DIR]
//
// Run it in the root of the repository. Open DIR/index.html in a browser.
package main

import (
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

//go:embed style.css
var style string

//go:embed search.js
var script string

// source is the address that links to files which are not pages begin with.
const source = "https://github.com/toolroom-mcp/toolroom/blob/main/"

func main() {
	out := flag.String("out", "site", "write the site into `DIR`")
	flag.Parse()
	count, err := build(".", *out)
	if err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
	fmt.Printf("%d pages; open %s\n", count, filepath.Join(*out, "index.html"))
}

// build writes the site of the repository in root into out and returns the
// number of pages.
func build(root, out string) (int, error) {
	names, err := find(root)
	if err != nil {
		return 0, err
	}
	b := &book{pages: map[string]*page{}}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return 0, err
		}
		b.add(name, string(text))
	}
	files, err := b.files()
	if err != nil {
		return 0, err
	}
	for name, text := range files {
		to := filepath.Join(out, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil { //nolint:gosec // a public site
			return 0, err
		}
		if err := os.WriteFile(to, []byte(text), 0o644); err != nil { //nolint:gosec // a public site
			return 0, err
		}
	}
	return len(b.pages), nil
}

// find returns the documents that become pages, relative to root.
func find(root string) ([]string, error) {
	names := []string{"SECURITY.md", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "CHANGELOG.md"}
	for _, pattern := range []string{"docs/*.md", "docs/tools/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			names = append(names, path.Join(path.Dir(pattern), filepath.Base(name)))
		}
	}
	return names, nil
}

// address returns the name of a document's page in the site.
func address(name string) string {
	inDocs, ok := strings.CutPrefix(name, "docs/")
	if !ok { // security.html and SECURITY.html are one file on some systems
		inDocs = "repository/" + name
	}
	inDocs = strings.TrimSuffix(inDocs, ".md") + ".html"
	if path.Base(inDocs) == "README.html" {
		return path.Join(path.Dir(inDocs), "index.html")
	}
	return inDocs
}

// files returns the texts of the site's files by their names.
func (b *book) files() (map[string]string, error) {
	files := map[string]string{"style.css": style}
	for _, p := range b.pages {
		html, err := b.html(p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		files[p.address] = html
	}
	index, err := json.Marshal(b.index)
	if err != nil {
		return nil, err
	}
	// A script, since a page that is opened from a file cannot fetch JSON.
	files["search.js"] = "const sections = " + string(index) + ";\n" + script
	return files, nil
}
