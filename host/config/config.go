// Package config turns flags, environment and a configuration file into one
// validated Config, in which every default is filled in and every path is
// absolute.
//
// The file is YAML or JSON with a map of servers under "servers" or
// "mcpServers": command, args, env, cwd, era, start_timeout, enabled. What it
// does not know is an error, not ignored.
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
	"time"

	"github.com/toolroom-mcp/toolroom/host/discover"
	"github.com/toolroom-mcp/toolroom/host/upstream"
)

// Flags is what the command line says.
type Flags struct {
	Config string   // a file; "": the default one, if it is there
	Roots  []string // DIR or DIR:ro
	State  string
}

// Config is a whole host.
type Config struct {
	Servers []Server
	Missing []string // bundled tools whose binaries are not there
	Dir     string   // where the bundled tools were looked for
	State   string   // directory; may not exist yet
	Roots   []string // as given, absolute; none: each tool finds its own
	File    string   // the configuration file; "": none
	Guard   []string // the command that runs upstream.RunGuard
}

// Server is one server and how its tools are named.
type Server struct {
	upstream.Config
	Bundled bool
}

// Load reads the configuration. dir is where the bundled tools are, version
// the host's.
func Load(f Flags, dir, version string, getenv func(string) string, environ []string) (Config, error) {
	c := Config{Dir: dir}
	var err error
	if c.State, err = stateDir(f.State, getenv); err != nil {
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
	args := toolArgs(c.Roots, f.State, c.State)
	found, missing := discover.Siblings(dir)
	c.Missing = missing
	for _, tool := range found {
		c.Servers = append(c.Servers, Server{Bundled: true, Config: upstream.Config{
			Name: tool.Name, Command: append([]string{tool.Path}, args...), Env: env,
			Era:     upstream.Legacy, // the era in which a server can ask for roots
			Version: version, KillsOwnTree: true,
			QuietTime: 5 * time.Second, // they answer a ping whatever they do
		}})
	}
	if c.File, err = configFile(f.Config, getenv); err != nil || c.File == "" {
		return c, err
	}
	servers, err := readFile(c.File, env)
	if err != nil {
		return c, err
	}
	for _, s := range servers {
		if slices.ContainsFunc(c.Servers, func(have Server) bool { return have.Name == s.Name }) {
			return c, fmt.Errorf("%s: server %s has the name of a bundled tool; choose another", c.File, s.Name)
		}
		s.Version = version
		c.Servers = append(c.Servers, Server{Config: s})
	}
	return c, nil
}

// toolArgs is the command line of the bundled tools. Without roots of the
// host's own they look at the environment, ask the client, and take the
// working directory, in that order.
func toolArgs(roots []string, stateFlag, state string) []string {
	var args []string
	for _, root := range roots {
		args = append(args, "--root", root)
	}
	if stateFlag != "" {
		args = append(args, "--state", state)
	}
	return args
}

// childEnv is the host's environment without its own credential.
func childEnv(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		return strings.HasPrefix(entry, "TOOLROOM_TOKEN=")
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

func stateDir(flag string, getenv func(string) string) (string, error) {
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
		home := getenv("HOME")
		if home == "" {
			home = getenv("USERPROFILE")
		}
		if home == "" {
			return "", nil // whoever needs it says so
		}
		dir = filepath.Join(home, ".local", "state", "toolroom")
	}
	return filepath.Abs(dir)
}

// configFile returns the file to read: the one named, which must be there, or
// the user's own, which need not.
func configFile(flag string, getenv func(string) string) (string, error) {
	if flag != "" {
		return filepath.Abs(flag)
	}
	dir := getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		home := getenv("HOME")
		if home == "" {
			return "", nil
		}
		dir = filepath.Join(home, ".config")
	}
	name := filepath.Join(dir, "toolroom", "toolroom.yaml")
	if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	return name, nil
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
