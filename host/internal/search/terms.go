package search

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// maxWord is the longest word that becomes a term, in bytes.
const maxWord = 64

// Terms returns the search terms of a text: its words in lower case without stop
// words, reduced to their stems; for a compound name also the whole name; and for
// scripts without spaces each pair of successive characters.
//
// The result does not depend on the encoding of characters (é as one or two code
// points, full-width letters).
func Terms(text string) []string {
	text = norm.NFKC.String(text)
	var terms []string
	add := func(word string) {
		if word = strings.ToLower(word); word != "" && len(word) <= maxWord && !slices.Contains(stopWords(), word) {
			terms = append(terms, stem(word))
		}
	}
	for run := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && r != '_' && r != '-'
	}) {
		parts := strings.FieldsFunc(run, func(r rune) bool { return r == '_' || r == '-' })
		for _, part := range parts {
			words := splitName(part)
			for _, word := range words {
				if dense := []rune(word); isSpaceless(dense[0]) {
					for i := range max(1, len(dense)-1) {
						terms = append(terms, string(dense[i:min(i+2, len(dense))]))
					}
					continue
				}
				add(word)
			}
			if len(words) > 1 {
				add(part)
			}
		}
		if len(parts) > 1 {
			add(strings.Join(parts, ""))
		}
	}
	return terms
}

// splitName splits a name where lower case changes to upper case, before the last of
// several capitals that a lower-case letter follows, and at the borders of a script
// without spaces.
func splitName(part string) []string {
	var words []string
	runes := []rune(part)
	begin := 0
	for i, r := range runes {
		if i > 0 && (unicode.IsUpper(r) && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) ||
			isSpaceless(r) != isSpaceless(runes[i-1])) {
			words = append(words, string(runes[begin:i]))
			begin = i
		}
	}
	return append(words, string(runes[begin:]))
}

// isSpaceless reports whether a letter belongs to a script without spaces between words.
func isSpaceless(r rune) bool {
	return r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// stopWords returns words that say nothing about a tool.
func stopWords() []string {
	return []string{"a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "how", "i", "if", "in", "is", "it", "its", "of", "on", "or",
		"that", "the", "this", "to", "want", "was", "what", "when", "which", "will", "with", "you", "your"}
}

// stem removes endings of English words, so that create, creates, created, creating
// and creation have the same stem. The stem need not be a word.
func stem(word string) string {
	for _, r := range word {
		if r >= 0x80 {
			return word
		}
	}
	switch n := len(word); {
	case n > 4 && strings.HasSuffix(word, "ies"):
		word = word[:n-3] + "y"
	case n > 4 && (strings.HasSuffix(word, "sses") || strings.HasSuffix(word, "xes") || strings.HasSuffix(word, "ches") || strings.HasSuffix(word, "shes")):
		word = word[:n-2]
	case n > 3 && word[n-1] == 's' && !strings.ContainsRune("sui", rune(word[n-2])):
		word = word[:n-1]
	}
	for _, ending := range []string{"ing", "ion", "ed"} {
		root, found := strings.CutSuffix(word, ending)
		if !found || len(root) < 3 || !strings.ContainsAny(root, "aeiouy") || ending == "ion" && !strings.HasSuffix(root, "t") && !strings.HasSuffix(root, "s") {
			continue
		}
		if n := len(root); root[n-1] == root[n-2] && !strings.ContainsRune("lsz", rune(root[n-1])) {
			root = root[:n-1]
		}
		return root
	}
	if n := len(word); n > 4 && word[n-1] == 'e' {
		word = word[:n-1]
	}
	return word
}
