package catalog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// PinMode says what happens to a tool whose definition has changed since its first
// use.
type PinMode string

// The modes. Off stores nothing. Warn serves a changed tool and reports it. Enforce
// withholds it until it is approved.
const (
	PinsOff     PinMode = "off"
	PinsWarn    PinMode = "warn"
	PinsEnforce PinMode = "enforce"
)

// A PinStore stores the definitions of a server's tools, by the tools' own names. Pin
// does not change an existing pin, Repin does.
type PinStore interface {
	Pinned(ctx context.Context, server string) (map[string]json.RawMessage, error)
	Pin(ctx context.Context, server, tool string, definition json.RawMessage) error
	Repin(ctx context.Context, server, tool string, definition json.RawMessage) error
}

// A ChangedError is the error of a tool whose definition differs from the pinned one.
type ChangedError struct {
	Server, Tool string
	Name         string // served name
	Withheld     bool
	Was, Is      json.RawMessage // canonical definitions
}

// Error says what has changed, and what to do.
func (e *ChangedError) Error() string {
	state := "it is served anyway"
	if e.Withheld {
		state = "it is withheld until it is approved"
	}
	return fmt.Sprintf("the definition of tool %s of server %s (%s) differs from that of its first use (%s); %s",
		e.Tool, e.Server, shortDigest(e.Is), shortDigest(e.Was), state)
}

// shortDigest returns the beginning of the definition's SHA-256, for messages.
// Definitions are compared as a whole.
func shortDigest(definition json.RawMessage) string {
	sum := sha256.Sum256(definition)
	return hex.EncodeToString(sum[:6])
}

// pins compares the definitions that servers list with the pinned ones.
type pins struct {
	mode  PinMode
	store PinStore

	mu      sync.Mutex
	changed map[[2]string]*ChangedError // by server and tool
}

// SetPins starts to pin the definitions of tools, except those of bundled servers,
// which change with the host.
//
// With PinsEnforce a list is compared before it is served, and not accepted if the
// store cannot be read. With PinsWarn it is compared afterwards, so that no request
// waits for the store. In both modes new tools are pinned in the background.
func (c *Catalog) SetPins(mode PinMode, store PinStore) {
	var p *pins
	if mode != PinsOff && mode != "" && store != nil {
		p = &pins{mode: mode, store: store, changed: map[[2]string]*ChangedError{}}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pins = p
	for _, s := range c.allServers() {
		l := s.lists[call.Tools]
		if l.drift = nil; l.tried && !s.isKnown {
			c.requestList(s, call.Tools)
		}
	}
}

// OnDrift sets a function that is called once for every changed definition. It must be
// set before the first use.
func (c *Catalog) OnDrift(f func(*ChangedError)) { c.onDrift = f }

// pinned returns the pins in force, nil if pinning is off.
func (c *Catalog) pinned() *pins {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pins
}

// Changed returns the tools whose definitions differ from their pins; nil if definitions
// are not pinned.
func (c *Catalog) Changed() []*ChangedError {
	p := c.pinned()
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []*ChangedError
	for _, s := range c.allServers() {
		for key, e := range p.changed {
			if key[0] == s.Source.Name() {
				all = append(all, e)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *ChangedError) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Approve pins the current definition of a changed tool and requests the server's list
// again. It returns an error if definitions are not pinned or this one has not changed.
func (c *Catalog) Approve(ctx context.Context, server, tool string) error {
	p := c.pinned()
	if p == nil {
		return fmt.Errorf("definitions are not pinned: tool_pins is off")
	}
	p.mu.Lock()
	e := p.changed[[2]string{server, tool}]
	p.mu.Unlock()
	if e == nil {
		return fmt.Errorf("the definition of tool %s of server %s has not changed", tool, server)
	}
	if err := p.store.Repin(ctx, server, tool, e.Is); err != nil {
		return err
	}
	c.Refresh(server, call.Tools)
	return nil
}

// RelistApproved requests the lists of servers again whose changed definitions were approved by
// another host.
func (c *Catalog) RelistApproved(ctx context.Context) {
	p := c.pinned()
	for _, e := range c.Changed() {
		if now, err := p.store.Pinned(ctx, e.Server); err == nil && equalsPin(now[e.Tool], e.Is) {
			c.Refresh(e.Server, call.Tools)
		}
	}
}

// withholdChanged returns items without the tools whose definitions have changed since they were
// pinned, and reports these tools. It pins nothing. It returns the errors of the store of pins.
func (c *Catalog) withholdChanged(l *listing, p *pins, server string, items []*Item) ([]*Item, error) {
	found, err := p.compare(c.life, server, items)
	if err != nil {
		return nil, fmt.Errorf("its tools are withheld, because they cannot be compared with their first use: %w", err)
	}
	c.reportDrift(p, server, found.changed)
	c.mu.Lock()
	l.drift = found.errors()
	c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(items), func(i *Item) bool {
		return slices.ContainsFunc(found.changed, func(e *ChangedError) bool { return e.Tool == i.Original })
	}), nil
}

// reportDrift stores the changed tools of a server and reports the new changes.
func (c *Catalog) reportDrift(p *pins, server string, changed []*ChangedError) {
	var news []*ChangedError
	p.mu.Lock()
	for _, e := range changed {
		before := p.changed[[2]string{server, e.Tool}]
		if before == nil || string(before.Is) != string(e.Is) {
			news = append(news, e)
		}
	}
	for key := range p.changed {
		if key[0] == server {
			delete(p.changed, key)
		}
	}
	for _, e := range changed {
		p.changed[[2]string{server, e.Tool}] = e
	}
	p.mu.Unlock()
	if c.onDrift != nil {
		for _, e := range news {
			c.onDrift(e)
		}
	}
}

// pinComparison is the result of comparing a server's list with its pins.
type pinComparison struct {
	changed  []*ChangedError
	newTools []newTool // not pinned yet
	faults   []error
}

// newTool is a tool without a pin, which gets one.
type newTool struct {
	tool       string
	definition json.RawMessage
}

// errors returns the changes as errors.
func (f pinComparison) errors() []error {
	all := slices.Clone(f.faults)
	for _, e := range f.changed {
		all = append(all, e)
	}
	return all
}

// compare finds the tools among items whose definition differs from its pin, and those
// without a pin. It stores nothing.
func (p *pins) compare(ctx context.Context, server string, items []*Item) (found pinComparison, err error) {
	pinned, err := p.store.Pinned(ctx, server)
	if err != nil {
		return found, err
	}
	for _, item := range items {
		is, err := canonical(item.received)
		if err != nil {
			found.faults = append(found.faults, fmt.Errorf("server %s: tool %s: %w", server, item.Original, err))
			continue
		}
		was, known := pinned[item.Original]
		switch {
		case !known:
			found.newTools = append(found.newTools, newTool{item.Original, is})
			pinned[item.Original] = is // two entries with one name are compared, too
		case !equalsPin(was, is):
			found.changed = append(found.changed, &ChangedError{
				Server: server, Tool: item.Original, Name: item.Name, Withheld: p.mode == PinsEnforce, Was: was, Is: is,
			})
		}
	}
	return found, nil
}

// compareAndPin compares a list, reports changed tools to tell, pins new ones and returns the
// changes as errors.
func (p *pins) compareAndPin(ctx context.Context, server string, items []*Item, tell func([]*ChangedError)) (drift []error) {
	found, err := p.compare(ctx, server, items)
	if err != nil {
		return []error{fmt.Errorf("server %s: its tools cannot be compared with their first use: %w", server, err)}
	}
	tell(found.changed)
	drift = found.errors()
	for _, one := range found.newTools {
		if err := p.store.Pin(ctx, server, one.tool, one.definition); err != nil {
			return append(drift, fmt.Errorf("server %s: tool %s cannot be pinned: %w", server, one.tool, err))
		}
	}
	return drift
}

// canonical returns a definition in a form that is equal for all texts of the same JSON
// value: sorted members, numbers as written, no spaces. The form is stored, so it must not
// change. It returns an error for a duplicate member or too deep nesting.
func canonical(definition json.RawMessage) (json.RawMessage, error) {
	form, ok := jsonrpc.Canonical(nil, bytes.TrimSpace(definition))
	if !ok {
		return nil, errors.New("its definition has a duplicate member, or is nested too deep")
	}
	return form, nil
}
