package mcpkittest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// read handles the server's messages until its output ends, and waits for it to
// exit.
func (c *Client) read(out io.Reader) {
	defer close(c.exited)
	reader := bufio.NewReaderSize(out, 64<<10)
	answers := 0
	for {
		line, err := reader.ReadBytes('\n')
		if trimmed := bytes.TrimSpace(line); len(trimmed) > 0 {
			c.storeMessage(trimmed, &answers)
		}
		if err != nil {
			break
		}
	}
	err := c.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		c.exit = exit.ExitCode()
	} else if err != nil {
		c.exit = -1
	}
	c.mu.Lock()
	c.ended = true
	c.signalChange()
	c.mu.Unlock()
}

// signalChange wakes the goroutines that wait in Until. Hold c.mu.
func (c *Client) signalChange() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// storeMessage stores an answer or notification from the server, or answers the
// server's request in another goroutine. It counts answers.
func (c *Client) storeMessage(line []byte, answers *int) {
	var m struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params"`
		Result  json.RawMessage `json:"result"`
		Error   *RPCError       `json:"error"`
	}
	err := json.Unmarshal(line, &m)
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.signalChange()
	switch {
	case err != nil || m.Version != "2.0":
		c.badOutput = append(c.badOutput, fmt.Sprintf("standard output has something other than a message: %.200q", line))
	case m.Method != "" && m.ID != nil:
		go c.answerServer(string(m.ID), m.Method, m.Params)
	case m.Method != "":
		c.notifications = append(c.notifications, Notification{m.Method, m.Params, *answers})
	case (m.Result == nil) == (m.Error == nil):
		c.badOutput = append(c.badOutput, fmt.Sprintf("an answer has one of result and error: %.200q", line))
	default:
		*answers++
		id := string(orNull(m.ID))
		c.untaken[id] = append(c.untaken[id], Answer{id, m.Result, m.Error, line})
	}
}

// answerServer sends the answer to a request of the server: to ping and, with
// Options.Roots, to roots/list, otherwise the answer of Options.Handle. Without Handle it
// answers "method not found".
func (c *Client) answerServer(id, method string, params json.RawMessage) {
	var result any
	err := errors.New("not supported by this client")
	switch {
	case method == "roots/list" && c.opts.Roots != nil:
		list := []any{}
		for _, dir := range c.opts.Roots {
			slashed := filepath.ToSlash(dir)
			if !strings.HasPrefix(slashed, "/") {
				slashed = "/" + slashed
			}
			list = append(list, map[string]any{"uri": "file://" + escapePath(slashed)})
		}
		result, err = map[string]any{"roots": list}, nil
	case method == "ping":
		result, err = map[string]any{}, nil
	case c.opts.Handle != nil:
		result, err = c.opts.Handle(method, params)
	}
	answer := map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(id), "result": result}
	if err != nil {
		delete(answer, "result")
		answer["error"] = RPCError{Code: -32601, Message: err.Error()}
	}
	line, err := json.Marshal(answer)
	if err != nil {
		panic(fmt.Sprintf("answering %s: %v", method, err))
	}
	c.SendRaw(append(line, '\n'))
}

// stderrBuffer collects standard error, at most about 1 MiB; the rest is
// dropped. It is safe for concurrent use.
type stderrBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *stderrBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.buf.Len() < 1<<20 {
		b.buf.Write(p)
	}
	return len(p), nil
}

func (b *stderrBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// escapePath escapes the special characters of a file path for use in a file
// URL.
func escapePath(path string) string { return (&url.URL{Path: path}).EscapedPath() }
