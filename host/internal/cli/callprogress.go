package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
)

// callProgress shows on standard error the progress of a running call: the progress in
// the status line, and log messages as lines. Without a status line, progress is also
// shown as lines.
type callProgress struct {
	p      *program
	tool   *call.Tool
	server *upstream.Server // nil: the tool needs no server
	begin  time.Time

	mu   sync.Mutex
	last string // last progress text
}

// showProgress shows the progress of a request until done is called. With quiet it shows
// nothing; with lines it does so although standard error is no terminal. It sets OnNotify of
// the request, if it shows something.
func (p *program) showProgress(a *core.App, req *call.Request, quiet, lines bool) (done func()) {
	if quiet || p.line == nil && !lines {
		return func() {}
	}
	c := &callProgress{p: p, tool: req.Tool, begin: time.Now()}
	for _, s := range a.Servers() {
		if s.Name() == req.Tool.Server {
			c.server = s
		}
	}
	req.OnNotify, req.Caller.LogLevel = c.onNotification, "info"
	return p.showWaiting(false, c.status)
}

// progressToken is the member of params that requests progress notifications.
const progressToken = `,"_meta":{"progressToken":"cli"}`

// status returns the text of the status line.
func (c *callProgress) status() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := c.tool.Name + " " + textfmt.ShortDuration(time.Since(c.begin))
	switch {
	case c.last != "":
		text += ": " + c.last
	case c.server != nil && c.server.Status().State == upstream.Starting:
		text += ": waiting for server " + c.server.Name()
	}
	return text
}

// onNotification shows a progress or log notification of the called tool.
func (c *callProgress) onNotification(method string, params json.RawMessage) {
	switch method {
	case "notifications/progress":
		text := progressText(params)
		if text == "" {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.last = text
		if c.p.line == nil {
			c.p.logf("%s: %s", c.tool.Name, c.last)
		}
	case "notifications/message":
		c.p.logf("%s: %s", c.tool.Name, logText(params))
	}
}

// progressText formats a progress notification: "40 %: compiling". Of a message it
// takes the last line, which for a command is its last output; "": it has no information.
func progressText(params json.RawMessage) string {
	var n struct {
		Progress float64
		Total    float64
		Message  string
	}
	if json.Unmarshal(params, &n) != nil {
		return ""
	}
	lines := strings.Split(strings.TrimRight(n.Message, "\r\n\t "), "\n")
	n.Message = strings.TrimSpace(lines[len(lines)-1])
	far := ""
	switch {
	case n.Total > 0:
		far = fmt.Sprintf("%.0f %%", 100*n.Progress/n.Total)
	case n.Message == "":
		far = fmt.Sprintf("%g", n.Progress)
	}
	if far != "" && n.Message != "" {
		far += ": "
	}
	return far + n.Message
}

// logText formats a log message: "warning: it is old".
func logText(params json.RawMessage) string {
	var n struct {
		Level string
		Data  json.RawMessage
	}
	if json.Unmarshal(params, &n) != nil {
		return printable(string(params))
	}
	text := string(n.Data)
	var plain string
	if json.Unmarshal(n.Data, &plain) == nil {
		text = plain
	}
	return n.Level + ": " + text
}
