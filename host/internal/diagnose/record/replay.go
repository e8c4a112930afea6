package record

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/textdiff"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// An Outcome is the result of replaying a session.
type Outcome struct {
	Answers     int          `json:"answers"` // number of compared answers
	Differences []Difference `json:"differences"`
}

// A Difference is an answer that differs from the recorded one.
type Difference struct {
	Line    int    `json:"line"`    // line in the file
	Request string `json:"request"` // method and name of the request
	Diff    string `json:"diff"`    // unified, from the recorded to the new answer
}

// A player replays a session.
type player struct {
	file *Session
	out  io.Writer // to the host

	mu           sync.Mutex
	answers      map[string][]jsonrpc.Message
	hostRequests []jsonrpc.Message // requests of the host that were not compared yet
	change       chan struct{}     // closed and replaced when something arrives
	ended        bool              // the host has closed its output

	clientRequests map[string]string // the client's requests by id
	isRedacted     map[string]bool   // whether values of the request were redacted
	ids            map[string]string // ids of the host's requests, new by recorded
}

// Replay sends the client's messages to a host, in the recorded order of messages and
// answers, and compares the answers. serve runs the host until in ends. timeout is the
// longest time to wait for an answer. It does not compare the host's notifications,
// because their number depends on timing. It fails if serve fails or a message cannot
// be sent.
func Replay(ctx context.Context, f *Session, timeout time.Duration, serve func(ctx context.Context, in io.Reader, out io.Writer) error) (Outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in, toHost := io.Pipe()
	fromHost, out := io.Pipe()
	p := &player{
		file: f, out: toHost, answers: map[string][]jsonrpc.Message{}, change: make(chan struct{}),
		clientRequests: map[string]string{}, isRedacted: map[string]bool{}, ids: map[string]string{},
	}
	var work sync.WaitGroup
	var served error
	work.Go(func() {
		served = serve(ctx, in, out)
		out.Close() //nolint:errcheck // of a pipe in memory
		in.Close()  //nolint:errcheck // the same
	})
	work.Go(func() { p.read(fromHost) })
	outcome, err := p.play(ctx, timeout)
	toHost.Close() //nolint:errcheck // of a pipe in memory
	done := make(chan struct{})
	go func() { work.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(timeout):
		cancel()
		<-done
	}
	return outcome, errors.Join(err, served)
}

// read stores the host's answers and requests, for waitUntil, until its output ends.
func (p *player) read(from io.Reader) {
	lines := jsonrpc.NewReader(from, 0)
	for {
		line, err := lines.ReadLine()
		m, bad := jsonrpc.Split(bytes.Clone(line))
		p.mu.Lock()
		switch {
		case err != nil:
			p.ended = true
		case bad != nil:
		case m.Kind == jsonrpc.Response:
			p.answers[string(m.ID)] = append(p.answers[string(m.ID)], m)
		case m.Kind == jsonrpc.Request:
			p.hostRequests = append(p.hostRequests, m)
		}
		close(p.change)
		p.change = make(chan struct{})
		p.mu.Unlock()
		if err != nil {
			io.Copy(io.Discard, from) //nolint:errcheck // so that the host does not block
			return
		}
	}
}

// play sends the recorded messages of the client and compares the answers. It waits at
// most timeout for each answer. A missing request of the host is a difference; a
// message that cannot be sent is an error.
func (p *player) play(ctx context.Context, timeout time.Duration) (Outcome, error) {
	outcome := Outcome{Differences: []Difference{}}
	for i, e := range p.file.Entries {
		line := i + 2
		if e.From == "" {
			continue
		}
		m, bad := jsonrpc.Split(e.Message)
		switch {
		case e.From == "client":
			if err := p.send(e, m, bad == nil); err != nil {
				return outcome, fmt.Errorf("line %d: %w", line, err)
			}
		case bad != nil || m.Kind == jsonrpc.Notification:
		case m.Kind == jsonrpc.Request:
			if !p.waitForRequest(ctx, m, timeout) {
				outcome.Differences = append(outcome.Differences, Difference{line, m.Method, "the host did not send this request\n"})
			}
		default:
			outcome.Answers++
			d, err := p.compare(ctx, e, m, timeout)
			if err != nil {
				return outcome, err
			}
			if d != "" {
				what := p.clientRequests[string(m.ID)]
				if p.isRedacted[string(m.ID)] {
					what += " (credentials were left out of the request)"
				}
				outcome.Differences = append(outcome.Differences, Difference{line, what, d})
			}
		}
	}
	return outcome, nil
}

// send sends a recorded message of the client; an answer to the host gets the id of the
// host's new request, or is left out if none exists. whole says that m was parsed from it. It
// returns an error if the host has ended.
func (p *player) send(e Entry, m jsonrpc.Message, whole bool) error {
	text := []byte(e.Line)
	if e.Message != nil {
		text = e.Message
	}
	if whole {
		id := string(m.ID)
		switch m.Kind {
		case jsonrpc.Request:
			p.clientRequests[id], p.isRedacted[id] = requestSubject(m), e.Hidden
		case jsonrpc.Response:
			now, ok := p.ids[id]
			if !ok {
				return nil // an answer to a request that the host did not send this time
			}
			var err error
			if text, err = jsonrpc.SetMember(text, "id", json.RawMessage(now)); err != nil {
				return err
			}
		}
	}
	_, err := p.out.Write(append(bytes.Clone(text), '\n'))
	if err != nil {
		return fmt.Errorf("the host has ended: %w", err)
	}
	return nil
}

// requestSubject returns the method of a request with the name or URI in its params.
func requestSubject(m jsonrpc.Message) string {
	var p struct {
		Name string `json:"name"`
		URI  string `json:"uri"`
	}
	if json.Unmarshal(m.Params, &p) != nil || p.Name+p.URI == "" {
		return m.Method
	}
	return m.Method + " " + p.Name + p.URI
}

// waitUntil waits until take returns true, and reports whether it did. take is called
// with p.mu held, now and after each change. It returns false if timeout or ctx ends
// first, or if the host's output has ended.
func (p *player) waitUntil(ctx context.Context, timeout time.Duration, take func() bool) bool {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		p.mu.Lock()
		ok, over, change := take(), p.ended, p.change
		p.mu.Unlock()
		if ok || over {
			return ok
		}
		select {
		case <-change:
		case <-timer.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// waitForRequest waits for a request of the host with the method of the recorded
// request m, and reports whether it came.
func (p *player) waitForRequest(ctx context.Context, m jsonrpc.Message, timeout time.Duration) bool {
	return p.waitUntil(ctx, timeout, func() bool {
		for i, asked := range p.hostRequests {
			if asked.Method == m.Method {
				p.ids[string(m.ID)] = string(asked.ID)
				p.hostRequests = append(p.hostRequests[:i:i], p.hostRequests[i+1:]...)
				return true
			}
		}
		return false
	})
}

// compare waits for the answer to the recorded answer m, at most timeout, and returns the
// differences as text; "": none. A missing answer is a difference. It returns the error of
// ctx.
func (p *player) compare(ctx context.Context, e Entry, m jsonrpc.Message, timeout time.Duration) (string, error) {
	id := string(m.ID)
	var got jsonrpc.Message
	if !p.waitUntil(ctx, timeout, func() bool {
		list := p.answers[id]
		if len(list) == 0 {
			return false
		}
		got, p.answers[id] = list[0], list[1:]
		return true
	}) {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		return "no answer\n", nil
	}
	raw := jsonrpc.AppendResult(nil, got.ID, got.Result)
	if got.Error != nil {
		raw = jsonrpc.AppendErrorObject(nil, got.ID, got.Error)
	}
	now, _, _ := redactLine(raw)
	was, is := p.file.comparisonText(e.Message), p.file.comparisonText(now)
	if was == is {
		return "", nil
	}
	return textdiff.Unified([]byte(was), textdiff.Between([]byte(was), is), textdiff.Options{Old: "recorded", New: "now", MaxLines: 200, MaxLineBytes: 400}).Text, nil
}

// comparisonText returns a message in the form for comparison: sorted, indented, with a
// line for each line of its texts, and without the excluded values.
func (f *Session) comparisonText(message json.RawMessage) string {
	value, err := decode(message)
	if err != nil {
		return string(message) + "\n"
	}
	for _, pointer := range f.Normalize.Pointers {
		value = replaceAt(value, strings.Split(strings.TrimPrefix(pointer, "/"), "/"))
	}
	var out strings.Builder
	f.render(&out, "", value)
	return out.String()
}

// unescape decodes a token of a JSON pointer (RFC 6901).
var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// replaceAt returns value with "(not compared)" at path, the tokens of a JSON pointer;
// * is any member or item. It changes maps and lists in place.
func replaceAt(value any, path []string) any {
	if len(path) == 0 {
		return "(not compared)"
	}
	name := unescape.Replace(path[0])
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			if key == name || path[0] == "*" {
				v[key] = replaceAt(member, path[1:])
			}
		}
	case []any:
		for i, item := range v {
			if strconv.Itoa(i) == name || path[0] == "*" {
				v[i] = replaceAt(item, path[1:])
			}
		}
	}
	return value
}

// render writes a line for each scalar below the pointer at, with its pointer.
func (f *Session) render(out *strings.Builder, at string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range sortedKeys(v) {
			f.render(out, at+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(key), v[key])
		}
		if len(v) == 0 {
			fmt.Fprintf(out, "%s {}\n", at)
		}
	case []any:
		for i, item := range v {
			f.render(out, at+"/"+strconv.Itoa(i), item)
		}
		if len(v) == 0 {
			fmt.Fprintf(out, "%s []\n", at)
		}
	case string:
		for _, re := range f.patterns {
			v = re.ReplaceAllString(v, "(…)")
		}
		if !strings.Contains(v, "\n") {
			fmt.Fprintf(out, "%s %q\n", at, v)
			return
		}
		fmt.Fprintf(out, "%s:\n", at)
		for line := range strings.Lines(v) {
			fmt.Fprintf(out, "  %s\n", strings.TrimSuffix(line, "\n"))
		}
	default:
		fmt.Fprintf(out, "%s %v\n", at, v)
	}
}

// sortedKeys returns the keys of a map in ascending order.
func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }
