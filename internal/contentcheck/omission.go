// Package contentcheck checks text before it is written, and warns about likely
// mistakes. It never refuses: the caller decides what to write.
//
//	warning := contentcheck.OmissionWarning(newText, oldText)
//	warning = contentcheck.SyntaxWarning("config.yaml", before, after)
//
// An empty string means no warning.
package contentcheck

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
)

// commentStart matches the beginning of a comment line in any language, or dots
// used as a placeholder for omitted text.
const commentStart = `^\s*(?://+|#+|/\*+|\{\s*/\*+|<!--+|--+|;+|%+|\*|\.\.\.|…)\s*`

// omissionPatterns matches lines that models write as a placeholder for omitted
// text.
var omissionPatterns = []func() *regexp.Regexp{
	lazyregexp.New(commentStart + `(?:\.\.\.|…)\s*(?:\*/\s*\}?|-->)?$`),
	lazyregexp.New(`(?i)` + commentStart + `[\[(<.…\s]*(?:the\s+)?(?:rest|remainder)\s+of\s+(?:\S+\s+){0,4}(?:code|file|functions?|class(?:es)?|methods?|implementation|module|contents?|logic|body|document|components?|script|tests?|config\w*|imports?|it)\b`),
	lazyregexp.New(`(?i)` + commentStart + `[\[(<.…\s]*(?:\S+\s+){0,3}(?:existing|previous|original|remaining|unchanged|other)\s+(?:\S+\s+){0,2}(?:code|contents?|implementation|logic|methods?|functions?|lines|imports?|fields|props|styles|tests?|routes)\b.*(?:here|unchanged|remains?|stays?|same|omitted|above|below|\.\.\.|…)`),
	lazyregexp.New(`(?i)` + commentStart + `(?:\.\.\.|…)\s*(?:existing|previous|original|remaining|unchanged|rest|same)\b`),
	lazyregexp.New(`(?i)` + commentStart + `.{0,60}\b(?:remains?|stays?|kept)\s+(?:the\s+same|unchanged|as\s+(?:is|before))`),
	lazyregexp.New(`(?i)` + commentStart + `[\[(<.…\s]*(?:code|contents?|implementation|lines|same|unchanged)\s+(?:omitted|unchanged|truncated|as\s+(?:before|above))`),
}

// OmissionWarning returns a warning if text has a line such as "// ... rest of
// code unchanged" that before, the old text, does not have. It returns "" if
// there is no such line.
func OmissionWarning(text, before string) string {
	for number, line := range strings.Split(text, "\n") {
		bare := strings.TrimSpace(line)
		if bare == "" || len(bare) > 200 || !isOmission(bare) || strings.Contains(before, bare) {
			continue
		}
		return fmt.Sprintf("line %d of the new text, %q, looks like a placeholder for omitted text; it is written as it is", number+1, bare)
	}
	return ""
}

// isOmission reports whether a line without surrounding blanks matches an
// omission pattern.
func isOmission(line string) bool {
	for _, pattern := range omissionPatterns {
		if pattern().MatchString(line) {
			return true
		}
	}
	return false
}
