package upstream

import (
	"strings"
	"time"
	"unicode"

	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// State is the state of a server.
type State = string

// The states.
const (
	Configured          State = "configured" // not started yet
	Starting            State = "starting"
	Ready               State = "ready"
	Unstable            State = "unstable" // running, but it failed within the last minute or does not answer pings
	CredentialsRejected State = "credentials rejected"
	NeedsSignIn         State = "needs sign-in" // mcp-host login NAME
	Offline             State = "offline"
	Disabled            State = "disabled"
	Closed              State = "closed"
)

// unstableTime is the time after a failure during which a server counts as unstable.
const unstableTime = time.Minute

// Status describes a server for a user.
type Status struct {
	Name     string   `json:"name"`
	State    State    `json:"state"`
	Command  []string `json:"command,omitempty"`
	URL      string   `json:"url,omitempty"` // without credentials
	Era      Era      `json:"era,omitempty"`
	Server   string   `json:"server,omitempty"` // its name and version as it reports them
	PID      int      `json:"pid,omitempty"`
	Tools    int      `json:"tools"`
	Restarts int      `json:"restarts"`
	Callers  int      `json:"callers,omitempty"`   // callers with their own run
	Noise    int64    `json:"noise"`               // lines on stdout that were not messages
	Stray    string   `json:"stray,omitempty"`     // the first of these lines
	Latency  float64  `json:"latencyMs,omitempty"` // of the last answered call or ping
	Withheld string   `json:"withheld,omitempty"`  // why the host does not serve its tools
	SignIn   string   `json:"signIn,omitempty"`    // until when, with which scopes; for people
	Last     *Failure `json:"lastFailure,omitempty"`
	Sandbox  string   `json:"sandbox,omitempty"` // level and network of its confinement; "": it runs unconfined, or does not run
	Refused  []string `json:"refused,omitempty"` // by its sandbox, each with the setting that would allow it
	Stderr   string   `json:"stderr,omitempty"`  // the end of its standard error
}

// shownCommand returns the command without credentials.
func (c Config) shownCommand() []string {
	shown := make([]string, len(c.Command))
	for i, arg := range c.Command {
		shown[i] = c.redact(arg)
	}
	return secret.RedactArgs(shown)
}

// ShownCommand returns the server's command without credentials.
func (s *Server) ShownCommand() []string { return s.cfg.shownCommand() }

// Status returns the current status.
func (s *Server) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Status{
		Name: s.cfg.Name, State: s.state(), Command: s.cfg.Command,
		URL: secret.RedactURL(s.cfg.URL), Era: s.era, Restarts: max(0, s.starts-1), Last: s.last,
		Callers: len(s.instances.servers()), Latency: float64(s.latency.Load()/1000) / 1000,
	}
	if c := s.conn; c != nil {
		st.Server, st.Noise = s.cfg.redact(c.identity), c.noise.Load()
		if line := c.firstStray.Load(); line != nil {
			st.Stray = *line
		}
		d := c.out.describe()
		st.Stderr, st.Sandbox, st.Refused = d.stderr, d.sandbox, d.refused
		if c.isAlive() {
			st.PID, st.Tools = d.pid, len(c.listedTools())
		}
	}
	return st
}

// SignIn describes the sign-in to the server, "" if none exists. It reads a file.
func (s *Server) SignIn() string {
	if s.cfg.Auth == nil {
		return ""
	}
	return s.cfg.Auth.SignIn()
}

// state returns the server's current State. The caller holds s.mu.
func (s *Server) state() State {
	switch {
	case s.closed:
		return Closed
	case s.cfg.Disabled:
		return Disabled
	case s.conn != nil && s.conn.isAlive():
		failed := s.last != nil && !s.last.auth && !s.last.signIn && time.Since(s.last.Time) < unstableTime // sign-ins end the others
		if s.conn.missesPings || failed {
			return Unstable
		}
		return Ready
	case s.last != nil && s.last.signIn:
		return NeedsSignIn
	case s.last != nil && s.last.code == toolerr.AuthFailed && !s.last.auth:
		return CredentialsRejected
	case s.refused != nil, s.fails >= maxTries: // also during another try
		return Offline
	case s.starting != nil:
		return Starting
	case s.last != nil:
		return Offline
	}
	return Configured
}

// IsGivenUp reports whether the server is given up for now, so that its tools should not
// be listed. It is false for a server that waits for a sign-in or for a new access token: a call
// of its tools tells the user what to do.
func (s *Server) IsGivenUp() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.state()
	return state == Offline && (s.refused != nil || s.fails >= maxTries && !s.last.auth) || state == CredentialsRejected || state == Disabled
}

// lastLine returns the last line of text that is not blank, shortened. U+FFFD replaces
// invisible characters, since the line is shown in errors, to models and on terminals.
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
