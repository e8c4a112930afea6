package trace

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// spanContext holds the trace-id, parent-id and sampled flag of W3C Trace Context.
type spanContext struct {
	trace   [16]byte
	span    [8]byte
	sampled bool
}

// newTrace returns a random trace id. It is no secret.
func newTrace() (id [16]byte) {
	binary.BigEndian.PutUint64(id[:8], rand.Uint64())
	binary.BigEndian.PutUint64(id[8:], rand.Uint64()|1) // never zero
	return id
}

// newSpan returns a random span id, which is never zero.
func newSpan() (id [8]byte) {
	binary.BigEndian.PutUint64(id[:], rand.Uint64()|1)
	return id
}

// traceparent encodes the context in version 00.
func (c spanContext) traceparent() string {
	out := append(make([]byte, 0, 55), "00-"...)
	out = append(hex.AppendEncode(out, c.trace[:]), '-')
	out = hex.AppendEncode(out, c.span[:])
	if c.sampled {
		return string(append(out, "-01"...))
	}
	return string(append(out, "-00"...))
}

// parseTraceparent parses a traceparent as W3C Trace Context specifies: of a later version,
// only the known part. ok is false for an invalid one.
func parseTraceparent(text string) (c spanContext, ok bool) {
	if len(text) < 55 || text[2] != '-' || text[35] != '-' || text[52] != '-' || text != strings.ToLower(text) {
		return c, false
	}
	var version, flags [1]byte
	for _, part := range []struct {
		dst  []byte
		from string
	}{{version[:], text[:2]}, {c.trace[:], text[3:35]}, {c.span[:], text[36:52]}, {flags[:], text[53:55]}} {
		if _, err := hex.Decode(part.dst, []byte(part.from)); err != nil {
			return spanContext{}, false
		}
	}
	switch {
	case version[0] == 0xff,
		version[0] == 0 && len(text) != 55,
		len(text) > 55 && text[55] != '-',
		c.trace == [16]byte{}, c.span == [8]byte{}:
		return spanContext{}, false
	}
	c.sampled = flags[0]&1 != 0
	return c, true
}

// maxState bounds the forwarded bytes of a tracestate.
const maxState = 512

// parentOf returns the traceparent and tracestate in the _meta of params. ok is false if
// there is no valid traceparent.
func parentOf(params json.RawMessage) (parent spanContext, state string, ok bool) {
	if !bytes.Contains(params, []byte("traceparent")) {
		return parent, "", false
	}
	for _, m := range metaOf(params) {
		var text string
		if (m.Name != "traceparent" && m.Name != "tracestate") || json.Unmarshal(m.Value, &text) != nil {
			continue
		}
		if m.Name == "traceparent" {
			parent, ok = parseTraceparent(text)
		} else if len(text) <= maxState {
			state = text
		}
	}
	if !ok {
		state = ""
	}
	return parent, state, ok
}

// metaOf returns the members of _meta; none if it is absent or invalid.
func metaOf(params json.RawMessage) []jsonrpc.Member {
	members, err := jsonrpc.Members(params)
	if err != nil {
		return nil
	}
	for _, m := range members {
		if m.Name == "_meta" {
			if meta, err := jsonrpc.Members(m.Value); err == nil {
				return meta
			}
		}
	}
	return nil
}

// inject returns params with this span's context in _meta. Everything else stays
// unchanged, except that a tracestate without a valid traceparent is removed, as the
// standard demands.
func (s *span) inject(params json.RawMessage) json.RawMessage {
	if len(params) == 0 {
		params = json.RawMessage(`{}`)
	}
	meta := []byte(`{"traceparent":"` + s.id.traceparent() + `"`)
	for _, m := range metaOf(params) {
		if m.Name == "traceparent" || m.Name == "tracestate" && s.state == "" {
			continue
		}
		meta = append(jsonrpc.AppendString(append(meta, ','), m.Name), ':')
		meta = append(meta, m.Value...)
	}
	out, err := jsonrpc.SetMember(params, "_meta", append(meta, '}'))
	if err != nil { // not an object: the server's connection reports it
		return params
	}
	return out
}
