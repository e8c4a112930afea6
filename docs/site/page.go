package main

import (
	"bytes"
	"html/template"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// A page is one document.
type page struct {
	name    string // in the repository, with slashes
	address string // in the site
	title   string
	body    []byte
	tree    ast.Node
}

// A section is a result of the search: a heading with the text below it.
type section struct {
	URL   string `json:"url"`
	Page  string `json:"page"`
	Title string `json:"title"`
	Text  string `json:"text"`
}

// A book is all pages, and the sections of all pages.
type book struct {
	pages map[string]*page
	index []section
}

var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()))

// add parses a document. Pages are added in the order of the search index.
func (b *book) add(name, content string) {
	content = strings.ReplaceAll(content, "\r\n", "\n")
	p := &page{name: name, address: address(name), body: []byte(content)}
	p.tree = markdown.Parser().Parse(text.NewReader(p.body), parser.WithContext(parser.NewContext(parser.WithIDs(ids{}))))
	b.pages[name] = p
	for node := p.tree.FirstChild(); node != nil; node = node.NextSibling() {
		if heading, ok := node.(*ast.Heading); ok {
			title := plain(heading, p.body)
			url := p.address
			if p.title == "" {
				p.title = title
			} else if id, ok := heading.AttributeString("id"); ok {
				url += "#" + string(id.([]byte))
			}
			b.index = append(b.index, section{URL: url, Page: p.title, Title: title})
		} else if len(b.index) > 0 {
			last := &b.index[len(b.index)-1]
			last.Text = strings.TrimSpace(last.Text + " " + plain(node, p.body))
		}
	}
}

// plain returns the text of a node without markup, in one line.
func plain(node ast.Node, body []byte) string {
	var b strings.Builder
	//nolint:errcheck // the function returns no error
	ast.Walk(node, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(n.Segment.Value(body))
				if n.SoftLineBreak() || n.HardLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			if entering {
				for i := range n.Lines().Len() {
					line := n.Lines().At(i)
					b.Write(line.Value(body))
				}
			}
		default:
			if n.Type() == ast.TypeBlock {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(b.String()), " ")
}

// ids gives headings the anchors that GitHub gives them, so that links work
// in both places.
type ids map[string]bool

var stripped = regexp.MustCompile(`[^\p{L}\p{N}\- _]`)

// Generate returns the anchor of a heading.
func (i ids) Generate(value []byte, _ ast.NodeKind) []byte {
	name := stripped.ReplaceAllString(strings.ToLower(string(value)), "")
	name = strings.ReplaceAll(strings.TrimSpace(name), " ", "-")
	id := name
	for n := 1; i[id]; n++ {
		id = name + "-" + strconv.Itoa(n)
	}
	i[id] = true
	return []byte(id)
}

// Put reserves an anchor.
func (i ids) Put(value []byte) { i[string(value)] = true }

// html returns the page as a document.
func (b *book) html(p *page) (string, error) {
	//nolint:errcheck // the function returns no error
	ast.Walk(p.tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if link, ok := n.(*ast.Link); ok && entering {
			link.Destination = []byte(b.destination(p, string(link.Destination)))
		}
		return ast.WalkContinue, nil
	})
	var body bytes.Buffer
	if err := markdown.Renderer().Render(&body, p.body, p.tree); err != nil {
		return "", err
	}
	var out strings.Builder
	err := frame.Execute(&out, map[string]any{
		"Title": p.title, "Up": strings.Repeat("../", strings.Count(p.address, "/")),
		"Menu": template.HTML(b.menu(p)), "Body": template.HTML(body.String()), //nolint:gosec // rendered from pages of this repository
	})
	return out.String(), err
}

// destination returns where a link of a page leads in the site.
func (b *book) destination(p *page, link string) string {
	if link == "" || strings.HasPrefix(link, "#") || strings.Contains(link, "://") {
		return link
	}
	file, anchor, _ := strings.Cut(link, "#")
	name := path.Join(path.Dir(p.name), file)
	if anchor != "" {
		anchor = "#" + anchor
	}
	to, ok := b.pages[name]
	if !ok {
		return source + name + anchor
	}
	return strings.Repeat("../", strings.Count(p.address, "/")) + to.address + anchor
}

var entry = regexp.MustCompile(`(?m)^## (.+)$|\[([^\]]+)\]\(([^)#]+\.md)\)`)

// menu returns the list of pages, in the order of the index in docs/README.md.
func (b *book) menu(p *page) string {
	index := b.pages["docs/README.md"]
	_, list, _ := strings.Cut(string(index.body), "\n## ")
	var out strings.Builder
	for _, m := range entry.FindAllStringSubmatch("\n## "+list, -1) {
		if m[1] != "" {
			out.WriteString("<h2>" + template.HTMLEscapeString(m[1]) + "</h2>\n")
			continue
		}
		name := path.Join("docs", m[3])
		current := ""
		if name == p.name {
			current = ` aria-current="page"`
		}
		to := b.destination(p, strings.Repeat("../", strings.Count(p.name, "/"))+name)
		out.WriteString(`<a href="` + template.HTMLEscapeString(to) + `"` + current + `>` + template.HTMLEscapeString(m[2]) + "</a>\n")
	}
	return out.String()
}

var frame = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}} - toolroom</title>
<link rel="stylesheet" href="{{.Up}}style.css">
</head>
<body data-up="{{.Up}}">
<nav>
<a class="home" href="{{.Up}}index.html">toolroom</a>
<input id="search" type="search" placeholder="Search" aria-label="Search">
<ol id="results"></ol>
{{.Menu}}
</nav>
<main>
{{.Body}}
</main>
<script src="{{.Up}}search.js"></script>
</body>
</html>
`))
