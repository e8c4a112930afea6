package search_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/search"
)

func TestTerms(t *testing.T) {
	for text, want := range map[string][]string{
		"createIssue":                           {"creat", "issu", "createissu"},
		"create_issue-now":                      {"creat", "issu", "now", "createissuenow"},
		"HTTPServer2 parseURL":                  {"http", "server2", "httpserver2", "pars", "url", "parseurl"},
		"srv__readFile":                         {"srv", "read", "file", "readfil", "srvreadfil"},
		"予報city":                                {"予報", "city", "予報city"},
		"creates created creating creation":     {"creat", "creat", "creat", "creat"},
		"queries boxes passes runs status this": {"query", "box", "pass", "run", "status"},
		"running, calling; a string of bytes":   {"run", "call", "string", "byte"},
		"the and of":                            nil,
		"":                                      nil,
		"__ -- ..":                              nil,
		"天気予報 Größe":                            {"天気", "気予", "予報", "größe"},
		"s3":                                    {"s3"},
		"Gro\u0308\u00dfe ｇｒｅｐ":                 {"größe", "grep"}, // as macOS writes it, and letters of full width
	} {
		require.Equal(t, want, search.Terms(text), text)
	}
}

func corpus() []search.Doc {
	return []search.Doc{
		{Name: "github__create_issue", Group: "github", Text: "Open a new issue in a repository.", Parts: []string{"title", "body", "labels Labels to set"}},
		{Name: "github__list_issues", Group: "github", Text: "List the issues of a repository."},
		{Name: "github__search_code", Group: "github", Text: "Search for code across repositories.", Parts: []string{"query"}},
		{Name: "slack__post_message", Group: "slack", Text: "Send a message to a channel; mention an issue if there is one."},
		{Name: "weather", Text: "天気予報 for a city"},
		{Name: "fs__readFile", Group: "fs", Text: "Read a file.", Parts: []string{"path Path of the file"}},
	}
}

func names(x *search.Index, query string, most int) []string {
	docs, found := corpus(), []string{}
	for _, hit := range x.Find(query, most, nil) {
		found = append(found, docs[hit.Doc].Name)
	}
	return found
}

func TestFind(t *testing.T) {
	x := search.New(corpus())
	for _, c := range []struct {
		query string
		want  []string
	}{
		{"creating issues", []string{"github__create_issue", "github__list_issues", "slack__post_message"}},
		{"repo", []string{"github__list_issues", "github__create_issue", "github__search_code"}}, // a beginning
		{"label", []string{"github__create_issue"}},
		{"read file", []string{"fs__readFile"}},
		{"readfile", []string{"fs__readFile"}},
		{"予報", []string{"weather"}},
		{"SLACK__POST_MESSAGE", []string{"slack__post_message"}},
		{"slack", []string{"slack__post_message"}},
		{"zebra", []string{}},
		{"", []string{}},
		{"the of", []string{}},
	} {
		require.ElementsMatch(t, c.want, names(x, c.query, 10), c.query)
		if len(c.want) > 0 {
			require.Equal(t, c.want[0], names(x, c.query, 10)[0], c.query)
		}
	}
	require.Len(t, names(x, "issue", 2), 2)
	require.Empty(t, names(x, "issue", 0))
	require.Empty(t, search.New(nil).Find("x", 3, nil))
	only := x.Find("issue", 9, func(doc int) bool { return doc == 3 })
	require.Len(t, only, 1)
	require.Equal(t, 3, only[0].Doc)
}

// The same query finds the same, in the same order, whatever the map that the
// index was made from did.
func TestOrderIsTheSameEveryTime(t *testing.T) {
	docs := filler(200)
	want := search.New(docs).Find("item of the quarterly report", 50, nil)
	require.Len(t, want, 50)
	for range 5 {
		require.Equal(t, want, search.New(docs).Find("item of the quarterly report", 50, nil))
	}
}

// filler is n tools like those that servers have: a name of two words, two
// sentences, four parameters.
func filler(n int) []search.Doc {
	verbs := []string{"create", "list", "update", "delete", "search", "export", "merge", "archive", "assign", "validate"}
	things := []string{"invoice", "customer", "report", "ticket", "branch", "deployment", "calendar event", "message", "contact", "dashboard"}
	docs := make([]search.Doc, n)
	for i := range docs {
		verb, thing := verbs[i%10], things[i/10%10]
		docs[i] = search.Doc{
			Name: fmt.Sprintf("srv%d__%s_%s_%d", i/100, verb, thing, i), Group: fmt.Sprintf("srv%d", i/100),
			Text:  fmt.Sprintf("Use this to %s a %s in the workspace. Returns the %s with its quarterly items and the time it changed.", verb, thing, thing),
			Parts: []string{"id Identifier of the " + thing, "fields Which fields to return", "limit How many at most", "dry_run Only say what would be done"},
		}
	}
	return docs
}

func BenchmarkIndex(b *testing.B) {
	docs := filler(1000)
	b.Run("build 1000", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			search.New(docs)
		}
	})
	x := search.New(docs)
	b.Run("query 1000", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			x.Find("merge the deployment of last week", 10, nil)
		}
	})
}
