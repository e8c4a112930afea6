// Package secret hides credentials: its type Text prints as three stars with every verb, and
// its functions copy command lines and addresses without the credentials.
//
// Credentials are recognized by their form (a flag called --token, a value that looks like an
// issued key), so that too much is hidden rather than too little.
package secret

import (
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
	"github.com/toolroom-mcp/toolroom/internal/redact"
)

var (
	authorityPattern   = lazyregexp.New(`//[^\s"'<>]+`)
	portPattern        = lazyregexp.New(`^[^/?#@]*:[0-9]*([/?#]|$)`)
	queryValuePattern  = lazyregexp.New(`([?&#][^=&#]*=)[^&#]*`)
	oneVariablePattern = lazyregexp.New(`^(\$\{[^{}]+\}|\{(env|file):[^{}]+\})$`)
	urlPartPattern     = lazyregexp.New(`[^/?&#=]+`)
)

// Hidden replaces a credential.
const Hidden = "***"

// Text is a value that only Reveal returns. Formatting, logging and encoding it produce
// Hidden.
type Text string

// Reveal returns the value, to be sent only to the server that it belongs to.
func (t Text) Reveal() string { return string(t) }

// Format prints Hidden for every verb, also for verbs that fmt does not know for a string.
func (t Text) Format(f fmt.State, _ rune) { io.WriteString(f, Hidden) } //nolint:errcheck // fmt keeps the error

// MarshalText returns Hidden, so that encoders do not write the value.
func (t Text) MarshalText() ([]byte, error) { return []byte(Hidden), nil }

// MarshalYAML returns Hidden.
func (t Text) MarshalYAML() (any, error) { return Hidden, nil }

// LogValue returns Hidden.
func (t Text) LogValue() slog.Value { return slog.StringValue(Hidden) }

// IsSecretName reports whether a variable, flag or header of this name holds a
// credential. A setting called key does, unlike an argument of a tool.
func IsSecretName(name string) bool {
	return strings.EqualFold(name, "key") || redact.IsSecretName(name)
}

// looksIssued reports whether a value looks like a key that a service issued.
func looksIssued(value string) bool {
	if redact.IsIssuedKey(value) {
		return true
	}
	if len(value) < 32 {
		return false
	}
	var letters, digits bool
	for _, r := range value {
		switch {
		case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z':
			letters = true
		case r >= '0' && r <= '9':
			digits = true
		case !strings.ContainsRune("_-+=", r):
			return false
		}
	}
	return letters && digits
}

// RedactURL returns an address with Hidden instead of its user and password, its query
// values and the parts of its path that look like keys.
func RedactURL(address string) string {
	address = authorityPattern().ReplaceAllStringFunc(address, redactUser)
	address = queryValuePattern().ReplaceAllString(address, "${1}"+Hidden)
	return urlPartPattern().ReplaceAllStringFunc(address, func(part string) string {
		if looksIssued(part) {
			return Hidden
		}
		return part
	})
}

// redactUser returns //USER:PASSWORD@HOST/… with Hidden instead of the user and the
// password. A password can contain @, / and ?, although that is not valid.
func redactUser(rest string) string {
	host := rest[len("//"):]
	end := strings.IndexAny(host, "/?#")
	if end < 0 {
		end = len(host)
	}
	at := strings.LastIndexByte(host[:end], '@')
	if at < 0 && strings.Contains(host[:end], ":") && !portPattern().MatchString(host) {
		at = strings.LastIndexByte(host, '@')
	}
	if at < 0 {
		return rest
	}
	return "//" + Hidden + host[at:]
}

// RedactArgs returns a copy of a command line in which Hidden replaces credentials: the
// values of such flags, assignments and headers, and values that look like keys.
func RedactArgs(args []string) []string {
	out := make([]string, len(args))
	hide := false
	for i, arg := range args {
		switch flag := strings.HasPrefix(arg, "-"); {
		case hide && !flag:
			out[i], hide = redactFlagValue(arg), false
			continue
		default:
			out[i] = redactArg(arg)
			hide = flag && !strings.Contains(arg, "=") && IsSecretName(strings.TrimLeft(arg, "-"))
		}
	}
	return out
}

// redactFlagValue returns Hidden for the value of a flag, or the value if it is only a
// variable.
func redactFlagValue(arg string) string {
	if isVariable(arg) {
		return arg
	}
	return Hidden
}

// isVariable reports whether a text is only a variable, without a default, which could
// be a credential.
func isVariable(text string) bool {
	return oneVariablePattern().MatchString(text) && !strings.Contains(text, ":-")
}

// IsCredential reports whether the name of a variable or header, or its value, looks
// like that of a credential.
func IsCredential(name, value string) bool { return IsSecretName(name) || looksIssued(value) }

// namedValuePattern matches a name and its value within a text: JSON (which may be in quotes
// itself), a header, a connection string, an assignment.
var namedValuePattern = lazyregexp.New(`([A-Za-z_][\w.-]*)(\\*["']?\s*[:=]\s*)((?i:(?:bearer|basic|token)\s+)?(?:\\*"[^"]*"?|\\*'[^']*'?|[^\s"';]+))`)

// The limits of searching a text. Text that is nested deeper, and a longer word, are
// hidden as a whole.
const (
	maxNested = 8
	maxWord   = 4096
)

// redactPairs returns a text in which Hidden replaces the values of names that hold
// credentials. depth is the number of texts around it.
func redactPairs(text string, depth int) string {
	if depth > maxNested {
		return Hidden
	}
	return namedValuePattern().ReplaceAllStringFunc(text, func(found string) string {
		part := namedValuePattern().FindStringSubmatch(found)
		switch {
		case !IsSecretName(part[1]): // it may be a flag before the pair: --env=TOKEN=…
			return part[1] + part[2] + redactPairs(part[3], depth+1)
		case isVariable(strings.Trim(part[3], `\"'`)) || strings.HasPrefix(part[3], Hidden):
			return found
		}
		return part[1] + part[2] + Hidden
	})
}

// redactArg returns one argument of a command line with Hidden instead of the
// credentials in it.
func redactArg(arg string) string {
	if len(arg) > maxWord && !strings.ContainsAny(arg, " \t\r\n") {
		return Hidden
	}
	if !strings.Contains(arg, "://") || strings.ContainsAny(arg, " \"';") { // else it is an address, of which URL knows more
		arg = redactPairs(arg, 0)
	}
	if strings.Contains(arg, "://") {
		if name, rest, ok := strings.Cut(arg, "="); ok && len(arg) <= maxWord && !strings.Contains(name, "://") {
			if IsSecretName(strings.TrimLeft(name, "-")) {
				return name + "=" + redactFlagValue(rest)
			}
			return name + "=" + redactArg(rest)
		}
		return redactPairs(RedactURL(arg), 0)
	}
	for _, mark := range []string{"=", ":"} {
		name, rest, ok := strings.Cut(arg, mark)
		if ok && rest != "" && !strings.ContainsAny(name, " /\\${") && IsSecretName(strings.TrimLeft(name, "-")) {
			return name + mark + redactFlagValue(strings.TrimSpace(rest))
		}
	}
	if words := strings.Fields(arg); len(words) > 1 { // a command line in one, as after sh -c
		if hidden := strings.Join(RedactArgs(words), " "); hidden != strings.Join(words, " ") {
			return hidden
		}
		return arg
	}
	for _, part := range strings.FieldsFunc(arg, func(r rune) bool { return strings.ContainsRune(",;:='\"", r) }) {
		if looksIssued(part) {
			return Hidden
		}
	}
	return arg
}
