package mcpkit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/internal/redact"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// maxTraceString bounds a string in a trace, in bytes.
const maxTraceString = 200

// traceMessage logs one protocol message, redacted, at levelTrace. sent is false for a
// received message.
func traceMessage(sent bool, message []byte) {
	direction := "received "
	if sent {
		direction = "sent "
	}
	slog.Log(context.Background(), levelTrace, direction+redactMessage(message))
}

// redactMessage returns a message with likely secrets masked, long strings cut
// and the content of results omitted: a trace shows what was requested, and
// file contents do not belong in a log.
func redactMessage(message []byte) string {
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

// redactValue returns the value of a member with its strings redacted. It
// changes maps and slices in place.
func redactValue(memberName string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			v[key] = redactValue(key, member)
		}
	case []any:
		for i, item := range v {
			v[i] = redactValue(memberName, item)
		}
	case string:
		return redactString(memberName, v)
	case json.Number:
		if redact.IsSecretName(memberName) {
			return "***"
		}
	}
	return value
}

// redactString returns a member's string, masked if it is or contains a likely secret,
// and cut if it is long. For members with the content of results it returns only the
// size.
func redactString(memberName, text string) string {
	if redact.IsSecretName(memberName) {
		return "***"
	}
	switch memberName {
	case "text", "data", "blob": // the content of results
		return fmt.Sprintf("(%d bytes)", len(text))
	}
	text = redact.Text(text)
	if len(text) <= maxTraceString {
		return text
	}
	cut := maxTraceString
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return fmt.Sprintf("%s… (%d bytes)", text[:cut], len(text))
}
