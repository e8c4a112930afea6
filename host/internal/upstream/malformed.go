package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"regexp"
	"strconv"
	"sync"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// messagePatterns matches the beginnings and ends of messages as SDKs write them. For a
// malformed message they show which request it answers.
type messagePatterns struct{ begins, calls, ends *regexp.Regexp }

// compiledForms compiles the expressions at their first use, which is rare, so that a
// start does not pay for it.
var compiledForms = sync.OnceValue(func() messagePatterns {
	const (
		version = `(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?`
		id      = `"id"\s*:\s*"?([0-9]{1,20})"?\s*`
	)
	return messagePatterns{
		begins: regexp.MustCompile(`^\s*\{\s*` + version + id + `,\s*` + version + `"(?:result|error)"\s*:`),
		calls:  regexp.MustCompile(`^\s*\{\s*` + version + `(?:"id"\s*:\s*(?:"[^"\\]{0,100}"|-?[0-9]{1,20})\s*,\s*)?` + version + `"method"\s*:`),
		ends:   regexp.MustCompile(`,\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*` + id + `\}\s*$`),
	}
})

const formSize = 256 // bytes that beginnings and ends are looked for in

// answeredID returns the id of the request that a malformed line answers, nil if it is
// unknown.
func answeredID(line []byte, err error) json.RawMessage {
	head, tail := line[:min(len(line), formSize)], line[max(0, len(line)-formSize):]
	var fault *jsonrpc.Error
	has := errors.As(err, &fault) && fault.ID != nil
	says := bytes.Contains(head, []byte(`"result"`)) || bytes.Contains(head, []byte(`"error"`))
	if !says && !(has && bytes.Contains(line, []byte(`"jsonrpc"`))) { // log lines may contain ids as well
		return nil
	}
	known := compiledForms()
	if known.calls.Match(head) {
		return nil
	}
	if has {
		return fault.ID
	}
	if m := known.begins.FindSubmatch(head); m != nil {
		return m[1]
	}
	if m := known.ends.FindSubmatch(tail); m != nil {
		return m[1]
	}
	return nil
}

// failTooLong fails the call whose answer was too long. If that call is unknown, it fails
// all waiting calls, since one of them would wait forever. It ignores lines that are
// not answers.
func (c *conn) failTooLong(err error) {
	failed := answer{err: c.cfg.tooLong()}
	id, isCall := longHead(err)
	switch {
	case id != nil:
		c.deliver(id, failed)
		return
	case isCall:
		c.noise.Add(1)
		return
	}
	c.mu.Lock()
	waiting := c.pending
	c.pending = map[uint64]*pendingRequest{}
	c.mu.Unlock()
	for _, p := range waiting {
		p.answer <- failed
	}
}

// tooLong returns the error for an answer that was too long.
func (c Config) tooLong() error {
	return toolerr.New(toolerr.TooLarge, "the server sent a message of more than %d bytes, which was dropped; ask for less in one call", c.MaxLine)
}

// longHead returns the id of the request that a too long line answers; nil if it is
// unknown. isCall is true if the line is a request or notification.
func longHead(err error) (id json.RawMessage, isCall bool) {
	var long *jsonrpc.TooLongError
	if !errors.As(err, &long) {
		return nil, false
	}
	known := compiledForms()
	if m := known.begins.FindSubmatch(long.Head); m != nil {
		return m[1], false
	}
	return nil, known.calls.Match(long.Head)
}

// rpcError converts the error of a server's answer. It adds a missing code or message:
// clients reject an error without a numeric code or a text message, and wait for
// another answer.
func (c Config) rpcError(object json.RawMessage) error {
	var e struct{ Code, Message json.RawMessage }
	if object[0] != '{' || json.Unmarshal(object, &e) != nil {
		return toolerr.New(toolerr.ProtocolError, "the server's error is not an object: %s", c.redact(firstTextLine(object)))
	}
	code, message := jsonrpc.CodeInternal, ""
	if n, err := strconv.ParseFloat(string(e.Code), 64); err == nil && n == math.Trunc(n) && math.Abs(n) < 1<<53 {
		code = int(n)
	}
	if json.Unmarshal(e.Message, &message) != nil || e.Message[0] != '"' {
		message = firstTextLine(object)
	}
	for _, lacks := range []jsonrpc.Member{
		{Name: "code", Value: strconv.AppendInt(nil, int64(code), 10)},
		{Name: "message", Value: jsonrpc.AppendString(nil, message)},
	} {
		if has := jsonrpc.MemberOf(object, lacks.Name); lacks.Name == "message" && has != nil && has[0] == '"' || bytes.Equal(has, lacks.Value) {
			continue
		}
		put, err := jsonrpc.SetMember(object, lacks.Name, lacks.Value)
		if err != nil { // for example a duplicate member
			return toolerr.New(toolerr.ProtocolError, "the server's error is malformed: %w", err)
		}
		object = put
	}
	return &call.MCPError{Code: code, Message: c.redact(message), Object: object}
}
