package policy

import (
	"strings"
)

// writesFile reports whether the text writes a file with the same base name, by
// a redirection or tee, so that the file's content may be hidden in the text.
func (s *shellText) writesFile(file field) bool {
	if s.writtenFiles == nil {
		s.writtenFiles = writtenFileNames(s.text)
	}
	return s.writtenFiles[file.text[strings.LastIndexByte(file.text, '/')+1:]]
}

// writtenFileNames returns the base names that follow a > or tee anywhere in
// text, as a set.
func writtenFileNames(text string) map[string]bool {
	names := map[string]bool{}
	for {
		i := strings.IndexAny(text, ">t")
		if i < 0 {
			return names
		}
		word, tee := strings.CutPrefix(text[i:], "tee ")
		redirected := text[i] == '>'
		if text = text[i+1:]; redirected {
			word = text
		}
		if tee || redirected {
			word = strings.TrimLeft(word[:min(len(word), maxExcerpt)], "> |&-a")
			names[leadingFileName(word)] = true
		}
	}
}

// leadingFileName returns the base name of the file name that text begins with,
// or "".
func leadingFileName(text string) string {
	if words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t;&|<>()\"'", r) }); len(words) > 0 {
		return words[0][strings.LastIndexByte(words[0], '/')+1:]
	}
	return ""
}
