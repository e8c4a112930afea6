package upstream

import (
	"errors"
	"strings"
	"time"
	"unicode"

	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// The stages at which a server fails.
const (
	StageStart  = "start"
	StageRun    = "run"
	StageHealth = "health"
)

// Failure is the last thing that went wrong with a server.
type Failure struct {
	Stage   string    `json:"stage"` // StageStart, StageRun or StageHealth
	Message string    `json:"message"`
	Time    time.Time `json:"time"`

	code   toolerr.Code
	signIn bool // whether a sign-in resolves it
}

func newFailure(stage string, err error) *Failure {
	return &Failure{Stage: stage, Message: err.Error(), Time: time.Now(), code: toolerr.CodeOf(err), signIn: errors.As(err, new(*signInError))}
}

// State is how a server is.
type State = string

// The states.
const (
	Configured State = "configured" // not started yet
	Starting   State = "starting"
	Ready      State = "ready"
	Unstable   State = "unstable" // up, but it failed within the last minute or does not answer pings
	NeedsAuth  State = "needs auth"
	NeedsLogin State = "needs sign-in" // mcp-host login NAME
	Offline    State = "offline"
	Disabled   State = "disabled"
	Closed     State = "closed"
)

// shaky is how long after a failure a server counts as unstable.
const shaky = time.Minute

// Status is a server as a user can see it.
type Status struct {
	Name     string   `json:"name"`
	State    State    `json:"state"`
	Command  []string `json:"command,omitempty"`
	URL      string   `json:"url,omitempty"` // without credentials
	Era      Era      `json:"era,omitempty"`
	Server   string   `json:"server,omitempty"` // what it calls itself, with its version
	PID      int      `json:"pid,omitempty"`
	Tools    int      `json:"tools"`
	Restarts int      `json:"restarts"`
	Callers  int      `json:"callers,omitempty"`   // that have a run of their own
	Noise    int64    `json:"noise"`               // lines on stdout that were no messages
	Stray    string   `json:"stray,omitempty"`     // the first of these lines
	Latency  float64  `json:"latencyMs,omitempty"` // of the last call or ping that was answered
	Withheld string   `json:"withheld,omitempty"`  // why a host does not serve its tools
	SignIn   string   `json:"signIn,omitempty"`    // until when, with which scopes; for people
	Last     *Failure `json:"lastFailure,omitempty"`
	Stderr   string   `json:"stderr,omitempty"` // the end of what it wrote
}

// Status returns the present state.
func (s *Server) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Status{
		Name: s.cfg.Name, State: s.state(), Command: s.cfg.Command,
		URL: secret.URL(s.cfg.URL), Era: s.era, Restarts: max(0, s.starts-1), Last: s.last,
		Callers: len(s.visits.servers()), Latency: float64(s.took.Load()/1000) / 1000,
	}
	if c := s.conn; c != nil {
		st.Server, st.Noise = s.cfg.conceal(c.identity), c.noise.Load()
		if line := c.stray.Load(); line != nil {
			st.Stray = *line
		}
		d := c.out.describe()
		st.Stderr = d.stderr
		if c.alive() {
			st.PID, st.Tools = d.pid, len(c.listed())
		}
	}
	return st
}

// SignIn describes the sign-in to the server; "": there is none. It reads a file.
func (s *Server) SignIn() string {
	if s.cfg.Auth == nil {
		return ""
	}
	return s.cfg.Auth.SignIn()
}

// state says how the server is. s.mu is held.
func (s *Server) state() State {
	switch {
	case s.closed:
		return Closed
	case s.cfg.Disabled:
		return Disabled
	case s.conn != nil && s.conn.alive():
		if s.conn.unwell || s.last != nil && time.Since(s.last.Time) < shaky {
			return Unstable
		}
		return Ready
	case s.last != nil && s.last.signIn:
		return NeedsLogin
	case s.last != nil && s.last.code == toolerr.AuthFailed:
		return NeedsAuth
	case s.refused != nil, s.fails >= maxTries: // also while it is tried once more
		return Offline
	case s.starting != nil:
		return Starting
	case s.last != nil:
		return Offline
	}
	return Configured
}

// Offline reports whether the server has been given up for now, so that its
// tools are better not offered. A server that waits for a sign-in has not: a call
// of its tools tells the user what to do.
func (s *Server) Offline() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.state()
	return state == Offline && (s.refused != nil || s.fails >= maxTries) || state == NeedsAuth || state == Disabled
}

// lastLine returns the last line of text that is not blank, shortened. What is
// not seen as itself is not in it: it goes into errors, to models and terminals.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\r\n\t "), "\n")
	line := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == '\t' {
			return r
		}
		return unicode.ReplacementChar
	}, strings.TrimSpace(lines[len(lines)-1]))
	if r := []rune(line); len(r) > 300 {
		line = string(r[:300]) + "…"
	}
	return line
}
