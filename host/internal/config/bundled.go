package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/config/discover"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
)

// addBundled adds the tools in dir.
func (c *Config) addBundled(dir, version string, env, args []string, file string) {
	if dir == "" {
		return
	}
	found, missing := discover.Siblings(dir)
	c.Missing = missing
	for _, tool := range found {
		args := args
		if tool.Name == "dispatch_agent" { // its agents ask the models of this configuration
			args = append(slices.Clone(args), configArgs(file)...)
		}
		c.Servers = append(c.Servers, Server{Bundled: true, Config: upstream.Config{
			Name: tool.Name, Command: append([]string{tool.Path}, args...), Env: env,
			Era:     upstream.Legacy, // the era in which a server can ask for roots
			Version: version, KillsOwnTree: true,
			QuietTime: 5 * time.Second, // they answer a ping whatever they do
		}})
	}
}

// dropBundled takes out the bundled tool of that name, whose place a server of the
// configuration takes, or which it switches off.
func (c *Config) dropBundled(name string) (Server, bool) {
	for i, s := range c.Servers {
		if s.Bundled && s.Name == name {
			c.Servers = slices.Delete(c.Servers, i, i+1)
			return s, true
		}
	}
	return Server{}, false
}

// noticeTaken says that a bundled tool is not served, for a server of another kind
// that happens to have its name.
func (c *Config) noticeTaken(spec dialect.Server, taken bool) {
	if taken {
		c.notice("server %s of %s replaces the bundled tool of the same name; to have both, rename the server", spec.Name, spec.File)
	}
}

// sameProgram reports whether two commands are one file.
func sameProgram(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// configured is a bundled tool that the configuration starts itself: with what the
// host gives each, but for flags that are given there, and then the arguments there.
func (s Server) configured(cfg upstream.Config, spec dialect.Server) Server {
	if spec.Era == "" {
		cfg.Era = s.Era
	}
	cfg.KillsOwnTree, cfg.QuietTime = s.KillsOwnTree, s.QuietTime
	own := cfg.Command[1:]
	cfg.Command = append([]string{cfg.Command[0]}, slices.DeleteFunc(slices.Clone(s.Command[1:]), func(arg string) bool {
		flag, _, _ := strings.Cut(arg, "=")
		return given(own, flag)
	})...)
	cfg.Command = append(cfg.Command, own...)
	return Server{Bundled: true, Config: cfg, Spec: spec}
}

// given reports whether arguments hold a flag. A root may also be given without.
func given(args []string, flag string) bool {
	for i, arg := range args {
		switch {
		case arg == flag || strings.HasPrefix(arg, flag+"="):
			return true
		case flag != "--root" || strings.HasPrefix(arg, "-"):
		case i > 0 && strings.HasPrefix(args[i-1], "-") && !strings.Contains(args[i-1], "="): // its value
		default:
			return true
		}
	}
	return false
}

// hide tells the bundled bash where else than in the state directory things are kept
// that commands are not to see.
func (c *Config) hide() {
	for i := range c.Servers {
		if c.Servers[i].Name != "bash" || !c.Servers[i].Bundled {
			continue
		}
		for _, dir := range []string{c.Store.Dir, c.Stages.Audit.Dir} {
			if dir != "" && dir != c.State {
				c.Servers[i].Command = append(slices.Clip(c.Servers[i].Command), "--hide="+dir)
			}
		}
	}
}

// toolArgs is the command line of the bundled tools. Without roots of the
// host's own they look at the environment, ask the client, and take the
// working directory, in that order.
func toolArgs(roots []string, f Flags, state string) []string {
	args := f.Allow.AllowFlags()
	for _, root := range roots {
		args = append(args, "--root="+root)
	}
	if f.State != "" {
		args = append(args, "--state="+state)
	}
	return args
}

// configArgs names the configuration file of the command line, as far as it can
// be read again.
func configArgs(file string) []string {
	name, err := filepath.Abs(file)
	if info, statErr := os.Stat(name); file == "" || err != nil || statErr != nil || !info.Mode().IsRegular() {
		return nil
	}
	return []string{"--config=" + name}
}
