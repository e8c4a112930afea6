package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/config/bundledtools"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
)

// addBundled adds the bundled tools in dir as servers with these arguments, and sets Missing. file
// is the configuration that agents use, too. dir "": it adds none.
func (c *Config) addBundled(dir, version string, env, args []string, file string) {
	if dir == "" {
		return
	}
	found, missing := bundledtools.Siblings(dir)
	c.Missing = missing
	for _, tool := range found {
		args := args
		if tool.Name == "dispatch_agent" { // its agents use the models of this configuration
			args = append(slices.Clone(args), configArgs(file)...)
		}
		c.Servers = append(c.Servers, Server{Bundled: true, Config: upstream.Config{
			Name: tool.Name, Command: append([]string{tool.Path}, args...), Env: env,
			Era:     upstream.Legacy, // the era in which a server can request roots
			Version: version, KillsOwnTree: true,
			QuietTime: 5 * time.Second, // they answer pings at any time
		}})
	}
}

// takeBundled removes the bundled tool with a name, because a configured server replaces it or
// the configuration disables it, and returns it. ok is false if no bundled tool has the name.
func (c *Config) takeBundled(name string) (s Server, ok bool) {
	for i, s := range c.Servers {
		if s.Bundled && s.Name == name {
			c.Servers = slices.Delete(c.Servers, i, i+1)
			return s, true
		}
	}
	return Server{}, false
}

// noticeReplaced adds a notice, if taken, that a bundled tool is not served because this server
// has its name.
func (c *Config) noticeReplaced(spec dialect.Server, taken bool) {
	if taken {
		c.notice("server %s of %s replaces the bundled tool of the same name; to have both, rename the server", spec.Name, spec.File)
	}
}

// isSameFile reports whether two paths lead to the same existing file.
func isSameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// mergeEntry returns the bundled tool s with the settings of the user's entry for it, cfg
// and spec. The command is the entry's program, followed by the arguments that the host
// gives all bundled tools, without the flags that the entry sets, and by the entry's
// arguments. An entry cannot change how the process is ended and watched.
func (s Server) mergeEntry(cfg upstream.Config, spec dialect.Server) Server {
	if spec.Era == "" {
		cfg.Era = s.Era
	}
	cfg.KillsOwnTree, cfg.QuietTime = s.KillsOwnTree, s.QuietTime
	own := cfg.Command[1:]
	cfg.Command = append([]string{cfg.Command[0]}, slices.DeleteFunc(slices.Clone(s.Command[1:]), func(arg string) bool {
		flag, _, _ := strings.Cut(arg, "=")
		return hasFlag(own, flag)
	})...)
	cfg.Command = append(cfg.Command, own...)
	return Server{Bundled: true, Config: cfg, Spec: spec}
}

// hasFlag reports whether arguments contain a flag. A root may also be given without its
// flag.
func hasFlag(args []string, flag string) bool {
	for i, arg := range args {
		switch {
		case arg == flag || strings.HasPrefix(arg, flag+"="):
			return true
		case flag != "--root" || strings.HasPrefix(arg, "-"):
		case i > 0 && strings.HasPrefix(args[i-1], "-") && !strings.Contains(args[i-1], "="): // the flag's value
		default:
			return true
		}
	}
	return false
}

// addHiddenDirs tells the bundled bash which directories besides the state directory must be
// hidden from commands.
func (c *Config) addHiddenDirs() {
	for i := range c.Servers {
		if c.Servers[i].Name != "bash" || !c.Servers[i].Bundled {
			continue
		}
		for _, dir := range c.StateDirsOutside() {
			c.Servers[i].Command = append(slices.Clip(c.Servers[i].Command), "--hide="+dir)
		}
	}
}

// StateDirsOutside returns the directories of the host's state outside the state directory.
func (c *Config) StateDirsOutside() (dirs []string) {
	for _, dir := range []string{c.Store.Dir, c.Stages.Audit.Dir} {
		if dir != "" && dir != c.State {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// toolArgs returns the arguments of the bundled tools. Without roots of the host, the
// tools use the environment, the client's roots, or the working directory, in that
// order.
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

// configArgs returns the flag --config for the configuration file; nil if it cannot be read again,
// as a pipe.
func configArgs(file string) []string {
	name, err := filepath.Abs(file)
	if info, statErr := os.Stat(name); file == "" || err != nil || statErr != nil || !info.Mode().IsRegular() {
		return nil
	}
	return []string{"--config=" + name}
}
