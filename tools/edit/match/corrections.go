package match

import (
	"fmt"
	"html"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
)

// correction is another interpretation of an old text, which corrects a common
// mistake of models.
type correction struct {
	hint      string              // completes the sentence "It would match at line 3 …"
	interpret func(string) string // returns its argument if the mistake was not made
}

// corrections are tried in this order.
var corrections = []correction{
	{`if \n, \t and \" are read as line breaks, tabs and quotes: send the characters themselves`, unescapeBackslashes},
	{"if &lt; &gt; &amp; &quot; are read as < > & \": send the characters themselves", html.UnescapeString},
	{"without the code fence around it: leave out the ``` lines", removeFence},
	{"without the + and - of a diff at the start of its lines: leave them out", removeDiffSigns},
	{"without the empty lines before and after it", func(s string) string { return strings.Trim(s, "\r\n") }},
}

// hintCorrection returns a hint about the first correction with which the old
// text would match, and the corrected old text. It returns "", "" if no
// correction helps. The edit is not made, since the new text probably has the
// same mistake.
func (m *matcher) hintCorrection(e Edit) (hint, corrected string) {
	for _, r := range corrections {
		text := r.interpret(e.Old)
		if text == e.Old {
			continue
		}
		if spots := m.lineSpansOf(text, Indentation); len(spots) > 0 {
			return fmt.Sprintf("It would match at %s %s.", m.describePlaces(spots), r.hint), text
		}
	}
	return "", ""
}

// unescapeBackslashes replaces \n, \t, \" and similar escapes by their
// characters.
func unescapeBackslashes(s string) string {
	return strings.NewReplacer(`\n`, "\n", `\r\n`, "\n", `\t`, "\t", `\"`, `"`, `\'`, "'", `\\`, `\`).Replace(s)
}

// fencePattern matches a Markdown code fence around a text.
var fencePattern = lazyregexp.New("(?s)^\\s*```[^\n]*\n(.*?)\n?\\s*```\\s*$")

// removeFence returns the text inside a code fence, or s if there is no fence.
func removeFence(s string) string {
	if found := fencePattern().FindStringSubmatch(s); found != nil {
		return found[1]
	}
	return s
}

// removeDiffSigns returns the old side of a diff: lines without the first
// character, and without the lines that the diff adds. It returns s if s does
// not look like a diff.
func removeDiffSigns(s string) string {
	var out []string
	signs := false
	for _, line := range strings.Split(s, "\n") {
		switch {
		case line == "":
			out = append(out, "")
		case line[0] == '-' || line[0] == ' ':
			signs = signs || line[0] == '-'
			out = append(out, line[1:])
		case line[0] == '+':
			signs = true
		default:
			return s
		}
	}
	if !signs {
		return s
	}
	return strings.Join(out, "\n")
}
