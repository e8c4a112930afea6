package redact

import "strings"

// privateKeyMark is a part of the first line of every kind of private key in
// PEM.
const privateKeyMark = "PRIVATE KEY-----"

// Text returns text with its credentials replaced by "***": words with the
// shape of an issued key, values after the name of a credential, passwords in
// URLs, and private keys with all text after them.
func Text(text string) string {
	if i := strings.Index(text, privateKeyMark); i >= 0 {
		return Text(text[:i]) + privateKeyMark + hiddenText
	}
	h := textRedactor{text: text}
	for pos := 0; pos < len(text); {
		for pos < len(text) && isSeparator(text[pos]) {
			pos++
		}
		begin := pos
		for pos < len(text) && !isSeparator(text[pos]) {
			pos++
		}
		h.redactWord(begin, pos)
	}
	return h.result()
}

// isSeparator reports whether a byte separates words: a blank or punctuation
// that no credential contains.
func isSeparator(c byte) bool {
	switch c {
	case ' ', '\t', '\n', '\r', '"', '\'', '`', ',', ';', '(', ')', '<', '>', '|', '{', '}', '[', ']', '&', '?':
		return true
	}
	return false
}

// textRedactor redacts a text word by word.
type textRedactor struct {
	text   string
	out    strings.Builder // of text[:copied]
	copied int

	afterName bool // the previous word is a credential's name
	hideNext  bool // this word is a credential
}

// redactWord hides text[begin:end], a word, if it is a credential, and records
// whether the next word is one.
func (h *textRedactor) redactWord(begin, end int) {
	word := h.text[begin:end]
	next, named := h.hideNext, h.afterName
	h.hideNext, h.afterName = false, false
	switch {
	case word == "":
	case next && isAuthScheme(word):
		h.hideNext = true
	case next:
		h.hide(begin, end)
	case named && (word == "=" || word == ":" || word == ":="):
		h.hideNext = true
	case isAuthScheme(word) || word[0] == '-' && IsSecretName(strings.TrimLeft(word, "-")) && !strings.ContainsAny(word, "=:"):
		h.hideNext = true
	case IsIssuedKey(word):
		h.hide(begin, end)
	default:
		h.redactPair(begin, end)
	}
}

// isAuthScheme reports whether a word is an HTTP authentication scheme, after
// which a credential follows.
func isAuthScheme(word string) bool {
	return strings.EqualFold(word, "bearer") || strings.EqualFold(word, "basic")
}

// redactPair hides the value in a word such as NAME=value or name:value, and
// the user and password in a URL.
func (h *textRedactor) redactPair(begin, end int) {
	word := h.text[begin:end]
	i := strings.IndexAny(word, "=:")
	if i < 0 {
		h.afterName = IsSecretName(word)
		return
	}
	if strings.HasPrefix(word[i:], "://") {
		rest := word[i+3:]
		host, _, _ := strings.Cut(rest, "/")
		if at := strings.LastIndexByte(host, '@'); at >= 0 {
			h.hide(begin+i+3, begin+i+3+at)
		}
		return
	}
	switch name, value := word[:i], word[i+1:]; {
	case IsSecretName(name) && value == "":
		h.hideNext = true
	case IsSecretName(name):
		h.hide(begin+i+1, end)
	case IsIssuedKey(value):
		h.hide(begin+i+1, end)
	case strings.Contains(value, "://") || strings.IndexByte(value, '=') >= 0:
		h.redactPair(begin+i+1, end)
	}
}

// hide replaces text[begin:end] by hiddenText in the output.
func (h *textRedactor) hide(begin, end int) {
	h.out.WriteString(h.text[h.copied:begin])
	h.out.WriteString(hiddenText)
	h.copied = end
}

// result returns the text with the hidden parts replaced.
func (h *textRedactor) result() string {
	if h.copied == 0 {
		return h.text
	}
	h.out.WriteString(h.text[h.copied:])
	return h.out.String()
}
