package config

import (
	"reflect"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
)

// Change describes a change of the files. If Err is not nil, the files are wrong or
// missing and nothing changes.
type Change struct {
	Config   Config   // the new configuration, valid
	Added    []string // names of servers
	Removed  []string
	Changed  []string // servers that must be restarted
	Served   []string // servers with other names, filters or limits
	Settings []string // keys of other changed settings
	Err      error
}

// Diff returns the differences between two configurations, and after as the new one.
func Diff(before, after Config) Change {
	c := Change{Config: after}
	was, is := before.serversByName(), after.serversByName()
	for name, s := range is {
		old, ok := was[name]
		switch {
		case !ok:
			c.Added = append(c.Added, name)
		case !reflect.DeepEqual(old.processSettings(), s.processSettings()):
			c.Changed = append(c.Changed, name)
		case !reflect.DeepEqual(old, s):
			c.Served = append(c.Served, name)
		}
	}
	for name := range was {
		if _, ok := is[name]; !ok {
			c.Removed = append(c.Removed, name)
		}
	}
	for _, list := range [][]string{c.Added, c.Removed, c.Changed, c.Served} {
		slices.Sort(list)
	}
	for _, part := range []struct {
		key     string
		was, is any
	}{
		{"servers", withoutPositions(before.Off), withoutPositions(after.Off)}, {"profiles", before.Profiles, after.Profiles}, {"auth", before.Auth, after.Auth},
		{"tool_pins", before.Pins, after.Pins}, {"share_servers", before.Share, after.Share}, {"store", before.Store, after.Store}, {"token_store", before.TokenStore, after.TokenStore},
		{"audit", before.Stages.Audit, after.Stages.Audit}, {"max_result", before.Stages.Spill.MaxResult, after.Stages.Spill.MaxResult},
		{"validate", before.Stages.Schemas, after.Stages.Schemas}, {"policy", before.Stages.Policy, after.Stages.Policy},
		{"cache", before.Stages.Cache, after.Stages.Cache}, {"limits", before.Stages.Limit, after.Stages.Limit},
		{"timeout", before.Stages.Timeout, after.Stages.Timeout}, {"retry", before.Stages.Retry, after.Stages.Retry},
		{"breaker", before.Stages.Breaker, after.Stages.Breaker}, {"approval", before.Stages.Approval, after.Stages.Approval},
		{"tools", withoutLocations(before), withoutLocations(after)},
		{"context", before.Offer, after.Offer}, {"models", before.Models, after.Models}, {"agents", before.Agents, after.Agents},
	} {
		if !reflect.DeepEqual(part.was, part.is) {
			c.Settings = append(c.Settings, part.key)
		}
	}
	return c
}

// IsEmpty reports whether there are no differences. It ignores Err.
func (c Change) IsEmpty() bool {
	return len(c.Added)+len(c.Removed)+len(c.Changed)+len(c.Served)+len(c.Settings) == 0
}

// String describes the differences without values.
func (c Change) String() string {
	var parts []string
	for _, part := range []struct {
		what  string
		names []string
	}{{"added", c.Added}, {"removed", c.Removed}, {"restarted", c.Changed}, {"tools served differently", c.Served}, {"set", c.Settings}} {
		if len(part.names) > 0 {
			parts = append(parts, part.what+": "+strings.Join(part.names, ", "))
		}
	}
	return strings.Join(parts, "; ")
}

// serversByName returns the servers without their positions in files, so that a server that
// only moves in its file is the same. It ignores functions, which no file contains.
func (c Config) serversByName() map[string]Server {
	all := map[string]Server{}
	for _, s := range c.Servers {
		s.Spec, s.Serve, s.Roots = s.Spec.WithoutPosition(), nil, nil
		all[s.Name] = s
	}
	for _, s := range c.Remote {
		all[s.Name] = Server{Spec: s.WithoutPosition(), Config: upstream.Config{Trusted: c.HelperFiles[s.Name]}}
	}
	return all
}

// withoutPositions returns servers without their positions in files.
func withoutPositions(servers []dialect.Server) (all []dialect.Server) {
	for _, s := range servers {
		all = append(all, s.WithoutPosition())
	}
	return all
}

// processSettings returns the server without the settings whose change needs no new process.
func (s Server) processSettings() Server {
	s.Spec.Tools, s.Spec.Prefix, s.Spec.Lazy = dialect.Filter{}, nil, nil
	s.Spec.Timeout, s.Spec.MaxConcurrent = 0, 0
	return s
}
