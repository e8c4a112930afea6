package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// A Profile is a named part of the catalog for clients that must not see more.
// Patterns with * match served names, and the names that tools would have without
// renaming. A tool that calls a blocked tool is blocked, too.
type Profile struct {
	Name    string
	Servers []string // empty: all
	Allow   []string // patterns of tools; empty: all
	Block   []string // patterns of tools; takes precedence over Allow
}

// Validate returns an error that names the wrong field.
func (p Profile) Validate() error {
	if !regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`).MatchString(p.Name) {
		return fmt.Errorf("profile %q: a name has 1 to 64 of a-z, A-Z, 0-9, _ and -", p.Name)
	}
	return nil
}

// serves reports whether an item belongs to the profile. The lists of tools apply only
// to tools.
func (p *Profile) serves(item *Item) bool {
	if len(p.Servers) > 0 && !MatchesAny(p.Servers, item.Server) {
		return false
	}
	return item.Kind != call.Tools || permitsNames(p.Allow, p.Block, item.names(), item.targetNames)
}

// apply returns the part of a snapshot that the profile shows. It is computed once for each
// snapshot.
func (p *Profile) apply(s *Snapshot) *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if part, ok := s.profiles[p]; ok {
		return part
	}
	all := map[call.ListKind][]*Item{}
	for _, kind := range kinds() {
		for _, item := range s.lists[kind].items {
			if p.serves(item) {
				all[kind] = append(all[kind], item)
			}
		}
	}
	part, _ := newSnapshot(all, s.identity, s.offline)
	if s.profiles == nil {
		s.profiles = map[*Profile]*Snapshot{}
	}
	s.profiles[p] = part
	return part
}

// A View is the catalog as a client sees it: all of it, or a profile.
type View struct {
	catalog *Catalog
	profile *Profile // nil: all
}

// View returns the view of the whole catalog.
func (c *Catalog) View() *View { return &View{catalog: c} }

// Profile returns the view of a profile.
func (c *Catalog) Profile(p Profile) *View { return &View{catalog: c, profile: &p} }

// Affects reports whether a change of a list changes what the view shows of it.
func (c Change) Affects(v *View) bool {
	if v.profile == nil {
		return true
	}
	before, after := c.BeforeAndAfter(v)
	return !before.hasSameList(after, c.Kind)
}

// BeforeAndAfter returns the view's snapshots before and after a change.
func (c Change) BeforeAndAfter(v *View) (before, after *Snapshot) {
	return v.apply(c.before), v.apply(c.after)
}

// apply returns the part of a snapshot that the view shows.
func (v *View) apply(s *Snapshot) *Snapshot {
	if v.profile == nil {
		return s
	}
	return v.profile.apply(s)
}

// HasSameList reports whether two views show the same items of the kind now.
func (v *View) HasSameList(other *View, kind call.ListKind) bool {
	now := v.catalog.currentSnapshot()
	return v.apply(now).hasSameList(other.apply(now), kind)
}

// Current returns the view's current snapshot.
func (v *View) Current() *Snapshot { return v.apply(v.catalog.currentSnapshot()) }

// Snapshot returns the view's snapshot after every server has been asked for its tools
// once; see Catalog.Snapshot.
func (v *View) Snapshot(ctx context.Context) *Snapshot { return v.apply(v.catalog.Snapshot(ctx)) }

// List returns the result of a list request, after every server has been asked once. The
// wait ends with ctx.
func (v *View) List(ctx context.Context, kind call.ListKind, modern bool) json.RawMessage {
	return v.apply(v.catalog.snapshot(ctx, kind)).ListResult(kind, modern)
}

// Lookup returns the tool for a call of name. It does the same as Catalog.Lookup, except
// that it returns a tool with Unlisted set if a server that may have the tool could not be
// listed so far; then it does not wait for the lists of other servers. It returns false for
// tools that the view does not show.
func (v *View) Lookup(ctx context.Context, name string) (*call.Tool, bool) {
	item, first, ok := v.catalog.findLikely(ctx, call.Tools, name)
	if !ok {
		unlisted := v.unlistedTool(name, first)
		if unlisted != nil {
			item, ok = v.catalog.findMissing(ctx, call.Tools, name)
		} else {
			first = append(first, v.catalog.untried(call.Tools, nil)...)
			item, ok = v.catalog.findAnywhere(ctx, call.Tools, name)
			unlisted = v.unlistedTool(name, first)
		}
		if !ok && unlisted != nil {
			return unlisted, true
		}
	}
	if !ok || !v.shows(item) {
		return nil, false
	}
	return item.Tool, true
}

// shows reports whether the view has an item. Without a profile it has all.
func (v *View) shows(item *Item) bool { return v.profile == nil || v.profile.serves(item) }

// Locate returns the server of a prompt, resource or template with a served name, and its
// original name. A prompt can belong to a server that could not be listed so far. For a URI
// that no server lists, it looks for a matching template, and then
// for the first server that lists a URI with the same scheme: tools return links to
// resources that are in no list. ok is false if no shown server has it. Locate can wait for
// lists, until ctx ends.
func (v *View) Locate(ctx context.Context, kind call.ListKind, name string) (server, original string, ok bool) {
	if kind == call.Prompts {
		item, _, ok := v.catalog.findLikely(ctx, kind, name)
		if !ok {
			if item := v.unlistedPrompt(name); item != nil {
				return item.Server, item.Original, true
			}
			item, ok = v.catalog.findAnywhere(ctx, kind, name)
		}
		if !ok || !v.shows(item) {
			return "", "", false
		}
		return item.Server, item.Original, true
	}
	if server, uri, ok := unqualify(name); ok {
		for _, s := range v.catalog.allServers() {
			if s.Source.Name() == server && v.shows(&Item{Kind: kind, Server: server}) {
				return server, uri, true
			}
		}
	}
	return v.locateURI(ctx, name)
}

// locateURI returns the server of a resource with a served URI, and the server's own
// URI for it. Servers are asked only if the known lists do not have it. ok is false if
// no shown server has it.
func (v *View) locateURI(ctx context.Context, uri string) (server, original string, ok bool) {
	for _, ask := range []bool{false, true} {
		s := v.catalog.currentSnapshot()
		if ask {
			v.catalog.awaitLists(ctx, call.Resources, nil)
			s = v.catalog.snapshot(ctx, call.Templates)
		}
		for _, kind := range []call.ListKind{call.Resources, call.Templates} {
			if item, ok := s.byName(kind, uri); ok && v.shows(item) {
				return item.Server, item.Original, true
			}
		}
		if owner, ok := s.owners[uri]; ok && v.shows(&Item{Kind: call.Resources, Server: owner}) {
			return owner, uri, true // a tool refers to it
		}
		if !ask {
			continue
		}
		if item := v.firstShown(s.Items(call.Templates), func(i *Item) bool { return expands(i.Original, uri) }); item != nil {
			return item.Server, uri, true
		}
		scheme, _, _ := strings.Cut(uri, ":")
		items := slices.Concat(s.Items(call.Resources), s.Items(call.Templates))
		if item := v.firstShown(items, func(i *Item) bool { return strings.HasPrefix(i.Original, scheme+":") }); item != nil {
			return item.Server, uri, true
		}
	}
	return "", "", false
}

// firstShown returns the first shown item that fits, or nil.
func (v *View) firstShown(items []*Item, fits func(*Item) bool) *Item {
	for _, item := range items {
		if v.shows(item) && fits(item) {
			return item
		}
	}
	return nil
}

// expands reports whether a URI can be an expansion of a template (RFC 6570): its
// literal parts occur in order, and a simple expression matches text without a slash.
func expands(template, uri string) bool {
	const most = 32 // bound of expressions, since the time to match grows with each
	if strings.Count(template, "{") > most {
		return false
	}
	form := []byte("^")
	for rest := template; rest != ""; {
		literal, after, found := strings.Cut(rest, "{")
		form = append(form, regexp.QuoteMeta(literal)...)
		if !found {
			break
		}
		expression, behind, closed := strings.Cut(after, "}")
		if !closed || expression == "" {
			return false
		}
		any := "[^/]+"
		if strings.IndexByte("+#/;?&.", expression[0]) >= 0 || strings.HasSuffix(expression, "*") {
			any = ".*"
		}
		form = append(form, any...)
		rest = behind
	}
	match, err := regexp.MatchString(string(form)+"$", uri)
	return err == nil && match // a template that is too large to compile matches nothing
}
