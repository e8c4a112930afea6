package cli

import (
	"fmt"
	"strings"
)

// shellCommand quotes a command so that a shell reads the same words.
func shellCommand(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = shellWord(word)
		if i == 0 && quoted[i] == word && strings.Contains(word, "=") { // otherwise the shell would set a variable
			quoted[i] = "'" + word + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// shellWord quotes a word for a shell. A word with characters that cannot be shown is
// written as $'…', which bash, zsh and ksh support; any other word in POSIX syntax.
func shellWord(word string) string {
	safe := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("_@%+=:,./-", c)
	}
	switch {
	case word != "" && strings.IndexFunc(word, func(c rune) bool { return !safe(c) }) < 0:
		return word
	case printable(word) == word:
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for i := 0; i < len(word); i++ {
		switch c := word[i]; {
		case c == '\\' || c == '\'':
			b.WriteString(`\` + string(c))
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, `\x%02x`, c) //nolint:errcheck // a strings.Builder does not fail
		default:
			b.WriteByte(c)
		}
	}
	return b.String() + "'"
}
