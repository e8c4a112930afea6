package config

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/declared"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/manifest"
)

// Check finds errors of a valid configuration: missing programs and directories, and
// tools of chains that no server can have. It starts nothing. A tool without a
// description is a warning.
//
// known reports whether a tool exists that the configuration does not contain, such as
// a registered one. unchecked lists the tools that only a started server could
// confirm.
func (c Config) Check(known func(tool string) bool) (found dialect.Problems, unchecked []string) {
	for _, s := range c.Servers {
		if s.Spec.Name == "" || len(s.Command) == 0 {
			continue
		}
		if fault := notProgramReason(s.Command[0]); fault != "" {
			found = append(found, s.Spec.Problem("command", "%s", fault))
		}
		if fault := notDirectoryReason(s.Dir); fault != "" {
			found = append(found, s.Spec.Problem("cwd", "%s", fault))
		}
	}
	for _, t := range c.Declared {
		if t.Description == "" && t.Mode != manifest.MCP {
			p := t.Problem("description", "is missing: models need it to know when to use the tool")
			p.Warning = true
			found = append(found, p)
		}
		switch {
		case t.Exec != nil:
			if fault := notProgramReason(t.Exec.Command[0]); fault != "" {
				found = append(found, t.Problem("exec.command", "%s", fault))
			}
			if fault := notDirectoryReason(t.Exec.Dir); fault != "" {
				found = append(found, t.Problem("exec.cwd", "%s", fault))
			}
		case t.MCP != nil:
			if c.needsStart(t.MCP.Server) {
				unchecked = append(unchecked, fmt.Sprintf("tool %s: mcp: tool %s, which was not checked on server %s", dialect.ShownName(t.Name), dialect.ShownName(t.MCP.Tool), t.MCP.Server))
			}
		case t.Chain != nil:
			problems, open := c.checkChain(t, known)
			found, unchecked = append(found, problems...), append(unchecked, open...)
		}
	}
	return found, unchecked
}

// needsStart reports whether only the server itself knows its tools.
func (c Config) needsStart(server string) bool {
	return slices.ContainsFunc(c.Servers, func(s Server) bool { return s.Name == server && !s.Bundled }) ||
		slices.ContainsFunc(c.Remote, func(s dialect.Server) bool { return s.Name == server })
}

// checkChain checks the tools that a chain names. known and unchecked are as for Check.
func (c Config) checkChain(t manifest.Tool, known func(string) bool) (found dialect.Problems, unchecked []string) {
	sure := map[string]bool{}
	for _, other := range c.Declared {
		sure[declared.ServedName(other)] = true
	}
	var asked []Server // servers that may have the tool
	for _, s := range c.Servers {
		for _, tool := range bundledTools(s) {
			sure[tool] = true
		}
		if !s.Bundled {
			asked = append(asked, s)
		}
	}
	for _, spec := range c.Remote {
		s := Server{Spec: spec}
		s.Name = spec.Name
		asked = append(asked, s)
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(t.Chain.Tools()))) {
		if sure[name] {
			continue
		}
		i := slices.IndexFunc(asked, func(s Server) bool { return sourceConfigOf(s).MayServe(name) })
		switch {
		case i >= 0:
			unchecked = append(unchecked, fmt.Sprintf("tool %s: chain: tool %s, which was not checked on server %s", dialect.ShownName(t.Name), dialect.ShownName(name), asked[i].Name))
		case slices.Contains(c.Missing, name):
			p := t.Problem("chain", "the bundled tool %s is not installed in %s", name, c.Dir)
			p.Warning = true
			found = append(found, p)
		case !known(name):
			found = append(found, t.Problem("chain", "no server has a tool %s%s", dialect.ShownName(name), dialect.Nearest(name, slices.Sorted(maps.Keys(sure)))))
		}
	}
	return found, unchecked
}

// bundledTools returns the served names of a bundled server's tools; nil for other servers.
func bundledTools(s Server) []string {
	if !s.Bundled {
		return nil
	}
	own := []string{s.Name}
	if s.Name == "bash" {
		own = append(own, "bash_job")
	}
	var names []string
	for _, name := range own {
		names = append(names, sourceConfigOf(s).Names(name)...)
	}
	return names
}

// emptySource is a catalog source without items.
type emptySource string

func (n emptySource) Name() string { return string(n) }

func (n emptySource) List(context.Context, call.ListKind) ([]json.RawMessage, error) { return nil, nil }

// sourceConfigOf returns the catalog entry of a server that is never asked for its lists, for
// computing served names.
func sourceConfigOf(s Server) catalog.SourceConfig {
	return catalog.SourceConfig{Source: emptySource(s.Name), Plain: s.Bundled, Prefix: s.Spec.Prefix, Filter: catalog.Filter(s.Spec.Tools)}
}

// notProgramReason returns why a file cannot be started; "": it can.
func notProgramReason(path string) string {
	info, err := os.Stat(path)
	switch {
	case os.IsNotExist(err):
		return fmt.Sprintf("no program %s", path)
	case err != nil:
		return err.Error()
	case info.IsDir():
		return path + " is a directory"
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o111 == 0:
		return path + " is not executable; run chmod +x on it"
	}
	return ""
}

// notDirectoryReason returns why nothing can run in a directory; "": it can, or dir is "".
func notDirectoryReason(dir string) string {
	if dir == "" {
		return ""
	}
	info, err := os.Stat(dir)
	switch {
	case os.IsNotExist(err):
		return fmt.Sprintf("no directory %s", dir)
	case err != nil:
		return err.Error()
	case !info.IsDir():
		return dir + " is not a directory"
	}
	return ""
}

// pathList describes, for an error, up to 12 directories of the PATHs that were searched for
// a program.
func pathList(paths ...string) string {
	const most = 12
	var dirs []string
	for _, path := range paths {
		for _, dir := range filepath.SplitList(path) {
			if dir != "" && !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	switch {
	case len(dirs) == 0:
		return "PATH is empty"
	case len(dirs) > most:
		dirs = append(dirs[:most], fmt.Sprintf("%d more", len(dirs)-most))
	}
	return "looked in " + strings.Join(dirs, ", ")
}
