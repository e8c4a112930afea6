package oauth

import "strings"

// Challenge is the Bearer or DPoP challenge of WWW-Authenticate headers (RFC 6750,
// RFC 9449, RFC 9728).
type Challenge struct {
	Bearer   bool     `json:"bearer"`             // whether there is one
	DPoP     bool     `json:"dpop,omitempty"`     // it wants tokens that are bound to a key
	Metadata string   `json:"metadata,omitempty"` // address of the protected resource metadata
	Scopes   []string `json:"scopes,omitempty"`
	Error    string   `json:"error,omitempty"`
}

// maxChallenge is the longest header that is read.
const maxChallenge = 16 << 10

// ParseChallenge reads the Bearer challenge, else the DPoP challenge, of WWW-Authenticate headers.
// Malformed headers count as absent; without a challenge, the result is zero.
func ParseChallenge(headers []string) Challenge {
	for _, header := range headers {
		if len(header) > maxChallenge {
			continue
		}
		for _, scheme := range []string{"Bearer", dpopScheme} {
			if params, ok := schemeParams(header, scheme); ok {
				return Challenge{true, scheme == dpopScheme, params["resource_metadata"], strings.Fields(params["scope"]), params["error"]}
			}
		}
	}
	return Challenge{}
}

// schemeParams finds a scheme among the challenges of a header and returns its parameters,
// with names in lower case. It returns false if the header does not have the scheme.
func schemeParams(header, scheme string) (map[string]string, bool) {
	params, found := map[string]string{}, false
	for rest := header; ; {
		rest = strings.TrimLeft(rest, " \t,")
		end := strings.IndexAny(rest, " \t,=")
		if end < 0 {
			end = len(rest)
		}
		word, after := rest[:end], strings.TrimLeft(rest[end:], " \t")
		if word == "" {
			return params, found
		}
		value, isParam := strings.CutPrefix(after, "=")
		if !isParam { // a scheme
			if found {
				return params, true
			}
			found, rest = strings.EqualFold(word, scheme), after
			continue
		}
		text, left, ok := paramValue(strings.TrimLeft(value, " \t"))
		if !ok {
			return params, found
		}
		if rest = left; found {
			params[strings.ToLower(word)] = text
		}
	}
}

// paramValue reads a token or a quoted string from the start of text, and returns the rest. ok is
// false for a quoted string without an end.
func paramValue(text string) (value, rest string, ok bool) {
	if !strings.HasPrefix(text, `"`) {
		end := strings.IndexAny(text, " \t,")
		if end < 0 {
			end = len(text)
		}
		return text[:end], text[end:], true
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '"':
			return b.String(), text[i+1:], true
		case '\\':
			if i++; i == len(text) {
				return "", "", false
			}
		}
		b.WriteByte(text[i])
	}
	return "", "", false
}
