// Package catalog holds the tools, resources and prompts of all servers under stable
// names. It keeps an immutable snapshot, rebuilt when a server's list changes, with
// prepared answers to the list requests of each profile and era.
//
// # Names
//
// A tool or prompt is served as SERVER__NAME (a bundled one under its own name, one of
// a server with a prefix as PREFIX+NAME, a renamed one under the new name); see
// ServedName. A resource or template keeps its URI. If several servers list the same
// URI, the first one in the configuration has it, and the others are served as
// "toolroom:SERVER/URI", a form that always leads to that server.
//
// A name that is taken, or that looks like another server's name, is refused: the
// server configured first keeps it.
//
// # When servers are asked
//
// Servers are asked for their lists when the lists are first needed: all servers for a
// list, the probable one for a call. A server that cannot be listed is left out and
// retried in the background; when it answers, clients get a change notification.
package catalog

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// A Source is a server that the catalog lists.
type Source interface {
	Name() string
	// List returns the items as the server sent them. If it also returns an error, the
	// items are not pinned.
	List(ctx context.Context, kind call.ListKind) ([]json.RawMessage, error)
}

// A SourceConfig is a source with the settings for its names.
type SourceConfig struct {
	Source Source
	Plain  bool    // served under their own names, as the bundled tools
	Prefix *string // replaces SERVER__
	Filter Filter  // for its tools

	// AliasOf is set if the source's only tool is another name for a tool of another server.
	// Also lists the names of that tool: a blocked tool is blocked under every name.
	AliasOf     AliasTarget
	TargetNames []string
}

// maxStarts bounds the servers that are listed, and so started, concurrently. A server
// that takes longer than slowStartDuration does not count any more.
const (
	maxStarts         = 4
	slowStartDuration = 2 * time.Second
)

// A Catalog holds the lists of its servers, with served names. It is safe for concurrent
// use.
type Catalog struct {
	identity  json.RawMessage // of this host, in modern lists; nil: omitted
	servers   atomic.Pointer[[]*server]
	onChange  func(Change)
	onDrift   func(*ChangedError)
	onMissing func(ctx context.Context, name string) bool
	onUse     func(ctx context.Context, tool *call.Tool) bool
	starts    chan struct{}
	current   atomic.Pointer[Snapshot] // see currentSnapshot
	outdated  atomic.Bool              // current lacks lists that no client has seen

	life   context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu     sync.Mutex // guards the following fields and the servers' lists
	closed bool
	faults []error // items that are not served, with the reasons
	pins   *pins
	checks pinChecks

	onFault        func(error)
	reportedFaults map[string]bool // texts that onFault got; guarded by mu
}

// A Change is the replacement of a list that a client may have seen.
type Change struct {
	Kind          call.ListKind
	before, after *Snapshot
}

// server is an entry with its lists.
type server struct {
	SourceConfig
	isKnown bool // its lists need not be requested
	lists   map[call.ListKind]*listing
}

// listing is the list of one kind of a server, with the state of its requests.
type listing struct {
	items  []*Item
	faults []error
	drift  []error // definitions that differ from the pinned ones
	asked  int     // number of requests
	err    error   // of the last request
	tried  bool    // requested once, successfully or not
	listed bool    // requested once successfully
	busy   chan struct{}
	refreshThrottle
}

// New returns a catalog of entries without asking any. onChange is called after a list
// was replaced that a client may have seen; it may be nil. identity is the host's
// identity as a JSON object.
func New(entries []SourceConfig, identity json.RawMessage, onChange func(Change)) *Catalog {
	c := &Catalog{identity: identity, onChange: onChange, reportedFaults: map[string]bool{}, starts: make(chan struct{}, maxStarts), checks: pinChecks{open: map[chan struct{}]struct{}{}, hurry: make(chan struct{}, 1)}}
	servers := make([]*server, 0, len(entries))
	for _, e := range entries {
		servers = append(servers, newServer(e))
	}
	c.servers.Store(&servers)
	c.life, c.cancel = context.WithCancel(context.Background())
	c.current.Store(c.assemble())
	return c
}

// newServer returns a server whose lists are empty, or those of its source if it is
// Known.
func newServer(e SourceConfig) *server {
	s := &server{SourceConfig: e, lists: map[call.ListKind]*listing{}}
	for _, kind := range kinds() {
		s.lists[kind] = &listing{}
	}
	if source, ok := e.Source.(KnownLister); ok {
		s.setKnownLists(source)
	}
	return s
}

// A KnownLister has lists that need no request: they exist from the start and never
// change.
type KnownLister interface {
	Known(kind call.ListKind) []json.RawMessage
}

// setKnownLists takes the lists of a source that need not be asked.
func (s *server) setKnownLists(source KnownLister) {
	s.isKnown = true
	for kind, l := range s.lists {
		l.items, l.faults = s.items(kind, source.Known(kind))
		l.tried = true
	}
}

// allServers returns the servers in the configured order.
func (c *Catalog) allServers() []*server { return *c.servers.Load() }

// kinds returns the kinds of lists, in the order of the requests to a server.
func kinds() [4]call.ListKind {
	return [...]call.ListKind{call.Tools, call.Resources, call.Templates, call.Prompts}
}

// Snapshot returns the catalog after every server has been asked for its tools once.
// Servers that could not be listed are retried in the background. If ctx ends first,
// it returns the current snapshot.
func (c *Catalog) Snapshot(ctx context.Context) *Snapshot { return c.snapshot(ctx, call.Tools) }

// snapshot returns the current catalog, after every server was asked for its list of this
// kind and those asked for the first time have answered or ctx has ended.
func (c *Catalog) snapshot(ctx context.Context, kind call.ListKind) *Snapshot {
	if kind == call.Tools && c.onUse != nil {
		c.onUse(ctx, nil)
	}
	c.awaitLists(ctx, kind, nil)
	return c.currentSnapshot()
}

// currentSnapshot returns the current snapshot. Many servers are listed at the same time when a
// client first needs a list, so it is built when it is needed, not after each of them.
func (c *Catalog) currentSnapshot() *Snapshot {
	if c.outdated.Load() {
		c.mu.Lock()
		c.rebuildIfOutdated()
		c.mu.Unlock()
	}
	return c.current.Load()
}

// rebuildIfOutdated rebuilds an outdated snapshot. The caller holds c.mu.
func (c *Catalog) rebuildIfOutdated() {
	if !c.outdated.Load() {
		return
	}
	before := c.current.Load()
	next := c.assemble()
	for _, kind := range kinds() {
		if !before.hasSameList(next, kind) || !slices.EqualFunc(before.Items(kind), next.Items(kind), sameItem) {
			c.current.Store(next)
			break
		}
	}
	c.outdated.Store(false)
}

// Lookup returns the tool with a served name, and false if no server has it. If the name is
// unknown, it waits for the lists of servers that are not listed yet: first of those that
// probably have it, then of all. That starts them. The wait ends with ctx.
func (c *Catalog) Lookup(ctx context.Context, name string) (*call.Tool, bool) {
	item, ok := c.find(ctx, call.Tools, name)
	if !ok {
		return nil, false
	}
	return item.Tool, true
}

// find does the same as Lookup for any kind of items with names. For tools it also calls
// the functions of BeforeUse and OnMissing.
func (c *Catalog) find(ctx context.Context, kind call.ListKind, name string) (*Item, bool) {
	if item, _, ok := c.findLikely(ctx, kind, name); ok {
		return item, true
	}
	return c.findAnywhere(ctx, kind, name)
}

// findLikely does the same as find, except that it asks only the servers that probably
// have the item, and does not call the function of OnMissing. first are the servers that
// it asked for the first time.
func (c *Catalog) findLikely(ctx context.Context, kind call.ListKind, name string) (item *Item, first []*server, ok bool) {
	if item, ok := c.currentSnapshot().byName(kind, name); ok && (item.Tool == nil || c.onUse == nil || !c.onUse(ctx, item.Tool)) {
		return c.withTarget(ctx, item), nil, true
	}
	likely := func(s *server) bool { return s.mayServe(name) }
	first = c.untried(kind, likely)
	c.awaitLists(ctx, kind, likely)
	if item, ok := c.currentSnapshot().byName(kind, name); ok {
		return c.withTarget(ctx, item), first, true
	}
	return nil, first, false
}

// findAnywhere returns the item that any server has, and waits for the lists of servers that
// are not listed yet, or else the item that findMissing returns.
func (c *Catalog) findAnywhere(ctx context.Context, kind call.ListKind, name string) (*Item, bool) {
	c.awaitLists(ctx, kind, nil)
	if item, ok := c.currentSnapshot().byName(kind, name); ok {
		return c.withTarget(ctx, item), true
	}
	return c.findMissing(ctx, kind, name)
}

// findMissing returns the item that the function of OnMissing has found; false if it has
// not.
func (c *Catalog) findMissing(ctx context.Context, kind call.ListKind, name string) (*Item, bool) {
	if kind != call.Tools || c.onMissing == nil || !c.onMissing(ctx, name) {
		return nil, false
	}
	c.awaitLists(ctx, kind, func(s *server) bool { return s.mayServe(name) })
	item, ok := c.currentSnapshot().byName(kind, name)
	if !ok {
		return nil, false
	}
	return c.withTarget(ctx, item), true
}

// OnMissing sets a function that is called with the name of a tool that no source has,
// and reports whether a source has it now. It must be set before the first use.
func (c *Catalog) OnMissing(find func(ctx context.Context, name string) bool) { c.onMissing = find }

// BeforeUse sets a function that is called before tools are listed, with nil, and before a
// call with the found tool. It reports whether the sources have changed. It must be
// set before the first use.
func (c *Catalog) BeforeUse(refresh func(ctx context.Context, tool *call.Tool) bool) {
	c.onUse = refresh
}

// mayServe reports whether a served name can belong to the server, as far as the name
// tells; the server's list need not be known.
func (s *server) mayServe(name string) bool {
	switch {
	case s.renames(name):
		return true
	case s.Plain:
		return s.Source.Name() == name
	case s.Prefix != nil:
		return *s.Prefix != "" && strings.HasPrefix(name, *s.Prefix)
	}
	return strings.HasPrefix(name, s.Source.Name()+"__")
}

// Refresh requests lists of a server again in the background, because they may have
// changed; all of them without kinds. However often a server reports changes, there is
// one request at a time, at growing intervals.
func (c *Catalog) Refresh(name string, changed ...call.ListKind) {
	if len(changed) == 0 {
		all := kinds()
		changed = all[:]
	}
	for _, s := range c.allServers() {
		if s.Source.Name() != name {
			continue
		}
		c.mu.Lock()
		for _, kind := range changed {
			if s.lists[kind].tried { // otherwise it is requested when needed
				c.requestWhenPermitted(s, kind)
			}
		}
		c.mu.Unlock()
	}
}

// StartListing begins to request the tools of servers in the background, which starts the
// servers, unless they were requested before. It does not wait.
func (c *Catalog) StartListing(names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.allServers() {
		if l := s.lists[call.Tools]; slices.Contains(names, s.Source.Name()) && !l.tried && l.busy == nil {
			c.requestList(s, call.Tools)
		}
	}
}

// Close ends the background work, except for a short time to pin new definitions.
func (c *Catalog) Close() {
	c.mu.Lock()
	c.closed = true
	for _, s := range c.allServers() {
		for _, l := range s.lists {
			l.stop()
		}
	}
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	c.WaitForPinChecks(ctx)
	c.cancel()
	c.work.Wait()
}

// rebuild builds a new snapshot and reports whether the list of the kind has changed.
// The caller holds c.mu and has called rebuildIfOutdated before the change.
func (c *Catalog) rebuild(kind call.ListKind) (Change, bool) {
	before := c.current.Load()
	next := c.assemble()
	if before.hasSameList(next, kind) {
		if !slices.EqualFunc(before.Items(kind), next.Items(kind), sameItem) { // some items are found only by name
			c.current.Store(next)
		}
		return Change{}, false
	}
	c.current.Store(next)
	return Change{kind, before, next}, true
}

// assemble builds a snapshot, and stores and reports the faults of what it left out. The
// caller holds c.mu.
func (c *Catalog) assemble() (s *Snapshot) {
	all := map[call.ListKind][]*Item{}
	offline := map[string]bool{}
	for _, s := range c.allServers() {
		if given, ok := s.Source.(interface{ IsGivenUp() bool }); ok && given.IsGivenUp() {
			offline[s.Source.Name()] = true
		}
		for _, kind := range kinds() {
			all[kind] = append(all[kind], s.lists[kind].items...)
		}
	}
	completeAliases(all[call.Tools])
	s, c.faults = newSnapshot(all, c.identity, offline)
	c.reportFaults()
	return s
}
