// Package config turns flags, environment and configuration files into one
// validated Config, in which every default is filled in and every path is
// absolute.
//
// What counts, the later over the earlier where both name a server:
//
//  1. the bundled tools beside the host;
//  2. the file of --config; without one the user's own,
//     $XDG_CONFIG_HOME/toolroom/toolroom.yaml, and then the toolroom.yaml of
//     the working directory if the user trusts it as it is (see Trust);
//  3. mcp-* programs in the directories that tool_dirs of those files names;
//  4. --mcpservers.
//
// The files may be of any dialect that package dialect reads; toolroom.yml,
// .json, .jsonc and .toml are taken for toolroom.yaml, too.
//
// What is said of the host itself (profiles, policy, limits and so on; see
// dialect.Settings) is taken key by key, the later file's over the earlier's.
//
// Variables are replaced from the host's environment. Credentials are kept in
// secret.Text and shown nowhere.
package config

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/accesstoken"
	"github.com/toolroom-mcp/toolroom/host/internal/agent"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog/toolsearch"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/config/nesting"
	"github.com/toolroom-mcp/toolroom/host/internal/config/trust"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/manifest"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/lookup"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/trace"
	"github.com/toolroom-mcp/toolroom/host/internal/store/backend"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// Flags is what the command line says.
type Flags struct {
	Config     string   // a file; "": the default ones, if they are there
	Roots      []string // DIR or DIR:ro
	State      string
	Memory     bool           // there is no state directory, whatever State and the environment name
	NoFiles    bool           // without Config, no configuration file is read
	MCPServers string         // "cmd args;ENV=V cmd2"
	Allow      sandbox.Config // what the bundled tools refuse unless it is said; of this the Allow… alone

	// LeaveOut has a server of a file whose program or variables are missing here
	// switched off, which a notice tells, instead of the whole file refused.
	LeaveOut bool

	trusting string // the configuration that is being trusted: Config
}

// Config is a whole host.
type Config struct {
	Servers []Server
	Remote  []dialect.Server // reached over HTTP
	// HelperFiles are the files that headers_helper of a server names, which have to
	// be as they were trusted, by the server's name.
	HelperFiles map[string][]trust.File

	Off     []dialect.Server // switched off in a file; as written
	Missing []string         // bundled tools whose binaries are not there
	Dir     string           // where the bundled tools were looked for
	Version string           // of the host; "": devel
	State   string           // directory; may not exist yet
	Roots   []string         // as given, absolute; none: each tool finds its own
	File    string           // the configuration file, the first of Files; "": none
	Files   []string         // that were read
	empty   []string         // those in which nothing is
	marks   []string         // of the files and servers that were read; see Marks
	Guard   []string         // the command that runs upstream.RunGuard
	Joined  bool             // the one server is another host, whose word counts
	Stages  Stages           // what happens to calls

	Declared []manifest.Tool     // tools that need no server
	Profiles []catalog.Profile   // parts of the catalogue, served at /mcp/NAME
	Auth     *accesstoken.Config // how users sign in to serve; nil: they do not
	Agents   []agent.Kind        // kinds of agents beside those that need no configuration
	Pins     catalog.PinMode     // what becomes of tools whose definitions change; "": warn
	Offer    toolsearch.Config   // how much of the catalogue clients are shown
	Store    backend.Config      // where what is to be remembered is kept; zero: nowhere
	Models   lookup.Config       // which models answer
	Settings []dialect.Setting   // what of this was written, and where

	Trace trace.Config // where calls are traced to, from the environment

	Notices []string // what the user should know, though it is no error
	Unread  []string // which keys of which files the host does not read; most are another program's
	Watched []string // files whose change may change the Config; some may not exist. None: it was read from a pipe

	closure  *closure
	tooldirs map[string]string // of tool_dirs → the configuration that names them

	piped []string          // of these, those of which a pipe would be read, too
	seen  map[string]string // what these were when they were read, as far as that is known; see fileState
}

// Server is one server and how its tools are named.
type Server struct {
	upstream.Config
	Bundled bool
	Spec    dialect.Server // of a configured server: what the file says, variables replaced
}

// Load reads the configuration. dir is where the bundled tools are, version
// the host's.
func Load(f Flags, dir, version string, getenv func(string) string, environ []string) (Config, error) {
	c := Config{Dir: dir, Version: version}
	var err error
	if !f.Memory {
		c.State, err = StateDir(f.State, getenv)
	}
	if err != nil {
		return c, err
	}
	if c.Trace, err = trace.FromEnv(getenv); err != nil {
		c.notice("%v", err)
	}
	c.Models.Found = lookup.FromEnv(getenv)
	if err := f.Allow.Validate(); err != nil {
		return c, err
	}
	for _, root := range f.Roots {
		abs, err := absoluteRoot(root)
		if err != nil {
			return c, err
		}
		c.Roots = append(c.Roots, abs)
	}
	env := childEnv(environ)
	c.addBundled(dir, version, env, toolArgs(c.Roots, f, c.State), f.Config)
	specs, err := c.readSources(f, getenv, environ)
	if err != nil {
		return c, err
	}
	c.marks = marksOf(c.Files, f.MCPServers)
	for _, off := range c.Off {
		c.dropBundled(off.Name)
	}
	if err := c.addConfigured(specs, version, env); err != nil {
		return c, err
	}
	c.hide()
	c.protect()
	if file := trustFile(c.State); c.closure.used && c.State != "" && len(c.Watched) > 0 && !slices.Contains(c.Watched, file) {
		c.Watched = append(c.Watched, file)
	}
	return c, c.checkDeclared()
}

// addConfigured makes the servers of the files and the command line startable.
func (c *Config) addConfigured(specs []dialect.Server, version string, env []string) error {
	var problems dialect.Problems
	for _, spec := range specs {
		bundled, taken := c.dropBundled(spec.Name)
		if spec.URL != "" {
			c.Remote = append(c.Remote, spec)
			c.noticeTaken(spec, taken)
			continue
		}
		cfg, problem := startable(spec, version, env)
		if problem != nil {
			problems = append(problems, *problem)
			continue
		}
		if taken && sameProgram(cfg.Command[0], bundled.Command[0]) {
			c.Servers = append(c.Servers, bundled.configured(cfg, spec))
			continue
		}
		server := Server{Config: cfg, Spec: spec}
		if c.refuseItself(&server); server.Refused == "" {
			c.refuseUntrusted(&server)
		}
		c.Servers = append(c.Servers, server)
		c.noticeTaken(spec, taken)
	}
	return problems.Err()
}

// Views returns the configured servers without their credentials.
func (c Config) Views() []dialect.View {
	views := []dialect.View{}
	for _, s := range c.Servers {
		if s.Spec.Name != "" {
			views = append(views, s.Spec.View())
		}
	}
	for _, s := range c.Remote {
		views = append(views, s.View())
	}
	slices.SortFunc(views, func(a, b dialect.View) int { return strings.Compare(a.Name, b.Name) })
	return views
}

func (c *Config) notice(format string, args ...any) {
	c.Notices = append(c.Notices, fmt.Sprintf(format, args...))
}

// childEnv is the host's environment without its own credential, without the
// inputs of single servers, and without the hosts above, which the start of a
// server adds.
func childEnv(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		return strings.HasPrefix(entry, "TOOLROOM_TOKEN=") || strings.HasPrefix(entry, "TOOLROOM_INPUT_") ||
			strings.HasPrefix(entry, nesting.Variable+"=")
	})
}

// absoluteRoot makes a root absolute, since a tool may run elsewhere. Whether
// it may be one is for the tool to say.
func absoluteRoot(root string) (string, error) {
	dir, readOnly := strings.CutSuffix(root, ":ro")
	if dir == "" {
		return "", fmt.Errorf("--root %q: name a directory, DIR or DIR:ro", root)
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("--root %q: %w", root, err)
	}
	info, err := os.Stat(abs)
	if err != nil {
		return "", fmt.Errorf("--root %q: %w", root, err)
	}
	if !info.IsDir() {
		return "", fmt.Errorf("--root %q is not a directory", root)
	}
	if readOnly {
		abs += ":ro"
	}
	return abs, nil
}

// StateDir is the directory for state: what the flag says, or MCP_STATE_DIR,
// or the system's place. "": nothing says where.
func StateDir(flag string, getenv func(string) string) (string, error) {
	dir := flag
	if dir == "" {
		dir = getenv("MCP_STATE_DIR")
	}
	if dir == "" {
		if xdg := getenv("XDG_STATE_HOME"); filepath.IsAbs(xdg) {
			dir = filepath.Join(xdg, "toolroom")
		}
	}
	if dir == "" {
		home := homeDir(getenv)
		if home == "" {
			return "", nil // whoever needs it says so
		}
		dir = filepath.Join(home, ".local", "state", "toolroom")
	}
	return filepath.Abs(dir)
}

// homeDir is the user's directory; "" when nothing says where it is.
func homeDir(getenv func(string) string) string {
	if home := getenv("HOME"); home != "" {
		return home
	}
	return getenv("USERPROFILE")
}

// configHome is where programs keep their configuration: XDG's on every
// system, as command-line tools do. "": nothing says where.
func configHome(getenv func(string) string) string {
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	if home := homeDir(getenv); home != "" {
		return filepath.Join(home, ".config")
	}
	return ""
}

// Loopback reports whether an address to listen on is reachable from this
// machine alone.
func Loopback(listen string) (bool, error) {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false, fmt.Errorf("--listen %q: want HOST:PORT: %w", listen, err)
	}
	if host == "localhost" {
		return true, nil
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback(), nil
}
