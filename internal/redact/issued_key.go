package redact

import "strings"

// issuedKeyPrefixes are the beginnings of keys issued by well-known services.
var issuedKeyPrefixes = [...]string{
	"sk-", "pk-", "sk_", "pk_", "rk_", "ghp_", "gho_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "xoxa-", "xoxs-", "xapp-",
	"AKIA", "ASIA", "AIza", "ya29.", "eyJ", "hf_", "npm_", "pypi-", "whsec_", "lin_api_", "ntn_", "secret_", "dop_v1_",
}

// IsIssuedKey reports whether a word has the shape of a key issued by a
// well-known service.
func IsIssuedKey(word string) bool {
	if len(word) < 11 { // the shortest prefix and 8 more characters
		return false
	}
	for _, prefix := range issuedKeyPrefixes {
		if len(word) >= len(prefix)+8 && strings.HasPrefix(word, prefix) {
			return true
		}
	}
	return false
}
