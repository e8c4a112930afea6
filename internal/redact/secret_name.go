// Package redact recognises credentials by their name or shape and hides them
// in text and JSON. It has the only list of secret names, used for
// configuration dumps, the audit log, recordings, closed approvals, the trace
// of a tool server and the environment of commands.
package redact

import "strings"

// IsSecretName reports whether a member, variable, flag or header of this name
// holds a credential. It accepts camelCase, kebab-case, snake_case and names
// without separators. In doubt it returns true. It returns false for numbers of
// tokens (max_tokens), authors, keys that are not secret (primary_key), and
// "key" alone, which most tools use for the name of an entry.
func IsSecretName(name string) bool {
	words := splitWords(name)
	plain := strings.Join(words, "")
	switch {
	case plain == "" || plain == "progresstoken": // MCP's
		return false
	case containsAny(withoutAuthors(plain), secretParts[:]), plain == "session":
		return true
	case strings.Contains(plain, "token") && !isTokenCount(words, plain):
		return true
	}
	last := len(words) - 1
	for i, word := range words {
		switch {
		case isOneOf(word, secretWords[:]),
			i == last && isOneOf(word, secretLastWords[:]),
			i > 0 && word == "key" && !isOneOf(words[i-1], ordinaryKeyWords[:]):
			return true
		}
	}
	return false
}

var (
	// secretParts are matched anywhere in the name, without separators.
	secretParts = [...]string{
		"secret", "passw", "passphrase", "passcode", "credential", "auth", "cookie", "bearer", "signature", "jwt", "webhook",
		"apikey", "accesskey", "privatekey", "masterkey", "signingkey", "encryptionkey", "accountkey", "sessionkey",
		"sessionid", "sessid", "connectionstring", "databaseurl", "requeststate", "sshpass",
	}
	// secretWords are matched with each whole word of a name, secretLastWords
	// with the last word. ordinaryKeyWords are words before "key" that do not
	// make a name secret.
	secretWords      = [...]string{"creds", "cred", "pwd", "dsn", "otp", "totp", "csrf", "xsrf"}
	secretLastWords  = [...]string{"pat", "pass", "session", "pw"}
	ordinaryKeyWords = [...]string{
		"primary", "foreign", "public", "sort", "partition", "cache", "object", "group", "index", "lookup", "row", "column", "json",
		"idempotency", "dedup", "routing", "on", "hot", "by",
	}
	// tokenCountWords are the other words in the names of token counts.
	tokenCountWords = [...]string{
		"max", "min", "num", "n", "total", "count", "limit", "budget", "usage", "used", "left", "remaining", "per", "minute", "second", "day",
		"input", "output", "prompt", "completion", "reasoning", "thinking", "cached", "cache", "creation", "read", "write",
		"estimated", "context", "reserved", "text", "image", "audio", "tool", "system", "message", "new", "predicted", "accepted", "rejected", "prediction", "to", "sample", "of", "in", "out",
	}
)

// isTokenCount reports whether a name that contains "token" belongs to a number
// of tokens or a tokenizer. plain is the name without separators, words are its
// words.
func isTokenCount(words []string, plain string) bool {
	if strings.Contains(plain, "tokeniz") {
		return true
	}
	plural, number := false, false
	for _, word := range words {
		switch {
		case word == "tokens":
			plural = true
		case word == "token":
		case word == "count" || word == "limit" || word == "budget" || word == "usage":
			number = true
		case !isOneOf(word, tokenCountWords[:]):
			return false
		}
	}
	return plural || number
}

// withoutAuthors returns plain, a name without separators, with each "author"
// removed, so that author and authority do not count as "auth". It keeps
// authorize and authorization.
func withoutAuthors(plain string) string {
	for from := 0; ; {
		i := strings.Index(plain[from:], "author")
		if i < 0 {
			return plain
		}
		i += from
		rest := plain[i+len("author"):]
		if strings.HasPrefix(rest, "iz") || strings.HasPrefix(rest, "is") {
			from = i + len("author")
			continue
		}
		plain, from = plain[:i]+"-"+rest, i
	}
}

// containsAny reports whether text contains one of parts.
func containsAny(text string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

// isOneOf reports whether word is equal to one of words.
func isOneOf(word string, words []string) bool {
	for _, one := range words {
		if word == one {
			return true
		}
	}
	return false
}

// splitWords returns the words of a name in lower case. A new word begins after
// a byte that is not an ASCII letter or digit, and at a capital letter that
// follows a small letter or precedes one (clientSecret, APIKey).
func splitWords(name string) (words []string) {
	word := make([]byte, 0, 32)
	end := func() {
		if len(word) > 0 {
			words = append(words, string(word))
			word = word[:0]
		}
	}
	lower := func(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }
	for i := 0; i < len(name); i++ {
		c := name[i]
		switch {
		case lower(c):
			word = append(word, c)
		case c >= 'A' && c <= 'Z':
			if i > 0 && lower(name[i-1]) || i+1 < len(name) && name[i+1] >= 'a' && name[i+1] <= 'z' {
				end()
			}
			word = append(word, c+'a'-'A')
		default:
			end()
		}
	}
	end()
	return words
}
