package textfile

import (
	"bytes"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Guess is a guessed legacy encoding, with the other encodings that the bytes
// of a file may have.
type Guess struct {
	Encoding Encoding
	Rivals   []Encoding // other encodings in which the bytes are plausible text

	raw []byte
}

// maxGuessBytes bounds the bytes that are decoded to find rivals.
const maxGuessBytes = 256 << 10

// NewGuess returns the guess e for the bytes of a file, and finds its rivals.
// It keeps a reference to raw.
func NewGuess(raw []byte, e Encoding) *Guess {
	g := &Guess{Encoding: e, raw: raw}
	sample := raw
	if at := bytes.IndexFunc(raw, func(r rune) bool { return r >= utf8.RuneSelf }); at >= 0 {
		sample = raw[bytes.LastIndexByte(raw[:at], '\n')+1:]
	}
	if len(sample) > maxGuessBytes {
		sample = sample[:maxGuessBytes]
		sample = sample[:bytes.LastIndexByte(sample, '\n')+1] // whole characters only
	}
	for _, name := range EncodingNames() {
		if rival := Encoding(name); rival != e && rival != UTF8 && !rival.IsUTF16() && isPlausible(rival.Decode(sample)) {
			g.Rivals = append(g.Rivals, rival)
		}
	}
	return g
}

// EditIsUnambiguous reports whether replacing the bytes raw[start:end] by text
// has the same effect in every encoding that the bytes may have: the replaced
// bytes are the same characters in all, no character is split, and text is
// encoded as the same bytes.
func (g *Guess) EditIsUnambiguous(start, end int, text string) bool {
	from, to, ok := g.safeBounds(start, end)
	if !ok {
		return false
	}
	old, err := g.Encoding.Encode(text)
	if err != nil {
		return false
	}
	same := func(rival Encoding) bool {
		written, err := rival.Encode(text)
		before, gone, after := rival.Decode(g.raw[from:start]), rival.Decode(g.raw[start:end]), rival.Decode(g.raw[end:to])
		return err == nil && bytes.Equal(written, old) && gone == g.Encoding.Decode(g.raw[start:end]) &&
			rival.Decode(g.raw[from:to]) == before+gone+after &&
			rival.Decode(slices.Concat(g.raw[from:start], written, g.raw[end:to])) == before+text+after
	}
	return !slices.ContainsFunc(g.Rivals, func(e Encoding) bool { return !same(e) })
}

// maxBoundarySearch bounds the search for a character boundary, in bytes.
const maxBoundarySearch = 4 << 10

// safeBounds returns offsets before start and after end that are character
// boundaries in every encoding: at a line boundary, or after two ASCII bytes.
// ok is false if there are none within maxBoundarySearch.
func (g *Guess) safeBounds(start, end int) (from, to int, ok bool) {
	plain := func(i int) bool { return g.raw[i] < utf8.RuneSelf && (g.raw[i] < '0' || g.raw[i] > '9') }
	between := func(at int) bool {
		return at <= 0 || at >= len(g.raw) || g.raw[at-1] == '\n' || at > 1 && plain(at-1) && plain(at-2)
	}
	for from = start; !between(from); from-- {
		if start-from > maxBoundarySearch {
			return 0, 0, false
		}
	}
	for to = end; !between(to) || to < end; to++ {
		if to-end > maxBoundarySearch {
			return 0, 0, false
		}
	}
	return from, to, true
}

// TextIsUnambiguous reports whether text, which replaces the whole file, is
// right in every encoding that the file may have. Each run of non-ASCII
// characters must occur in old, the file's text, or be encoded as the same
// bytes.
func (g *Guess) TextIsUnambiguous(old, text string) bool {
	known := map[string]bool{}
	for _, run := range nonASCIIRuns(old) {
		known[run] = true
	}
	return !slices.ContainsFunc(nonASCIIRuns(text), func(run string) bool {
		if known[run] {
			return false
		}
		raw, err := g.Encoding.Encode(run)
		return err != nil || slices.ContainsFunc(g.Rivals, func(e Encoding) bool {
			other, err := e.Encode(run)
			return err != nil || !bytes.Equal(raw, other)
		})
	})
}

// nonASCIIRuns returns the runs of characters that are not ASCII.
func nonASCIIRuns(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r < utf8.RuneSelf })
}

// String returns the names of the guess and its rivals: "shift-jis, big5 or
// gbk".
func (g *Guess) String() string {
	const most = 6
	names := []string{string(g.Encoding)}
	for _, e := range g.Rivals[:min(len(g.Rivals), most)] {
		names = append(names, string(e))
	}
	if len(g.Rivals) > most {
		names = append(names, "another")
	}
	if len(names) == 1 {
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// isPlausible reports whether decoded bytes may be text. Text decoded with a
// wrong encoding has invalid characters, or letters in impossible combinations:
// of two alphabets, capitals after small letters, or with symbols between them.
func isPlausible(text string) bool {
	odd, foreign := 0, 0
	last, before := ' ', ' '
	for _, r := range text {
		switch {
		case r == utf8.RuneError, r >= 0x80 && r < 0xA0, r >= 0xE000 && r <= 0xF8FF:
			return false
		case r >= utf8.RuneSelf:
			foreign++
		}
		if isOddPair(last, r) || isOddSymbol(before, last, r) {
			odd++
		}
		before, last = last, r
	}
	return odd*10 <= foreign
}

// isOddPair reports whether two characters are letters that no word contains in a
// row.
func isOddPair(a, b rune) bool {
	if a < utf8.RuneSelf && b < utf8.RuneSelf || !unicode.IsLetter(a) || !unicode.IsLetter(b) {
		return false
	}
	return alphabetOf(a) != alphabetOf(b) && alphabetOf(a) > 0 && alphabetOf(b) > 0 ||
		unicode.IsLower(a) && unicode.IsUpper(b)
}

// alphabetOf returns a number for Latin, Greek and Cyrillic letters, which no
// word mixes. It returns 0 for other characters.
func alphabetOf(r rune) int {
	for i, table := range []*unicode.RangeTable{unicode.Latin, unicode.Greek, unicode.Cyrillic} {
		if unicode.Is(table, r) {
			return i + 1
		}
	}
	return 0
}

// isOddSymbol reports whether sign, between the characters a and b, is a
// non-ASCII symbol or a single Asian character inside a word.
func isOddSymbol(a, sign, b rune) bool {
	if unicode.In(sign, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) {
		return alphabetOf(a) > 0 && alphabetOf(b) > 0
	}
	return sign >= utf8.RuneSelf && sign != '\u2019' && sign != '\u00B7' && unicode.IsLetter(a) && unicode.IsLetter(b) &&
		(unicode.IsSymbol(sign) || unicode.IsPunct(sign)) && alphabetOf(a) > 0 && alphabetOf(b) > 0
}
