// Package catalog knows the tools of all servers under stable names. It keeps
// an immutable snapshot, made anew when a server's list changes, with the
// answers to tools/list ready in both eras.
//
// Servers are listed when somebody first needs to know: all of them for a
// list, the likely one for a call. One that cannot be listed is left out,
// tried again in the background, and its tools follow with a change notice.
package catalog

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/toolroom-mcp/toolroom/host/call"
)

// A Source is one server, as the catalogue needs it.
type Source interface {
	Name() string
	// Tools returns the entries of tools/list as the server sent them.
	Tools(ctx context.Context) ([]json.RawMessage, error)
}

// An Entry is a source and how its tools are named.
type Entry struct {
	Source Source
	Plain  bool // served under their own names: the bundled ones
}

// maxStarts is how many servers are listed, and so started, at a time.
const maxStarts = 4

// A Catalog is safe for concurrent use.
type Catalog struct {
	identity json.RawMessage // of this host, in modern lists; nil: not said
	servers  []*server
	onChange func()
	starts   chan struct{}
	current  atomic.Pointer[Snapshot]

	life   context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu     sync.Mutex // of what follows and of the servers' fields
	closed bool
	faults []error // tools that are not served
}

// server is an entry with what is known of it.
type server struct {
	Entry
	tools  []*call.Tool
	faults []error
	err    error // of the last listing
	tried  bool  // listed once, well or not
	busy   chan struct{}
}

// New returns a catalogue of entries, none of which has been asked.
// onChange, unless nil, is called after a snapshot was replaced that somebody
// may have seen. identity is the host's, as a JSON object.
func New(entries []Entry, identity json.RawMessage, onChange func()) *Catalog {
	c := &Catalog{identity: identity, onChange: onChange, starts: make(chan struct{}, maxStarts)}
	for _, e := range entries {
		c.servers = append(c.servers, &server{Entry: e})
	}
	c.life, c.cancel = context.WithCancel(context.Background())
	empty, _ := newSnapshot(nil, identity)
	c.current.Store(empty)
	return c
}

// Snapshot returns the catalogue after every server has been asked once. Those
// that could not be listed are asked again in the background. When ctx ends
// first, it returns what is known.
func (c *Catalog) Snapshot(ctx context.Context) *Snapshot {
	c.list(ctx, c.servers)
	return c.current.Load()
}

// List returns the result of tools/list, as Snapshot's.
func (c *Catalog) List(ctx context.Context, modern bool) json.RawMessage {
	return c.Snapshot(ctx).List(modern)
}

// Lookup finds a tool by its served name, asking the servers that are likely
// to have it first.
func (c *Catalog) Lookup(ctx context.Context, name string) (*call.Tool, bool) {
	if t, ok := c.current.Load().ByName(name); ok {
		return t, true
	}
	var likely []*server
	for _, s := range c.servers {
		if s.Plain && s.Source.Name() == name || !s.Plain && strings.HasPrefix(name, s.Source.Name()+"__") {
			likely = append(likely, s)
		}
	}
	for _, group := range [][]*server{likely, c.servers} {
		c.list(ctx, group)
		if t, ok := c.current.Load().ByName(name); ok {
			return t, true
		}
	}
	return nil, false
}

// Errors returns why tools or servers are missing.
func (c *Catalog) Errors() []error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for _, s := range c.servers {
		if s.err != nil {
			errs = append(errs, &ServerError{s.Source.Name(), s.err})
		}
		errs = append(errs, s.faults...)
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

// Refresh asks the server of that name again, in the background: its list may
// have changed.
func (c *Catalog) Refresh(name string) {
	for _, s := range c.servers {
		if s.Source.Name() == name {
			c.mu.Lock()
			if s.tried { // else whoever needs it will ask
				c.ask(s)
			}
			c.mu.Unlock()
		}
	}
}

// Close ends what goes on in the background.
func (c *Catalog) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.work.Wait()
}

// list asks those of the servers that have not been listed, and waits for
// those that were never tried.
func (c *Catalog) list(ctx context.Context, servers []*server) {
	var waits []chan struct{}
	c.mu.Lock()
	for _, s := range servers {
		if s.tried && s.err == nil {
			continue
		}
		first := !s.tried
		if s.busy == nil {
			c.ask(s)
		}
		if first && s.busy != nil {
			waits = append(waits, s.busy)
		}
	}
	c.mu.Unlock()
	for _, busy := range waits {
		select {
		case <-busy:
		case <-ctx.Done():
			return
		}
	}
}

// ask lists a server in the background. c.mu is held.
func (c *Catalog) ask(s *server) {
	if c.closed {
		return
	}
	busy := make(chan struct{})
	s.busy = busy
	c.work.Go(func() {
		c.starts <- struct{}{}
		raw, err := s.Source.Tools(c.life)
		<-c.starts
		c.learn(s, busy, raw, err)
	})
}

// learn takes a server's list in. A server that cannot be listed keeps the
// tools it had: it is started again when one of them is called.
func (c *Catalog) learn(s *server, busy chan struct{}, raw []json.RawMessage, err error) {
	c.mu.Lock()
	seen := s.tried
	s.tried, s.err = true, err
	if err == nil {
		s.tools, s.faults = nil, nil
		for _, definition := range raw {
			t, fault := newTool(s.Entry, definition)
			if fault != nil {
				s.faults = append(s.faults, fault)
				continue
			}
			s.tools = append(s.tools, t)
		}
	}
	if s.busy == busy {
		s.busy = nil
	}
	listings := make([][]*call.Tool, len(c.servers))
	for i, s := range c.servers {
		listings[i] = s.tools
	}
	old := c.current.Load()
	next, faults := newSnapshot(listings, c.identity)
	changed := string(old.legacy) != string(next.legacy)
	if changed {
		c.current.Store(next)
	}
	c.faults = faults
	closed := c.closed
	c.mu.Unlock()
	close(busy)
	if changed && seen && !closed && c.onChange != nil {
		c.onChange()
	}
}
