// Package spill is the stage that shortens results that are too large for a caller: in a
// result with more than 1 MiB of content, every part of more than 64 KiB is stored in a file
// (0600) and replaced by its beginning, its end, and the name of the file.
//
//   - A text keeps the first 8 KiB and the last 4 KiB, less if results may have at most 64 KiB,
//     cut between lines if there are any, and never inside a character.
//   - An image, a sound or an embedded resource becomes a text with its kind, size and file; the
//     file contains the decoded data.
//   - structuredContent is removed. If the tool declares an outputSchema, the result then gets
//     isError, since clients refuse a result without structured content.
//   - A result that is too large because of very many small parts is stored as a whole, as JSON.
//
// The rest is still a valid result: nothing is cut inside JSON. The names of the files are also
// in _meta, as toolroom/spilled. If no file can be created, the parts are cut nevertheless, and
// the result says that the rest is not stored. Results of users who signed in are not stored
// either: file tools with the same roots would show them to the other users. Questions to the caller (resultType
// input_required) pass unchanged.
package spill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// Config holds the limits.
type Config struct {
	MaxResult int // bytes of content; 0: 1 MiB. Negative: no limit

	// Dir returns the directory for files, which it creates and whose size it limits.
	// It is called for every shortened result.
	Dir func() (string, error)
}

// Validate returns nil: all values are valid.
func (c Config) Validate() error { return nil }

const (
	defaultMaxResult = 1 << 20
	maxPart          = 64 << 10 // bytes; smaller parts are never shortened
	headBytes        = 8 << 10  // at most half of the limit
	tailBytes        = 4 << 10  // at most a quarter of the limit
)

// New returns the stage, which shortens results of more than MaxResult bytes; 0 means the
// default, a negative number that it does nothing.
func New(c Config) call.Stage {
	if c.MaxResult == 0 {
		c.MaxResult = defaultMaxResult
	}
	return func(next call.Handler) call.Handler {
		if c.MaxResult < 0 {
			return next
		}
		return func(ctx context.Context, req *call.Request) (*call.Result, error) {
			res, err := next(ctx, req)
			if err != nil || len(res.Raw) <= c.MaxResult {
				return res, err
			}
			return c.shorten(req, res), nil
		}
	}
}

// result is a decoded result of a call.
type result struct {
	content    []json.RawMessage
	structured json.RawMessage // nil: none
	meta       json.RawMessage // nil: none
	failed     bool
	others     []jsonrpc.Member // all other members
}

// fits reports whether content and structuredContent certainly have at most most bytes.
// It parses nothing, so it can be false for a result that fits; for a single text it is
// exact.
func fits(members []jsonrpc.Member, most int) bool {
	n := 0
	for _, m := range members {
		switch m.Name {
		case "content":
			n += max(0, len(m.Value)-len("[]")-textOverhead)
		case "structuredContent":
			n += len(m.Value)
		}
	}
	return n <= most
}

// parseResult parses a result; ok is false if it is not a tool result.
func parseResult(members []jsonrpc.Member) (r result, ok bool) {
	var err error
	for _, m := range members {
		switch m.Name {
		case "content":
			if string(m.Value) == "null" {
				continue
			}
			if r.content, err = jsonrpc.Items(m.Value); err != nil {
				return r, false
			}
		case "structuredContent":
			r.structured = m.Value
		case "_meta":
			r.meta = m.Value
		case "isError":
			r.failed = string(m.Value) == "true"
		case "resultType":
			if string(m.Value) != `"complete"` {
				return r, false
			}
			r.others = append(r.others, m)
		default:
			r.others = append(r.others, m)
		}
	}
	return r, r.content != nil || r.structured != nil
}

// textOverhead is the number of bytes of JSON around a text.
const textOverhead = len(`{"type":"text","text":""}`)

// contentBytes returns the bytes of content without the JSON around texts.
func (r result) contentBytes() int {
	n := len(r.structured)
	for _, part := range r.content {
		n += len(part) - textOverhead
	}
	return n
}

// shorten returns a result with at most about MaxResult bytes of content.
func (c Config) shorten(req *call.Request, whole *call.Result) *call.Result {
	tool, dir := req.Tool, c.Dir
	if req.Caller.User != "" {
		dir = func() (string, error) { return "", errSignedIn }
	}
	members, err := jsonrpc.Members(whole.Raw)
	if err != nil || fits(members, c.MaxResult) {
		return whole
	}
	r, ok := parseResult(members)
	if !ok || r.contentBytes() <= c.MaxResult {
		return whole
	}
	limit := min(maxPart, c.MaxResult/4)
	s := &spiller{tool: tool, dir: dir, head: min(headBytes, limit/2), tail: min(tailBytes, limit/4)}
	for i, part := range r.content {
		if len(part) > limit {
			r.content[i] = s.shortenItem(part, limit)
		}
	}
	if len(r.structured) > limit {
		note := s.writeAndDescribe([]byte(r.structured), "json", "structuredContent")
		r.structured = nil
		r.failed = r.failed || tool.Output != nil
		r.content = append(r.content, textItem(note))
	}
	if r.contentBytes() > c.MaxResult {
		note := s.writeAndDescribe(whole.Raw, "json", "the result, whose parts are too many,")
		r.content, r.structured = []json.RawMessage{textItem(note)}, nil
		r.failed = r.failed || tool.Output != nil
	}
	return &call.Result{Raw: r.encode(s.files)}
}

// encode returns the JSON of a result, with the paths of the files in _meta.
func (r result) encode(files []string) json.RawMessage {
	n := 256
	for _, part := range r.content {
		n += len(part) + 1
	}
	out := append(make([]byte, 0, n+len(r.structured)), `{"content":[`...)
	for i, part := range r.content {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, part...)
	}
	out = append(out, ']')
	if r.structured != nil {
		out = append(append(out, `,"structuredContent":`...), r.structured...)
	}
	if r.failed {
		out = append(out, `,"isError":true`...)
	}
	for _, m := range r.others {
		out = append(append(jsonrpc.AppendString(append(out, ','), m.Name), ':'), m.Value...)
	}
	meta := []byte(r.meta)
	if len(meta) == 0 || meta[0] != '{' {
		meta = []byte(`{}`)
	}
	if len(files) > 0 {
		if names, err := jsonrpc.Marshal(files); err == nil {
			if with, err := jsonrpc.SetMember(meta, "toolroom/spilled", names); err == nil {
				meta = with
			}
		}
	}
	return append(append(append(out, `,"_meta":`...), meta...), '}')
}

// textItem returns a text content item.
func textItem(t string) json.RawMessage {
	return append(jsonrpc.AppendString([]byte(`{"type":"text","text":`), t), '}')
}

// spiller writes the files of one result.
type spiller struct {
	tool  *call.Tool
	dir   func() (string, error)
	head  int // kept bytes at the beginning of a text
	tail  int
	files []string
	path  string // path of the directory
	err   error  // why there are no files
}

// errNoDir is the reason without Config.Dir.
var errNoDir = errors.New("this host has no state directory")

// errSignedIn is the reason for users who signed in.
var errSignedIn = errors.New("this host keeps no files with results of users who signed in")

// writeFile writes data to a new file with mode 0600 and returns its path. After the first
// error it always fails.
func (s *spiller) writeFile(data []byte, ending string) (string, error) {
	if s.err == nil && s.path == "" {
		if s.dir == nil {
			s.err = errNoDir
		} else {
			s.path, s.err = s.dir()
		}
	}
	if s.err != nil {
		return "", s.err
	}
	f, err := os.CreateTemp(s.path, "result-"+s.tool.Name+"-*."+ending) // 0600
	if err != nil {
		s.err = err
		return "", err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		s.err = err
		os.Remove(f.Name()) //nolint:errcheck // the first error says it
		return "", err
	}
	s.files = append(s.files, f.Name())
	return f.Name(), nil
}

// writeAndDescribe writes data to a file and returns a text with its kind (what), size and
// path, or with the reason why it was not saved.
func (s *spiller) writeAndDescribe(data []byte, ending, what string) string {
	name, err := s.writeFile(data, ending)
	if err != nil {
		return fmt.Sprintf("[%s of %d bytes was too large and was not saved: %v; ask for less]", what, len(data), err)
	}
	return fmt.Sprintf("[%s of %d bytes was too large; it is in %s]", what, len(data), name)
}

// shortenText writes a text to a file and returns its beginning and end, with the number
// of omitted bytes and the path between them.
func (s *spiller) shortenText(whole string) string {
	head, tail := headOf(whole, s.head), tailOf(whole, s.tail)
	where := ""
	if name, err := s.writeFile([]byte(whole), "txt"); err != nil {
		where = fmt.Sprintf("the rest was not saved: %v; ask for less", err)
	} else {
		where = "full text in " + name
	}
	return fmt.Sprintf("%s\n\n[… %d of %d bytes (%d lines) omitted; %s …]\n\n%s",
		head, len(whole)-len(head)-len(tail), len(whole), strings.Count(whole, "\n")+1, where, tail)
}
