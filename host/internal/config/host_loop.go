package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/config/nesting"
)

// Marks returns the marks of this configuration for package nesting; nil if only
// bundled tools are configured, which start no host.
func (c Config) Marks() []string {
	if len(c.Remote) == 0 && !slices.ContainsFunc(c.Servers, func(s Server) bool { return s.Spec.Name != "" }) {
		return nil
	}
	return c.marks
}

// marksOf returns the marks that identify a host's configuration: one for each file,
// and one for the value of --mcpservers.
func marksOf(files []string, list string) (marks []string) {
	for _, file := range files {
		marks = append(marks, nesting.FileMark(file))
	}
	if list != "" {
		marks = append(marks, nesting.FileMark("--mcpservers "+list))
	}
	return marks
}

// HostMarks returns the marks of a host with these arguments and environment, started
// in dir. A configuration file in dir counts even if it is not trusted.
func HostMarks(args, environ []string, dir string) []string {
	getenv := func(name string) string {
		for _, entry := range slices.Backward(environ) {
			if value, ok := strings.CutPrefix(entry, name+"="); ok {
				return value
			}
		}
		return ""
	}
	var files []string
	if given := nesting.FlagValues(args, "config"); len(given) > 0 {
		file := given[len(given)-1]
		if !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		files = append(files, file)
	} else {
		for _, file := range []string{UserFile(getenv), LocalFile(dir)} {
			if file != "" && exists(file) {
				files = append(files, file)
			}
		}
	}
	return marksOf(files, strings.Join(nesting.FlagValues(args, "mcpservers"), ""))
}

// HostsAbove returns the hosts below which this process was started.
func HostsAbove(environ []string) []nesting.Host { return nesting.HostsAbove(environ, HostMarks) }

// startsItselfReason returns why a server must not be started whose command is a host with these
// arguments: that host has this configuration. It returns "" otherwise.
func (c *Config) startsItselfReason(args []string, spec dialect.Server, env []string) string {
	dir := spec.Dir
	if dir == "" {
		var err error
		if dir, err = os.Getwd(); err != nil {
			return ""
		}
	}
	for _, mark := range HostMarks(args, env, dir) {
		if slices.Contains(c.marks, mark) {
			return "its command starts this host again with the same configuration, in an endless loop; remove this server, or give the inner host another configuration with --config"
		}
	}
	return ""
}

// refuseItself prevents the start of a server that starts this host, with a notice. If the
// command is not recognized, the started host detects the loop. It sets s.StartsHost.
func (c *Config) refuseItself(s *Server, hosts *nesting.Search) {
	args, ok := hosts.FindHost(s.Spec.Command)
	if s.StartsHost = ok; !ok {
		return
	}
	if s.Refused = c.startsItselfReason(args, s.Spec, s.Env); s.Refused != "" {
		c.notice("%v", s.Spec.Problem("", "is not started: %s", s.Refused))
	}
}

// ownHostReason returns why a server of another program's configuration is not imported: it starts
// a host that would read the imported file; "": it does not.
func ownHostReason(s dialect.Server, getenv func(string) string) string {
	args, ok := new(nesting.Search).FindHost(s.Command)
	if !ok {
		return ""
	}
	if given := nesting.FlagValues(args, "config"); len(given) > 0 && given[len(given)-1] != UserFile(getenv) {
		return "" // a different host
	}
	return "starts mcp-host itself, which would read this file again, in an endless loop; ignored"
}
