package policy

import (
	"strings"
)

// writes reports whether the text writes a file of that name by a redirection
// or with tee, so that the text of the file may be hidden in it.
func (s *shellText) writesFile(file field) bool {
	if s.writtenFiles == nil {
		s.writtenFiles = writtenFileNames(s.text)
	}
	return s.writtenFiles[file.text[strings.LastIndexByte(file.text, '/')+1:]]
}

// writtenNames returns the last parts of the names that follow a > or tee.
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

// writtenName returns the last part of the file name that text begins with.
func leadingFileName(text string) string {
	if words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t;&|<>()\"'", r) }); len(words) > 0 {
		return words[0][strings.LastIndexByte(words[0], '/')+1:]
	}
	return ""
}
