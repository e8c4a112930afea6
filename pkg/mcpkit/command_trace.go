package mcpkit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// traceText is how much of a string a trace shows.
const traceText = 200

// traceMessage logs one message of the wire, redacted.
func traceMessage(sent bool, message []byte) {
	direction := "received "
	if sent {
		direction = "sent "
	}
	slog.Log(context.Background(), LevelTrace, direction+redact(message))
}

// redact returns a message with what looks like a secret masked, and with
// long strings cut: a trace is for finding out what was asked, and file
// contents are nobody's business in a log.
func redact(message []byte) string {
	dec := json.NewDecoder(bytes.NewReader(message))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		return fmt.Sprintf("(%d bytes that are not JSON)", len(message))
	}
	shown, err := jsonrpc.Marshal(redactValue("", value))
	if err != nil {
		return fmt.Sprintf("(%d bytes)", len(message))
	}
	return string(shown)
}

func redactValue(name string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			v[key] = redactValue(key, member)
		}
	case []any:
		for i, item := range v {
			v[i] = redactValue(name, item)
		}
	case string:
		return redactText(name, v)
	case json.Number:
		if secretName(name) {
			return "***"
		}
	}
	return value
}

// secretName reports whether a member of that name holds a secret.
func secretName(name string) bool {
	name = strings.ToLower(name)
	if name == "progresstoken" || strings.HasSuffix(name, "_tokens") || strings.HasSuffix(name, "tokens") {
		return false
	}
	for _, word := range [...]string{"token", "secret", "password", "passwd", "passphrase", "credential",
		"authorization", "cookie", "apikey", "api_key", "api-key", "private_key", "privatekey", "requeststate"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

func redactText(name, text string) string {
	if secretName(name) {
		return "***"
	}
	switch name {
	case "text", "data", "blob": // the content of results
		return fmt.Sprintf("(%d bytes)", len(text))
	}
	text = secretPatterns().ReplaceAllString(text, "***")
	if len(text) <= traceText {
		return text
	}
	cut := traceText
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return fmt.Sprintf("%s… (%d bytes)", text[:cut], len(text))
}

// secretPatterns matches the usual shapes of secrets: keys of well-known
// services, bearer tokens, JSON web tokens, NAME=value of a telling name,
// passwords in URLs, PEM private keys. Compiled at the first trace.
var secretPatterns = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(strings.Join([]string{
		`(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}`,
		`gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}`,
		`(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[A-Za-z0-9_-]{30,}|xox[a-z]-[A-Za-z0-9-]{10,}`,
		`(?i:bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}`,
		`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`,
		`(?i)[a-z0-9_-]*(?:token|secret|passw(?:or)?d|api_?key|credential)[a-z0-9_-]*\s*[=:]\s*\S+`,
		`://[^/\s:@]+:[^/\s@]+@`,
		`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*`,
	}, "|"))
})
