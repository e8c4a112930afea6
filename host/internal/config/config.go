// Package config turns flags, environment and configuration files into one validated
// Config, in which all defaults are set and all paths are absolute.
//
// Sources of servers, in increasing precedence:
//
//   - the bundled tools;
//   - the file of --config; without it the user's file,
//     $XDG_CONFIG_HOME/toolroom/toolroom.yaml, and then the toolroom.yaml of the
//     working directory if the user trusts its current content (see Trust);
//   - mcp-* programs in the directories of tool_dirs in those files;
//   - --mcpservers.
//
// The files may use any dialect of package dialect. toolroom.yml, .json, .jsonc and
// .toml are read like toolroom.yaml.
//
// Settings of the host itself (profiles, policy, limits and so on; see
// dialect.Settings) are replaced key by key by later files.
//
// Variables are replaced from the host's environment. Credentials are kept in
// secret.Text, which is never shown.
package config

import (
	"errors"
	"fmt"
	"io/fs"
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
	"github.com/toolroom-mcp/toolroom/host/internal/keyring"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/lookup"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/trace"
	"github.com/toolroom-mcp/toolroom/host/internal/store/backend"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream/oauth"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// Flags holds the settings of the command line.
type Flags struct {
	Config     string   // a file; "": the default files, if they exist
	Roots      []string // DIR or DIR:ro
	State      string
	Share      *bool          // whether to share servers; nil: as the files say
	Memory     bool           // use no state directory, whatever State and the environment name
	NoFiles    bool           // without Config, read no configuration file
	MCPServers string         // "cmd args;ENV=V cmd2"
	Allow      sandbox.Config // lifts refusals of the bundled tools; only the Allow… fields are used

	// LeaveOut disables a server whose program or variables are missing, with a
	// notice, instead of rejecting the whole file.
	LeaveOut bool

	trusting string // the configuration that is being trusted
}

// Config is the configuration of a host.
type Config struct {
	Servers []Server
	Remote  []dialect.Server // servers over HTTP
	// HelperFiles holds, by server name, the files named by headers_helper, which must
	// be unchanged since they were trusted.
	HelperFiles map[string][]trust.File

	Off     []dialect.Server // disabled in a file; as written
	Missing []string         // bundled tools whose programs are missing
	Dir     string           // directory of the bundled tools
	Version string           // of the host; "": devel
	State   string           // state directory; may not exist yet
	Roots   []string         // as given, absolute; empty: each tool finds its own
	File    string           // the first of Files; "": none
	Files   []string         // files that were read
	empty   []string         // files without content
	marks   []string         // of the files and servers; see Marks
	Guard   []string         // command that runs upstream.RunGuard
	Joined  bool             // the only server is another host, which makes all decisions
	Stages  Stages           // settings of the pipeline

	Declared []manifest.Tool     // tools without a server
	Profiles []catalog.Profile   // parts of the catalog, served at /mcp/NAME
	Auth     *accesstoken.Config // sign-in of users for serve; nil: none
	Agents   []agent.Kind        // configured kinds of agents
	Pins     catalog.PinMode     // handling of tools whose definitions change; "": warn
	Offer    toolsearch.Config   // limits of the tool list
	Store    backend.Config      // storage of state; zero: none
	Models   lookup.Config       // the models

	TokenStore string            // storage of the tokens of sign-ins, as oauth.Storage.Kind
	Keyring    oauth.Keyring     // of the system, for these tokens; nil: none
	Settings   []dialect.Setting // the written settings with their positions

	Share       *bool // other hosts of the user share the processes of servers; nil: of servers that are known to be shareable
	ShareStarts bool  // this host may start the process that shares them; set by the caller of Load

	Trace trace.Config // target of traces, from the environment

	Notices []string // messages for the user that are not errors
	Unread  []string // keys that the host does not read, by file; most belong to other programs
	Watched []string // files whose change may change the Config; some may not exist. Empty: it was read from a pipe

	fileTrust *fileTrust
	tooldirs  map[string]string // directory of tool_dirs → the configuration that names it

	piped []string          // those of Watched that may be pipes
	seen  map[string]string // their content when they were read, if known; see fileState
}

// Server is a server with its settings for names.
type Server struct {
	upstream.Config
	Bundled bool
	Spec    dialect.Server // the configured server, with variables replaced

	// StartsHost says that the command starts another host, as far as that can be seen.
	StartsHost bool
}

// Load reads the configuration from the flags, the files that they name or that Load
// finds, and the environment. dir is the directory of the bundled tools; "" means none.
// version is the host's. environ is the environment from which that of the servers is
// made. Load returns an error if a flag or a file is invalid or cannot be read; the
// Config is then incomplete.
func Load(f Flags, dir, version string, getenv func(string) string, environ []string) (Config, error) {
	c := Config{Dir: dir, Version: version, Keyring: keyring.New(keyring.ShortTimeout)}
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
	if f.Share != nil {
		c.Share = f.Share
	}
	c.marks = marksOf(c.Files, f.MCPServers)
	for _, off := range c.Off {
		c.takeBundled(off.Name)
	}
	if err := c.addConfigured(specs, version, env); err != nil {
		return c, err
	}
	c.addHiddenDirs()
	c.addProtectedFiles()
	if file := trustFile(c.State); c.fileTrust.used && c.State != "" && len(c.Watched) > 0 && !slices.Contains(c.Watched, file) {
		c.Watched = append(c.Watched, file)
	}
	return c, c.checkDeclared()
}

// addConfigured adds the servers of the files and the command line to Servers or Remote. A
// server that is a bundled tool gets its settings. The error is the Problems of servers
// that cannot be started; those are left out.
func (c *Config) addConfigured(specs []dialect.Server, version string, env []string) error {
	var problems dialect.Problems
	var hosts nesting.Search
	for _, spec := range specs {
		bundled, taken := c.takeBundled(spec.Name)
		if spec.URL != "" {
			c.Remote = append(c.Remote, spec)
			c.noticeReplaced(spec, taken)
			continue
		}
		cfg, problem := upstreamConfig(spec, version, env)
		if problem != nil {
			problems = append(problems, *problem)
			continue
		}
		if taken && isSameFile(cfg.Command[0], bundled.Command[0]) {
			if spec.Sandbox.On {
				problems = append(problems, spec.Problem("sandbox", "this is a bundled tool, which confines itself: leave it out"))
				continue
			}
			c.Servers = append(c.Servers, bundled.mergeEntry(cfg, spec))
			continue
		}
		server := Server{Config: cfg, Spec: spec}
		if c.refuseItself(&server, &hosts); server.Refused == "" {
			c.refuseUntrusted(&server)
		}
		c.Servers = append(c.Servers, server)
		c.noticeReplaced(spec, taken)
	}
	return problems.Err()
}

// Views returns the configured servers without their credentials, sorted by name; not nil.
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

// notice adds a message for the user that is not an error.
func (c *Config) notice(format string, args ...any) {
	c.Notices = append(c.Notices, fmt.Sprintf(format, args...))
}

// childEnv returns the host's environment without its own credential, without inputs
// of single servers, and without the marks of the hosts above, which the start of a
// server adds.
func childEnv(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		return strings.HasPrefix(entry, "TOOLROOM_TOKEN=") || strings.HasPrefix(entry, "TOOLROOM_INPUT_") ||
			strings.HasPrefix(entry, nesting.Variable+"=")
	})
}

// absoluteRoot makes a root (DIR or DIR:ro) absolute, since a tool may run in another directory. It
// returns an error unless it is an existing directory. The tool checks whether it may be a root.
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
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("--root %q does not exist; create the directory, or name another", root)
	}
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

// StateDir returns the state directory: the flag, MCP_STATE_DIR, or the system's
// default. It is "" if none of them is known.
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
			return "", nil // the parts that need it return an error
		}
		dir = filepath.Join(home, ".local", "state", "toolroom")
	}
	return filepath.Abs(dir)
}

// homeDir returns the user's home directory, "" if it is unknown.
func homeDir(getenv func(string) string) string {
	if home := getenv("HOME"); home != "" {
		return home
	}
	return getenv("USERPROFILE")
}

// configHome returns the directory for configuration, on every system as XDG defines
// it; "" if it is unknown.
func configHome(getenv func(string) string) string {
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return dir
	}
	if home := homeDir(getenv); home != "" {
		return filepath.Join(home, ".config")
	}
	return ""
}

// Loopback reports whether an address to listen on, HOST:PORT, is reachable only from this machine.
// It returns an error for a malformed one.
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
