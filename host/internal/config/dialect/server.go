package dialect

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
)

// The transports.
const (
	Stdio          = "stdio"
	StreamableHTTP = "streamable-http"
	SSE            = "sse"
)

// Server is a server as a file describes it, in toolroom's terms, regardless of the
// file's dialect. Before Expand, variables in values are not replaced.
type Server struct {
	Name string
	File string
	Line int

	Command []string               // the program and its arguments
	Env     map[string]secret.Text // added to the host's environment
	Unset   []string               // variables of the host's that the server does not get
	EnvFile string                 // more of Env, which wins
	Dir     string
	Sandbox Sandbox

	URL           string
	Headers       map[string]secret.Text
	APIKey        secret.Text // sent as Bearer
	AuthTokenEnv  string      // the name of the variable with the bearer token
	HeadersHelper []string    // the program that prints more headers, and its arguments
	AllowPrivate  bool        // a public name may lead to a private address
	OAuth         OAuth
	Credentials   string // CallerCredentials, or "": those of the host
	TokenExchange TokenExchange

	Transport     string        // "": inferred
	Timeout       time.Duration // of a call; 0: the host's default
	StartTimeout  time.Duration // 0: the default
	MaxConcurrent int           // calls at once; 0: the default
	Tools         Filter
	Prefix        *string // of its tools' names; nil: NAME__
	Scope         string  // shared, session, call; "": shared
	Era           string  // auto, legacy, modern; "": auto
	Lazy          *bool   // nil: the default
	Share         *bool   // nil: as share_servers says
	Disabled      bool

	Files    bool          // {file:path} is replaced by the content of the file
	Contents []secret.Text // contents of the files that Expand has inserted

	Ineffective []string // fields that limit the server in another product and not here, with the reason

	lines map[string]int // of the fields
}

// Filter says which tools of a server are served, and how.
type Filter struct {
	Allow    []string          // patterns with *; none: all
	Block    []string          // wins over Allow
	Rename   map[string]string // tool → name
	Describe map[string]string // tool → description
}

// Format prints only the name, since other fields may contain credentials.
func (s Server) Format(f fmt.State, _ rune) { io.WriteString(f, "server "+s.Name) } //nolint:errcheck // fmt keeps the error

// WithoutPosition returns the server without its file and line.
func (s Server) WithoutPosition() Server {
	s.File, s.Line, s.lines = "", 0, nil
	return s
}

// Problem returns a problem of one of the server's fields.
func (s Server) Problem(field, format string, args ...any) Problem {
	line := s.lines[field]
	if line == 0 {
		line = s.Line
	}
	return Problem{File: s.File, Line: line, Server: s.Name, Field: field, Text: fmt.Sprintf(format, args...)}
}

// TransportKind returns the transport. By default an address that ends in /sse means
// SSE, any other streamable HTTP.
func (s Server) TransportKind() string {
	switch {
	case s.Transport != "":
		return s.Transport
	case s.URL == "":
		return Stdio
	case strings.HasSuffix(strings.TrimRight(beforeQuery(s.URL), "/"), "/sse"):
		return SSE
	}
	return StreamableHTTP
}

// beforeQuery returns an address without its query, which can hold credentials.
func beforeQuery(address string) string {
	address, _, _ = strings.Cut(address, "?")
	return address
}

// RedactedTarget returns the server's command or address without credentials.
func (s Server) RedactedTarget() string {
	if s.URL != "" {
		return secret.RedactURL(s.withoutFileContents(s.URL))
	}
	return strings.Join(secret.RedactArgs(s.shownCommand()), " ")
}

// withoutFileContents returns text with secret.Hidden instead of the contents of files
// ({file:PATH}) in the server's settings.
func (s Server) withoutFileContents(text string) string {
	for _, held := range s.Contents {
		text = strings.ReplaceAll(text, held.Reveal(), secret.Hidden)
	}
	return text
}

// shownCommand returns the command without the contents of files with secrets.
func (s Server) shownCommand() []string {
	shown := slices.Clone(s.Command)
	for i := range shown {
		shown[i] = s.withoutFileContents(shown[i])
	}
	return shown
}

// FromFiles returns the server, which has not been expanded, with f applied to the path of
// each {file:path}.
func (s Server) FromFiles(f func(path string) string) Server {
	change := func(text string) string {
		return fileVariablePattern().ReplaceAllStringFunc(text, func(m string) string { return "{file:" + f(m[len("{file:"):len(m)-1]) + "}" })
	}
	s.Command = slices.Clone(s.Command)
	for i := range s.Command {
		s.Command[i] = change(s.Command[i])
	}
	all := func(set map[string]secret.Text) map[string]secret.Text {
		set = maps.Clone(set)
		for name, text := range set {
			set[name] = secret.Text(change(text.Reveal()))
		}
		return set
	}
	s.Env, s.Headers, s.APIKey = all(s.Env), all(s.Headers), secret.Text(change(s.APIKey.Reveal()))
	s.OAuth.ClientSecret = secret.Text(change(s.OAuth.ClientSecret.Reveal()))
	s.OAuth.IdentityProvider.ClientSecret = secret.Text(change(s.OAuth.IdentityProvider.ClientSecret.Reveal()))
	s.URL, s.Dir, s.EnvFile = change(s.URL), change(s.Dir), change(s.EnvFile)
	s.Sandbox = s.Sandbox.expand(func(_, text string) string { return change(text) }, func(path string) string { return path })
	return s
}

// View describes a server for a listing, without credentials.
type View struct {
	Name      string   `json:"name"`
	File      string   `json:"file,omitempty"`
	Line      int      `json:"line,omitempty"`
	Transport string   `json:"transport"`
	Command   []string `json:"command,omitempty"`
	URL       string   `json:"url,omitempty"`
	Dir       string   `json:"cwd,omitempty"`
	Env       []string `json:"env,omitempty"`     // names
	Headers   []string `json:"headers,omitempty"` // names
	Auth      string   `json:"auth,omitempty"`
	Disabled  bool     `json:"disabled,omitempty"`
}

// View returns the server without its credentials.
func (s Server) View() View {
	v := View{
		Name: s.Name, File: s.File, Line: s.Line, Transport: s.TransportKind(), Command: secret.RedactArgs(s.shownCommand()),
		URL: secret.RedactURL(s.withoutFileContents(s.URL)), Dir: s.Dir, Disabled: s.Disabled,
		Env: slices.Sorted(maps.Keys(s.Env)), Headers: slices.Sorted(maps.Keys(s.Headers)),
	}
	switch {
	case s.AuthTokenEnv != "":
		v.Auth = "$" + s.AuthTokenEnv
	case s.APIKey != "":
		v.Auth = "api_key"
	case len(s.HeadersHelper) > 0:
		v.Auth = "headers_helper"
	case s.OAuth.IsSet():
		v.Auth = "oauth"
	}
	return v
}

// Input is a value that VS Code would ask for.
type Input struct {
	ID          string
	Description string
	Default     *string
}

// Document is a configuration file that was read.
type Document struct {
	File     string
	Servers  []Server // in the order of their names
	Inputs   map[string]Input
	ToolDirs []string // as written
	Settings []Setting
	Problems Problems
	Unread   []string // keys next to the servers that the host does not read
	Empty    bool     // it has no section with servers, which is one of the Problems

	beside []pair // keys next to the servers that may restrict all of them
}
