package servercheck

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// A session is a running program with its streams.
type session struct {
	cfg   Config
	cmd   *exec.Cmd
	stdin io.WriteCloser

	mu         sync.Mutex
	lastID     int                        // id of the last request
	answers    map[string]jsonrpc.Message // by id
	noise      []string                   // first lines that are not messages
	noiseCount int                        // number of lines that are not messages
	unexpected []string                   // descriptions of answers without a request
	stderr     outputTail
	change     chan struct{} // closed and replaced when something arrives
	closed     bool          // the program closed its output

	exited chan struct{}
}

// outputTail keeps the end of the written text.
type outputTail struct {
	mu   sync.Mutex
	text []byte
}

// Write keeps the last 2000 bytes, and never fails.
func (t *outputTail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	const keep = 2000
	if t.text = append(t.text, p...); len(t.text) > keep {
		t.text = t.text[len(t.text)-keep:]
	}
	return len(p), nil
}

// lastLine returns the last line, which usually says why a program ended.
func (t *outputTail) lastLine() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return excerpt(upstream.Cause(string(t.text)))
}

// errGone means that the program has ended or closed its output.
var errGone = errors.New("the program has ended")

// startProgram starts the program, which ends with ctx. With atEnd, its standard input is
// at its end. The caller calls kill.
func startProgram(ctx context.Context, cfg Config, atEnd bool) (*session, error) {
	s := &session{cfg: cfg, answers: map[string]jsonrpc.Message{}, change: make(chan struct{}), exited: make(chan struct{})}
	s.cmd = exec.CommandContext(ctx, cfg.Command[0], cfg.Command[1:]...)
	s.cmd.Dir, s.cmd.Env, s.cmd.Stderr, s.cmd.WaitDelay = cfg.Dir, cfg.Env, &s.stderr, time.Second
	setGroup(s.cmd)
	var err error
	if !atEnd {
		if s.stdin, err = s.cmd.StdinPipe(); err != nil {
			return nil, err
		}
	}
	out, in := io.Pipe()
	s.cmd.Stdout = in
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		s.cmd.Wait() //nolint:errcheck // ProcessState has the result
		close(s.exited)
		in.Close() //nolint:errcheck // of a pipe in memory
	}()
	go s.read(out)
	return s, nil
}

// read handles the lines of the program's output until its end.
func (s *session) read(out io.Reader) {
	lines := jsonrpc.NewReader(out, 0)
	for {
		line, err := lines.ReadLine()
		switch {
		case errors.Is(err, jsonrpc.ErrTooLong):
			s.lockAndNotify(func() { s.noiseCount++ })
		case err != nil:
			s.lockAndNotify(func() { s.closed = true })
			io.Copy(io.Discard, out) //nolint:errcheck // so that the program does not block
			return
		case len(bytes.TrimSpace(line)) > 0:
			s.handleLine(line)
		}
	}
}

// handleLine handles a line of the server: it stores an answer, answers a request, and
// counts noise.
func (s *session) handleLine(line []byte) {
	m, err := jsonrpc.Split(line)
	s.lockAndNotify(func() {
		switch {
		case err != nil:
			if s.noiseCount++; len(s.noise) < 3 {
				s.noise = append(s.noise, excerpt(string(line)))
			}
		case m.Kind == jsonrpc.Response:
			id := string(m.ID)
			if _, twice := s.answers[id]; twice && id != "null" {
				s.unexpected = append(s.unexpected, "a second answer to "+id)
			}
			if n, err := strconv.Atoi(id); id != "null" && (err != nil || n < 1 || n > s.lastID) {
				s.unexpected = append(s.unexpected, "an answer to "+excerpt(id)+", which was not a request")
			}
			s.answers[id] = m
		}
	})
	if err == nil && m.Kind == jsonrpc.Request {
		if m.Method == "ping" {
			s.send(jsonrpc.AppendResult(nil, m.ID, json.RawMessage(`{}`)))
			return
		}
		s.send(jsonrpc.AppendError(nil, m.ID, jsonrpc.CodeMethodNotFound, "this client does not support "+m.Method))
	}
}

// lockAndNotify runs f with mu held and wakes those that wait for a change.
func (s *session) lockAndNotify(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.change)
	s.change = make(chan struct{})
}

// send writes one line, or nothing to a program started without standard
// input. A program that does not read it is noticed by its missing answer.
func (s *session) send(line []byte) {
	if s.stdin == nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.stdin.Write(append(line, '\n')) //nolint:errcheck // see above
	}()
	select {
	case <-done:
	case <-s.exited:
	case <-time.After(s.cfg.Timeout):
	}
}

// notify sends a notification.
func (s *session) notify(method, params string) {
	s.send(jsonrpc.AppendNotification(nil, method, rawParams(params)))
}

// rawParams returns params as JSON, nil for "".
func rawParams(params string) json.RawMessage {
	if params == "" {
		return nil
	}
	return json.RawMessage(params)
}

// sendRequest sends a request and returns its id.
func (s *session) sendRequest(method, params string) string {
	s.mu.Lock()
	s.lastID++
	id := strconv.Itoa(s.lastID)
	s.mu.Unlock()
	s.send(jsonrpc.AppendRequest(nil, json.RawMessage(id), method, rawParams(params)))
	return id
}

// request sends a request and waits for its answer, at most cfg.Timeout; then it returns an
// error.
func (s *session) request(method, params string) (jsonrpc.Message, error) {
	return s.waitForAnswer(s.sendRequest(method, params), s.cfg.Timeout)
}

// waitForAnswer returns the answer to the request id. It returns an error after
// timeout, and one that wraps errGone if the program has closed its output.
func (s *session) waitForAnswer(id string, timeout time.Duration) (jsonrpc.Message, error) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		s.mu.Lock()
		m, ok := s.answers[id]
		closed, change := s.closed, s.change
		s.mu.Unlock()
		switch {
		case ok:
			return m, nil
		case closed:
			if words := s.stderr.lastLine(); words != "" {
				return m, fmt.Errorf("%w; on its standard error: %s", errGone, words)
			}
			return m, errGone
		}
		select {
		case <-change:
		case <-timer.C:
			return m, fmt.Errorf("no answer within %v", timeout)
		}
	}
}

// closeInput closes the program's input and waits for its end. ended is false if the
// program was killed after timeout; status is its exit status.
func (s *session) closeInput(timeout time.Duration) (status int, ended bool) {
	if s.stdin != nil {
		s.stdin.Close() //nolint:errcheck // it may have gone
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-s.exited:
		killGroup(s.cmd) // processes that it started
		return s.cmd.ProcessState.ExitCode(), true
	case <-timer.C:
		s.kill()
		return -1, false
	}
}

// kill kills the program with its children and waits for its end.
func (s *session) kill() {
	killGroup(s.cmd)
	<-s.exited
}

// errorOf returns the code and message of a JSON-RPC error; 0: the answer is no error.
func errorOf(m jsonrpc.Message) (code int, message string) {
	var e struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	if m.Error == nil || json.Unmarshal(m.Error, &e) != nil {
		return 0, ""
	}
	return e.Code, excerpt(e.Message)
}

// excerpt returns the beginning of a text, at most 100 characters, on one line.
func excerpt(text string) string {
	text = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "?")
	if r := []rune(text); len(r) > 100 {
		return string(r[:99]) + "…"
	}
	return text
}
