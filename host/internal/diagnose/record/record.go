// Package record records a client's session with the host, and replays the client's messages
// to a host, to check whether it gives the same answers.
//
// # The file
//
// JSON, one value a line. The first line sets how answers are compared:
//
//	{"toolroom_session":1,"version":"v1.2.0","normalize":{"pointers":[…],"patterns":[…]}}
//
// Values at the JSON pointers (RFC 6901, below the message; * is any member or item) are not
// compared. Texts that match the patterns (Go's regular expressions) count as equal. Users may
// edit both lists, since only they know which results of their tools vary. Each further line
// is a message:
//
//	{"from":"client","message":{"jsonrpc":"2.0","id":1,"method":"ping"}}
//	{"from":"host","message":{"jsonrpc":"2.0","id":1,"result":{}}}
//
// or, for a line without JSON, {"from":"client","line":"…"}.
//
// # Credentials
//
// Values of members with names of credentials, and values that look like credentials, are
// replaced by ***. A line with such a replacement contains "hidden":true. The answer to such a
// request may differ in a replay.
package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"

	"github.com/toolroom-mcp/toolroom/internal/redact"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// Header is the first line of a recorded session.
type Header struct {
	Format    int       `json:"toolroom_session"`
	Version   string    `json:"version"` // version of the host
	Normalize Normalize `json:"normalize"`
}

// Normalize lists values that are not compared in a replay: JSON pointers, and regular
// expressions for parts of texts.
type Normalize struct {
	Pointers []string `json:"pointers"`
	Patterns []string `json:"patterns"`
}

// DefaultNormalize returns the rules for times, durations and generated ids.
func DefaultNormalize() Normalize {
	return Normalize{
		Pointers: []string{"/result/serverInfo/version", "/result/_meta/*"},
		Patterns: []string{
			`\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?`,
			`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`,
			`\b\d+(\.\d+)? ?(µs|ms|s|seconds)\b`,
		},
	}
}

// An Entry is a line of the session after the first: one message.
type Entry struct {
	From    string          `json:"from"` // client or host
	Message json.RawMessage `json:"message,omitempty"`
	Line    string          `json:"line,omitempty"`   // text of a line that is not JSON
	Hidden  bool            `json:"hidden,omitempty"` // credentials were replaced
}

// A Recorder records a running session. An error of writing does not disturb the
// session; Close returns it.
type Recorder struct {
	mu  sync.Mutex
	out io.Writer
	err error
}

// New writes the first line to out, with the host's version, and returns the Recorder.
func New(out io.Writer, version string) *Recorder {
	r := &Recorder{out: out}
	r.write(Header{Format: 1, Version: version, Normalize: DefaultNormalize()})
	return r
}

// write writes a line of the file. After the first error it does nothing.
func (r *Recorder) write(v any) {
	line, err := jsonrpc.Marshal(v)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return
	}
	if err == nil {
		_, err = r.out.Write(append(line, '\n'))
	}
	r.err = err
}

// Close returns the first error of writing; nil: the recording is complete. It does not
// close the file.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// RecordInput returns a reader that records, as messages of the client, what is read
// from in.
func (r *Recorder) RecordInput(in io.Reader) io.Reader {
	return io.TeeReader(in, &lineSplitter{each: func(line []byte) { r.write(newEntry("client", line)) }})
}

// RecordOutput returns a writer that records, as messages of the host, what is written
// to out.
func (r *Recorder) RecordOutput(out io.Writer) io.Writer {
	return io.MultiWriter(out, &lineSplitter{each: func(line []byte) { r.write(newEntry("host", line)) }})
}

// A lineSplitter passes the lines that are written to it to each. It drops lines that
// are too long for a message.
type lineSplitter struct {
	each func([]byte)
	have []byte // beginning of an incomplete line
	over bool   // the incomplete line is too long
}

// Write passes each complete line to each, without its end. It drops blank lines and
// lines longer than jsonrpc.MaxLine, and never returns an error.
func (l *lineSplitter) Write(p []byte) (int, error) {
	n := len(p)
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			break
		}
		line := append(l.have, p[:i]...)
		if len(bytes.TrimSpace(line)) > 0 && !l.over {
			l.each(line)
		}
		l.have, l.over, p = nil, false, p[i+1:]
	}
	if len(l.have)+len(p) > jsonrpc.MaxLine {
		l.have, l.over = nil, true
		return n, nil
	}
	if !l.over {
		l.have = append(l.have, p...)
	}
	return n, nil
}

// newEntry returns the entry for a line from the client or the host, with its
// credentials redacted.
func newEntry(from string, line []byte) Entry {
	message, hid, ok := redactLine(line)
	if !ok {
		text := strings.ToValidUTF8(string(line), "?")
		hidden := redact.Text(text)
		return Entry{From: from, Line: hidden, Hidden: hidden != text}
	}
	return Entry{From: from, Message: message, Hidden: hid}
}

// redactLine returns a JSON message with its credentials redacted; hid says whether
// there were any. A message without credentials stays unchanged. ok is false if the
// line is not JSON.
func redactLine(line []byte) (message json.RawMessage, hid, ok bool) {
	if jsonrpc.Valid(line) != nil {
		return nil, false, false
	}
	value, err := decode(line)
	if err != nil {
		return nil, false, false
	}
	value, hid = redactValue("", value)
	if !hid {
		return bytes.Clone(bytes.TrimSpace(line)), false, true
	}
	message, err = jsonrpc.Marshal(value)
	return message, true, err == nil
}

// decode returns a JSON value with numbers as json.Number; an error if raw is not JSON.
func decode(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var value any
	err := d.Decode(&value)
	return value, err
}

// redactValue returns the value of the member name with its credentials replaced, and
// whether there were any. It changes maps and lists in place.
func redactValue(name string, value any) (any, bool) {
	hid := false
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			hidden, did := redactValue(key, member)
			v[key], hid = hidden, hid || did
		}
	case []any:
		for i, item := range v {
			hidden, did := redactValue(name, item)
			v[i], hid = hidden, hid || did
		}
	case string:
		if isSecretMember(name) && v != "" {
			return "***", true
		}
		hidden := redact.Text(v)
		return hidden, hidden != v
	case json.Number:
		if isSecretMember(name) {
			return "***", true
		}
	}
	return value, hid
}

// isSecretMember reports whether the value of a member of this name is a credential. A
// replay needs the argument session of bash, which is a name that the model chooses.
func isSecretMember(name string) bool { return name != "session" && redact.IsSecretName(name) }

// A Session is a recorded session.
type Session struct {
	Header
	Entries  []Entry
	patterns []*regexp.Regexp // compiled Normalize.Patterns
}

// Read reads a recorded session. Its error names the line.
func Read(in io.Reader) (*Session, error) {
	f := &Session{}
	lines := jsonrpc.NewReader(in, 2*jsonrpc.MaxLine)
	for n := 1; ; n++ {
		line, err := lines.ReadLine()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = f.addLine(n, line)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if f.Format == 0 {
		return nil, errors.New("it is empty")
	}
	for _, pattern := range f.Normalize.Patterns {
		re, err := regexp.Compile(pattern)
		if err != nil {
			return nil, fmt.Errorf("line 1: normalize: %w", err)
		}
		f.patterns = append(f.patterns, re)
	}
	return f, nil
}

// addLine adds line n, counted from 1. It returns an error for a malformed line. A
// blank line becomes an empty entry.
func (f *Session) addLine(n int, line []byte) error {
	if n == 1 {
		err := json.Unmarshal(line, &f.Header)
		if err != nil || f.Format != 1 {
			return errors.New(`not a recorded session: want {"toolroom_session":1,…}`)
		}
		return nil
	}
	if len(bytes.TrimSpace(line)) == 0 {
		f.Entries = append(f.Entries, Entry{})
		return nil
	}
	var e Entry
	if err := json.Unmarshal(line, &e); err != nil {
		return err
	}
	if e.From != "client" && e.From != "host" {
		return fmt.Errorf(`"from" is %q, which is neither client nor host`, e.From)
	}
	f.Entries = append(f.Entries, e)
	return nil
}
