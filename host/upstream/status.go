package upstream

import (
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/config/secret"
)

// Failure is the last thing that went wrong with a server.
type Failure struct {
	Stage   string    `json:"stage"` // start or run
	Message string    `json:"message"`
	Time    time.Time `json:"time"`
}

// Status is a server as a user can see it.
type Status struct {
	Name     string   `json:"name"`
	State    string   `json:"state"` // configured, starting, ready, offline, closed
	Command  []string `json:"command,omitempty"`
	URL      string   `json:"url,omitempty"` // without credentials
	Era      Era      `json:"era,omitempty"`
	Server   string   `json:"server,omitempty"` // what it calls itself, with its version
	PID      int      `json:"pid,omitempty"`
	Tools    int      `json:"tools"`
	Restarts int      `json:"restarts"`
	Noise    int64    `json:"noise"` // lines on stdout that were no messages
	Last     *Failure `json:"lastFailure,omitempty"`
	Stderr   string   `json:"stderr,omitempty"` // the end of what it wrote
}

// Status returns the present state.
func (s *Server) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Status{
		Name: s.cfg.Name, State: "configured", Command: s.cfg.Command,
		URL: secret.URL(s.cfg.URL), Era: s.era, Restarts: max(0, s.starts-1), Last: s.last,
	}
	if c := s.conn; c != nil {
		st.Server, st.Noise = c.identity, c.noise.Load()
		d := c.out.describe()
		st.Stderr = d.stderr
		if c.alive() {
			st.PID, st.Tools = d.pid, len(c.listed())
		}
	}
	switch {
	case s.closed:
		st.State = "closed"
	case s.conn != nil && s.conn.alive():
		st.State = "ready"
	case s.starting != nil:
		st.State = "starting"
	case s.last != nil:
		st.State = "offline"
	}
	return st
}

// lastLine returns the last line of text that is not blank, shortened.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\r\n\t "), "\n")
	line := strings.TrimSpace(lines[len(lines)-1])
	if r := []rune(line); len(r) > 300 {
		line = string(r[:300]) + "…"
	}
	return line
}
