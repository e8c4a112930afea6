package match

import (
	"fmt"
	"html"
	"regexp"
	"strings"
)

// correction is another interpretation of a text, after a common mistake of
// models.
type correction struct {
	hint      string
	interpret func(string) string
}

var corrections = []correction{
	{`if \n, \t and \" are read as line breaks, tabs and quotes: send the characters themselves`, unescapeBackslashes},
	{"if &lt; &gt; &amp; &quot; are read as < > & \": send the characters themselves", html.UnescapeString},
	{"without the code fence around it: leave out the ``` lines", removeFence},
	{"without the + and - of a diff at the start of its lines: leave them out", removeDiffSigns},
	{"without the empty lines before and after it", func(s string) string { return strings.Trim(s, "\r\n") }},
}

// suggestCorrection returns a hint about another interpretation of the text
// that would match, and the interpreted text; both are "" without a match. It
// is not applied, since the matching new text is unknown.
func (m *matcher) hintCorrection(e Edit) (hint, read string) {
	for _, r := range corrections {
		text := r.interpret(e.Old)
		if text == e.Old {
			continue
		}
		if spots := m.placesOf(text, Indentation); len(spots) > 0 {
			return fmt.Sprintf("It would match at %s %s.", m.describePlaces(spots), r.hint), text
		}
	}
	return "", ""
}

// unescape interprets the escapes of strings in source code.
func unescapeBackslashes(s string) string {
	return strings.NewReplacer(`\n`, "\n", `\r\n`, "\n", `\t`, "\t", `\"`, `"`, `\'`, "'", `\\`, `\`).Replace(s)
}

var fencePattern = regexp.MustCompile("(?s)^\\s*```[^\n]*\n(.*?)\n?\\s*```\\s*$")

func removeFence(s string) string {
	if found := fencePattern.FindStringSubmatch(s); found != nil {
		return found[1]
	}
	return s
}

// undiff removes the first character of lines that all look like a diff's, and
// drops the lines that a diff adds.
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
