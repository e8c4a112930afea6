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

// forms are how messages begin and end, as SDKs write them. Of what cannot be
// read they tell whose answer it was to be.
type forms struct{ begins, calls, ends *regexp.Regexp }

// knownForms are compiled when they are first used: it is rare, and a start
// should not pay for it.
var knownForms = sync.OnceValue(func() forms {
	const (
		version = `(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?`
		id      = `"id"\s*:\s*"?([0-9]{1,20})"?\s*`
	)
	return forms{
		begins: regexp.MustCompile(`^\s*\{\s*` + version + id + `,\s*` + version + `"(?:result|error)"\s*:`),
		calls:  regexp.MustCompile(`^\s*\{\s*` + version + `(?:"id"\s*:\s*(?:"[^"\\]{0,100}"|-?[0-9]{1,20})\s*,\s*)?` + version + `"method"\s*:`),
		ends:   regexp.MustCompile(`,\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*` + id + `\}\s*$`),
	}
})

const formSize = 256 // bytes that beginnings and ends are looked for in

// answerTo is the id of the request that a malformed line was to answer; nil:
// it cannot be told.
func answerTo(line []byte, err error) json.RawMessage {
	head, tail := line[:min(len(line), formSize)], line[max(0, len(line)-formSize):]
	var fault *jsonrpc.Error
	has := errors.As(err, &fault) && fault.ID != nil
	says := bytes.Contains(head, []byte(`"result"`)) || bytes.Contains(head, []byte(`"error"`))
	if !says && !(has && bytes.Contains(line, []byte(`"jsonrpc"`))) { // what a server logs may have an id, too
		return nil
	}
	known := knownForms()
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

// tooLong fails the call whose answer was too long to keep. If that cannot be
// told, it fails all that wait: one of them would wait for ever. What is no
// answer nobody waits for.
func (c *conn) tooLong(err error) {
	failed := answer{err: toolerr.New(toolerr.TooLarge,
		"the server sent a message of more than %d bytes, which was dropped; ask for less at once", c.cfg.MaxLine)}
	var long *jsonrpc.TooLongError
	if errors.As(err, &long) {
		known := knownForms()
		if m := known.begins.FindSubmatch(long.Head); m != nil {
			c.deliver(m[1], failed)
			return
		}
		if known.calls.Match(long.Head) {
			c.noise.Add(1)
			return
		}
	}
	c.mu.Lock()
	waiting := c.pending
	c.pending = map[uint64]*pending{}
	c.mu.Unlock()
	for _, p := range waiting {
		p.answer <- failed
	}
}

// rpcError is the error that a server answers with. Clients read an answer as a
// whole, and wait for another one where its error has no number for a code, or no
// text for a message: so it is given what it lacks.
func (c Config) rpcError(object json.RawMessage) error {
	var e struct{ Code, Message json.RawMessage }
	if object[0] != '{' || json.Unmarshal(object, &e) != nil {
		return toolerr.New(toolerr.ProtocolError, "the server's error is not an object: %s", c.conceal(plainLine(object)))
	}
	code, message := jsonrpc.CodeInternal, ""
	if n, err := strconv.ParseFloat(string(e.Code), 64); err == nil && n == math.Trunc(n) && math.Abs(n) < 1<<53 {
		code = int(n)
	}
	if json.Unmarshal(e.Message, &message) != nil || e.Message[0] != '"' {
		message = plainLine(object)
	}
	for _, lacks := range []jsonrpc.Member{
		{Name: "code", Value: strconv.AppendInt(nil, int64(code), 10)},
		{Name: "message", Value: jsonrpc.AppendString(nil, message)},
	} {
		if has := jsonrpc.MemberOf(object, lacks.Name); lacks.Name == "message" && has != nil && has[0] == '"' || bytes.Equal(has, lacks.Value) {
			continue
		}
		put, err := jsonrpc.SetMember(object, lacks.Name, lacks.Value)
		if err != nil { // a member twice, say
			return toolerr.New(toolerr.ProtocolError, "the server's error is malformed: %w", err)
		}
		object = put
	}
	return &call.MCPError{Code: code, Message: c.conceal(message), Object: object}
}
