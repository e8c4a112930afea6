// Package contentcheck looks at text that is to be written and tells what seems wrong
// with it. It only ever warns: what is written is the writer's choice.
//
//	warning := lint.Omission(newText, oldText)
//	warning = lint.Syntax("config.yaml", before, after)
//
// An empty string is no warning.
package contentcheck

import (
	"fmt"
	"regexp"
	"strings"
)

// comment is what a line of a comment begins with, in any language, or the
// dots alone that stand for text left out.
const comment = `^\s*(?://+|#+|/\*+|\{\s*/\*+|<!--+|--+|;+|%+|\*|\.\.\.|…)\s*`

// omissions are the lines that models write instead of text they leave out.
var omissions = []*regexp.Regexp{
	regexp.MustCompile(comment + `(?:\.\.\.|…)\s*(?:\*/\s*\}?|-->)?$`),
	regexp.MustCompile(`(?i)` + comment + `[\[(<.…\s]*(?:the\s+)?(?:rest|remainder)\s+of\s+(?:\S+\s+){0,4}(?:code|file|functions?|class(?:es)?|methods?|implementation|module|contents?|logic|body|document|components?|script|tests?|config\w*|imports?|it)\b`),
	regexp.MustCompile(`(?i)` + comment + `[\[(<.…\s]*(?:\S+\s+){0,3}(?:existing|previous|original|remaining|unchanged|other)\s+(?:\S+\s+){0,2}(?:code|contents?|implementation|logic|methods?|functions?|lines|imports?|fields|props|styles|tests?|routes)\b.*(?:here|unchanged|remains?|stays?|same|omitted|above|below|\.\.\.|…)`),
	regexp.MustCompile(`(?i)` + comment + `(?:\.\.\.|…)\s*(?:existing|previous|original|remaining|unchanged|rest|same)\b`),
	regexp.MustCompile(`(?i)` + comment + `.{0,60}\b(?:remains?|stays?|kept)\s+(?:the\s+same|unchanged|as\s+(?:is|before))`),
	regexp.MustCompile(`(?i)` + comment + `[\[(<.…\s]*(?:code|contents?|implementation|lines|same|unchanged)\s+(?:omitted|unchanged|truncated|as\s+(?:before|above))`),
}

// Omission warns when text that is to be written has a line such as
// "// ... rest of code unchanged", unless the text before has it, too.
func Omission(text, before string) string {
	for number, line := range strings.Split(text, "\n") {
		bare := strings.TrimSpace(line)
		if bare == "" || len(bare) > 200 || !isOmission(bare) || strings.Contains(before, bare) {
			continue
		}
		return fmt.Sprintf("line %d of the new text, %q, looks as if it stood for text left out; it is written as it is", number+1, bare)
	}
	return ""
}

func isOmission(line string) bool {
	for _, pattern := range omissions {
		if pattern.MatchString(line) {
			return true
		}
	}
	return false
}
