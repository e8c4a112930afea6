package config

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/declared"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/manifest"
)

// readDeclared sets Declared to the tools of the settings s and of the manifests that they name. at
// has the settings by key, with their files. It returns the problems, except warnings, which
// become notices.
func (c *Config) readDeclared(s dialect.Settings, at map[string]setting) dialect.Problems {
	var set manifest.Set
	if one, ok := at["tools"]; ok && s.Tools != nil {
		set.ReadSection(one.File, s.Tools, c.manifestOptions(one))
		c.fileTrust.protect = append(c.fileTrust.protect, set.Files...)
		set.Tools = c.dropUntrustedTools(one.File, set.Tools)
	}
	if one, ok := at["manifests"]; ok {
		var paths []string
		for _, path := range s.Manifests {
			full, err := one.vars.Expand(path)
			if err != nil {
				set.Problems = append(set.Problems, one.Problem(err.Error()))
				continue
			}
			if !filepath.IsAbs(full) {
				full = filepath.Join(filepath.Dir(one.File), full)
			}
			paths = append(paths, full)
		}
		c.fileTrust.protect = append(c.fileTrust.protect, paths...)
		own := set.Tools
		set.Tools = nil
		set.Read(paths, c.manifestOptions(one))
		set.Tools = append(own, c.dropUntrustedTools(one.File, set.Tools)...)
	}
	set.Sort()
	for _, p := range set.Problems.Warnings() {
		c.notice("%v", p)
	}
	c.Declared = set.Tools
	c.Watched = append(c.Watched, set.Files...)
	var wrong dialect.Problems
	for _, p := range set.Problems {
		if !p.Warning {
			wrong = append(wrong, p)
		}
	}
	return wrong
}

// manifestOptions returns the options for reading manifests that the setting of names:
// its variables, and a check that the user trusts each file.
func (c *Config) manifestOptions(of setting) manifest.Options {
	return manifest.Options{Expand: of.vars.Expand, Lookup: of.vars.Env, Admit: func(name string, text []byte) error {
		return c.fileTrust.admit(of.File, name, contentHash(text), false)
	}}
}

// checkDeclared returns the problems of declared tools: names that are taken or look like those of
// a server's tools, unknown servers, and chains that call themselves.
func (c *Config) checkDeclared() error {
	taken := map[string]string{}
	for _, s := range c.Servers {
		taken[s.Name] = "server " + s.Name
		if s.Bundled {
			taken[s.Name] = "the bundled tool " + s.Name
		}
	}
	for _, s := range c.Remote {
		taken[s.Name] = "server " + s.Name
	}
	for _, s := range c.Off {
		taken[s.Name] = "server " + s.Name
	}
	var problems dialect.Problems
	for _, t := range c.Declared {
		name := declared.ServedName(t)
		if has, ok := taken[name]; ok {
			problems = append(problems, t.Problem("name", "its served name %s is the name of %s; choose another name", name, has))
		} else {
			taken[name] = "the declared tool " + t.Name
		}
		if server, _, ok := strings.Cut(name, "__"); ok && strings.HasPrefix(taken[server], "server ") {
			problems = append(problems, t.Problem("name", "its served name %s is also that of a tool of server %s; choose another name or namespace", name, server))
		}
	}
	for _, t := range c.Declared {
		if t.MCP != nil && taken[t.MCP.Server] == "" && t.MCP.Server != customServer {
			problems = append(problems, t.Problem("mcp.server", "no server %s%s", dialect.ShownName(t.MCP.Server), dialect.Nearest(t.MCP.Server, slices.Sorted(maps.Keys(taken)))))
		}
	}
	return append(problems, chainCycles(c.Declared)...).Err()
}

// customServer is the name of the server of a program's own tools; see package core.
const customServer = "custom"

// chainCycles returns a problem for each chain or alias that calls itself, directly or through
// others.
func chainCycles(tools []manifest.Tool) (problems dialect.Problems) {
	calls := map[string][]string{}
	for _, t := range tools {
		if t.Chain != nil {
			calls[declared.ServedName(t)] = t.Chain.Tools()
		}
		if t.MCP != nil && t.MCP.Server == t.MCP.Tool { // each declared tool is a server
			calls[declared.ServedName(t)] = []string{t.MCP.Tool}
		}
	}
	for _, t := range tools {
		if t.Chain == nil && t.MCP == nil {
			continue
		}
		self, seen := declared.ServedName(t), map[string]bool{}
		var walk func(name string) bool
		walk = func(name string) bool {
			for _, next := range calls[name] {
				if next == self {
					return true
				}
				if !seen[next] {
					seen[next] = true
					if walk(next) {
						return true
					}
				}
			}
			return false
		}
		if walk(self) {
			problems = append(problems, t.Problem(t.Mode, "it calls itself"))
		}
	}
	return problems
}

// CheckCycles returns an error for chains that call themselves, directly or through
// others.
func CheckCycles(tools []manifest.Tool) error { return chainCycles(tools).Err() }

// withoutLocations returns a configuration's declared tools without their positions in
// files.
func withoutLocations(c Config) (all []manifest.Tool) {
	for _, t := range c.Declared {
		all = append(all, t.WithoutLocation())
	}
	return all
}
