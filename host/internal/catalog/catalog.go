// Package catalog knows the tools, resources and prompts of all servers under
// stable names. It keeps an immutable snapshot, made anew when a server's list
// changes, with the answers to the list requests ready for each profile and
// era.
//
// # Names
//
// A tool or prompt is served as SERVER__NAME (a bundled one under its own
// name, one of a server with a prefix as PREFIX+NAME, a renamed one under that
// name); see ServedName. A resource or template keeps its URI; of several
// servers that list the same one the first as configured has it, and the
// others' are served as "toolroom:SERVER/URI", a form that always leads to
// that server, whoever else is there.
//
// A name that another server's name could be mistaken for is refused, as is
// one that is taken: the server configured first has it.
//
// # When servers are asked
//
// Servers are listed when somebody first needs to know: all of them for a
// list, the likely one for a call. One that cannot be listed is left out,
// tried again in the background, and what it has follows with a change
// notice.
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

// A Source is one server, as the catalogue needs it.
type Source interface {
	Name() string
	// List returns the items as the server sent them; items with an error are not pinned.
	List(ctx context.Context, kind call.Kind) ([]json.RawMessage, error)
}

// An Entry is a source and how what it has is named.
type Entry struct {
	Source Source
	Plain  bool    // served under their own names: the bundled ones
	Prefix *string // in place of SERVER__
	Filter Filter  // of its tools

	// Of is the tool that a source's one tool is another name of, and Also are
	// that one's names: what is blocked is so under every name.
	Of   Target
	Also []string
}

// maxStarts is how many servers are listed, and so started, at a time. One
// that takes longer than slowStart does not hold up the others any more.
const (
	maxStarts = 4
	slowStart = 2 * time.Second
)

// A Catalog is safe for concurrent use.
type Catalog struct {
	identity json.RawMessage // of this host, in modern lists; nil: not said
	servers  atomic.Pointer[[]*server]
	onChange func(Change)
	onDrift  func(*ChangedError)
	onMiss   func(ctx context.Context, name string) bool
	onUse    func(ctx context.Context, tool *call.Tool) bool
	starts   chan struct{}
	current  atomic.Pointer[Snapshot]

	life   context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu     sync.Mutex // of what follows and of the servers' lists
	closed bool
	faults []error // what is not served
	pins   *pins
	checks map[chan struct{}]struct{} // of pins, under way
}

// A Change is the replacement of a list that somebody may have seen.
type Change struct {
	Kind          call.Kind
	before, after *Snapshot
}

// server is an entry with what is known of it.
type server struct {
	Entry
	known bool // its lists never have to be asked for
	lists map[call.Kind]*listing
}

// listing is one list of a server's.
type listing struct {
	items  []*Item
	faults []error
	drift  []error // definitions that are not the pinned ones
	asked  int     // how often
	err    error   // of the last attempt
	tried  bool    // listed once, well or not
	busy   chan struct{}
	pace
}

// New returns a catalogue of entries, none of which has been asked.
// onChange, unless nil, is called after a list was replaced that somebody may
// have seen. identity is the host's, as a JSON object.
func New(entries []Entry, identity json.RawMessage, onChange func(Change)) *Catalog {
	c := &Catalog{identity: identity, onChange: onChange, starts: make(chan struct{}, maxStarts), checks: map[chan struct{}]struct{}{}}
	servers := make([]*server, 0, len(entries))
	for _, e := range entries {
		servers = append(servers, newServer(e))
	}
	c.servers.Store(&servers)
	c.life, c.cancel = context.WithCancel(context.Background())
	first, faults := c.assemble()
	c.faults = faults
	c.current.Store(first)
	return c
}

func newServer(e Entry) *server {
	s := &server{Entry: e, lists: map[call.Kind]*listing{}}
	for _, kind := range kinds() {
		s.lists[kind] = &listing{}
	}
	if source, ok := e.Source.(Known); ok {
		s.know(source)
	}
	return s
}

// A Known source is one whose lists need no asking: they are there from the
// start, and never change.
type Known interface {
	Known(kind call.Kind) []json.RawMessage
}

func (s *server) know(source Known) {
	s.known = true
	for kind, l := range s.lists {
		l.items, l.faults = s.items(kind, source.Known(kind))
		l.tried = true
	}
}

// all are the servers in the configured order.
func (c *Catalog) all() []*server { return *c.servers.Load() }

func kinds() [4]call.Kind {
	return [...]call.Kind{call.Tools, call.Resources, call.Templates, call.Prompts}
}

// Snapshot returns the catalogue after every server has been asked for its
// tools once. Those that could not be listed are asked again in the
// background. When ctx ends first, it returns what is known.
func (c *Catalog) Snapshot(ctx context.Context) *Snapshot { return c.snapshot(ctx, call.Tools) }

func (c *Catalog) snapshot(ctx context.Context, kind call.Kind) *Snapshot {
	if kind == call.Tools && c.onUse != nil {
		c.onUse(ctx, nil)
	}
	c.list(ctx, kind, nil)
	return c.current.Load()
}

// Lookup finds a tool by its served name, asking the servers that are likely
// to have it first.
func (c *Catalog) Lookup(ctx context.Context, name string) (*call.Tool, bool) {
	item, ok := c.find(ctx, call.Tools, name)
	if !ok {
		return nil, false
	}
	return item.Tool, true
}

// find is Lookup for any kind that has names.
func (c *Catalog) find(ctx context.Context, kind call.Kind, name string) (*Item, bool) {
	if item, ok := c.current.Load().byName(kind, name); ok && (item.Tool == nil || c.onUse == nil || !c.onUse(ctx, item.Tool)) {
		return c.whole(ctx, item), true
	}
	likely := func(s *server) bool { return s.mayServe(name) }
	for _, group := range []func(*server) bool{likely, nil} {
		c.list(ctx, kind, group)
		if item, ok := c.current.Load().byName(kind, name); ok {
			return c.whole(ctx, item), true
		}
	}
	if kind != call.Tools || c.onMiss == nil || !c.onMiss(ctx, name) {
		return nil, false
	}
	c.list(ctx, kind, likely)
	item, ok := c.current.Load().byName(kind, name)
	if !ok {
		return nil, false
	}
	return c.whole(ctx, item), true
}

// OnMissing sets what is asked for a tool that no source has; it reports
// whether one has it now. Call it before first use.
func (c *Catalog) OnMissing(find func(ctx context.Context, name string) bool) { c.onMiss = find }

// OnUse sets what is told before tools are listed, with nil, and before one is
// called that was found; it reports whether the sources are others now. Call it
// before first use.
func (c *Catalog) OnUse(look func(ctx context.Context, tool *call.Tool) bool) { c.onUse = look }

// mayServe reports whether a name looks like one of the server's.
func (s *server) mayServe(name string) bool {
	switch {
	case s.Plain:
		return s.Source.Name() == name
	case s.Prefix != nil:
		return *s.Prefix != "" && strings.HasPrefix(name, *s.Prefix)
	}
	return strings.HasPrefix(name, s.Source.Name()+"__")
}

// Errors returns why tools or servers are missing, and which definitions have
// changed.
func (c *Catalog) Errors() []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, s := range c.all() {
		for _, kind := range kinds() {
			l := s.lists[kind]
			if l.err != nil {
				errs = append(errs, &ServerError{s.Source.Name(), l.err})
			}
			errs = append(append(errs, l.faults...), l.drift...)
		}
	}
	return append(errs, c.faults...)
}

// A ServerError is a server that could not be listed.
type ServerError struct {
	Server string
	Err    error
}

func (e *ServerError) Error() string { return "server " + e.Server + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *ServerError) Unwrap() error { return e.Err }

// Refresh asks the server of that name again, in the background: its lists
// may have changed. Without kinds, all of them. However often a server says so,
// it is asked once at a time, and less and less often.
func (c *Catalog) Refresh(name string, changed ...call.Kind) {
	if len(changed) == 0 {
		all := kinds()
		changed = all[:]
	}
	for _, s := range c.all() {
		if s.Source.Name() != name {
			continue
		}
		c.mu.Lock()
		for _, kind := range changed {
			if s.lists[kind].tried { // else whoever needs it will ask
				c.follow(s, kind)
			}
		}
		c.mu.Unlock()
	}
}

// Ask asks servers for their tools in the background, which starts them, unless
// somebody has.
func (c *Catalog) Ask(names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.all() {
		if l := s.lists[call.Tools]; slices.Contains(names, s.Source.Name()) && !l.tried && l.busy == nil {
			c.ask(s, call.Tools)
		}
	}
}

// Close ends what goes on in the background, but for a moment in which new
// definitions are pinned.
func (c *Catalog) Close() {
	c.mu.Lock()
	c.closed = true
	for _, s := range c.all() {
		for _, l := range s.lists {
			l.stop()
		}
	}
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	c.Settle(ctx)
	c.cancel()
	c.work.Wait()
}

// list asks those servers of a group, nil meaning all, that have not been
// listed, and waits for those that were never tried. When the servers are
// replaced meanwhile, the new ones are waited for, too.
func (c *Catalog) list(ctx context.Context, kind call.Kind, group func(*server) bool) {
	for {
		servers := c.servers.Load()
		for _, busy := range c.listOnce(kind, *servers, group) {
			select {
			case <-busy:
			case <-ctx.Done():
				return
			}
		}
		if c.servers.Load() == servers {
			return
		}
	}
}

func (c *Catalog) listOnce(kind call.Kind, servers []*server, group func(*server) bool) (waits []chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range servers {
		l := s.lists[kind]
		if l.tried && l.err == nil || group != nil && !group(s) {
			continue
		}
		first := !l.tried
		if l.busy == nil {
			c.ask(s, kind)
		}
		if first && l.busy != nil {
			waits = append(waits, l.busy)
		}
	}
	return waits
}

// ask lists a server in the background. c.mu is held.
func (c *Catalog) ask(s *server, kind call.Kind) {
	if c.closed {
		return
	}
	busy := make(chan struct{})
	l := s.lists[kind]
	l.busy = busy
	l.asked++
	asked := l.asked
	c.work.Go(func() {
		c.starts <- struct{}{}
		leave := sync.OnceFunc(func() { <-c.starts })
		slow := time.AfterFunc(slowStart, leave)
		raw, err := s.Source.List(c.life, kind)
		slow.Stop()
		leave()
		pins := c.pinned()                 // those of now, whenever it was asked
		if kind != call.Tools || s.Plain { // ours change with the host
			pins = nil
		}
		items, faults := s.items(kind, raw)
		listed := items
		if err == nil && pins != nil && pins.mode == PinsEnforce {
			items, err = c.withhold(l, pins, s.Source.Name(), items)
		}
		if err == nil && pins != nil {
			c.check(l, asked, pins, s.Source.Name(), listed)
		}
		c.learn(l, kind, busy, items, faults, err)
		c.mu.Lock()
		defer c.mu.Unlock()
		if l.again {
			c.follow(s, kind)
		}
	})
}

// items makes the catalogue's items of a server's.
func (s *server) items(kind call.Kind, raw []json.RawMessage) (items []*Item, faults []error) {
	for _, definition := range raw {
		item, fault := newItem(s.Entry, kind, definition)
		if fault != nil {
			faults = append(faults, fault)
		}
		if item != nil && (kind != call.Tools || s.Filter.serves(item)) {
			items = append(items, item)
		}
	}
	return items, faults
}

// learn takes a server's list in. A server that cannot be listed keeps what it
// had: it is started again when that is used. While it is offline, which it
// says itself, that is not listed.
func (c *Catalog) learn(l *listing, kind call.Kind, busy chan struct{}, items []*Item, faults []error, err error) {
	c.mu.Lock()
	seen := l.tried
	l.tried, l.err = true, err
	if err == nil || len(items) > 0 {
		l.items, l.faults = items, faults
	}
	if l.busy == busy {
		l.busy = nil
	}
	change, changed := c.rebuild(kind)
	closed := c.closed
	c.mu.Unlock()
	close(busy)
	if changed && seen && !closed && c.onChange != nil {
		c.onChange(change)
	}
}

// rebuild makes the snapshot anew and reports whether a list of the kind is
// another one. c.mu is held.
func (c *Catalog) rebuild(kind call.Kind) (Change, bool) {
	before := c.current.Load()
	next, faults := c.assemble()
	c.faults = faults
	if before.same(next, kind) {
		if !slices.EqualFunc(before.Items(kind), next.Items(kind), sameItem) { // some is found by name only
			c.current.Store(next)
		}
		return Change{}, false
	}
	c.current.Store(next)
	return Change{kind, before, next}, true
}

// assemble makes a snapshot of what is known. c.mu is held.
func (c *Catalog) assemble() (*Snapshot, []error) {
	all := map[call.Kind][]*Item{}
	offline := map[string]bool{}
	for _, s := range c.all() {
		if given, ok := s.Source.(interface{ Offline() bool }); ok && given.Offline() {
			offline[s.Source.Name()] = true
		}
		for _, kind := range kinds() {
			all[kind] = append(all[kind], s.lists[kind].items...)
		}
	}
	inherit(all[call.Tools])
	return newSnapshot(all, c.identity, offline)
}
