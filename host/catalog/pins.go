package catalog

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// PinMode says what becomes of a tool whose definition has changed since it
// was first used.
type PinMode string

// The modes. Off remembers nothing; Warn serves a changed tool and reports
// it; Enforce withholds it until it is approved.
const (
	PinsOff     PinMode = "off"
	PinsWarn    PinMode = "warn"
	PinsEnforce PinMode = "enforce"
)

// A PinStore remembers the definitions of a server's tools, by the tools' own
// names.
type PinStore interface {
	Pinned(ctx context.Context, server string) (map[string]json.RawMessage, error)
	Pin(ctx context.Context, server, tool string, definition json.RawMessage) error
}

// A ChangedError is a tool whose definition is not the pinned one.
type ChangedError struct {
	Server, Tool string
	Withheld     bool
	Was, Is      json.RawMessage // canonical definitions
}

// Error says what has changed, and what to do.
func (e *ChangedError) Error() string {
	state := "it is served all the same"
	if e.Withheld {
		state = "it is withheld until it is approved"
	}
	return fmt.Sprintf("tool %s of server %s has another definition (%s) than when it was first used (%s); %s",
		e.Tool, e.Server, digest(e.Is), digest(e.Was), state)
}

// digest is the beginning of a definition's SHA-256.
func digest(definition json.RawMessage) string {
	sum := sha256.Sum256(definition)
	return hex.EncodeToString(sum[:6])
}

// pins compares what servers list with what they listed at first.
type pins struct {
	mode  PinMode
	store PinStore

	mu      sync.Mutex
	changed map[[2]string]*ChangedError // by server and tool
}

// SetPins has the definitions of tools pinned. Call it before first use.
func (c *Catalog) SetPins(mode PinMode, store PinStore) {
	if mode != PinsOff && mode != "" && store != nil {
		c.pins = &pins{mode: mode, store: store, changed: map[[2]string]*ChangedError{}}
	}
}

// Changed returns the tools whose definitions have changed.
func (c *Catalog) Changed() []*ChangedError {
	if c.pins == nil {
		return nil
	}
	c.pins.mu.Lock()
	defer c.pins.mu.Unlock()
	var all []*ChangedError
	for _, s := range c.servers {
		for key, e := range c.pins.changed {
			if key[0] == s.Source.Name() {
				all = append(all, e)
			}
		}
	}
	return all
}

// Approve pins the definition that a tool has now.
func (c *Catalog) Approve(ctx context.Context, server, tool string) error {
	if c.pins == nil {
		return fmt.Errorf("definitions are not pinned: tool_pins is off")
	}
	key := [2]string{server, tool}
	c.pins.mu.Lock()
	e := c.pins.changed[key]
	c.pins.mu.Unlock()
	if e == nil {
		return fmt.Errorf("the definition of tool %s of server %s has not changed", tool, server)
	}
	if err := c.pins.store.Pin(ctx, server, tool, e.Is); err != nil {
		return err
	}
	c.Refresh(server)
	return nil
}

// check pins what is new and returns what has changed.
func (p *pins) check(ctx context.Context, server string, items []*Item) (faults []error) {
	pinned, err := p.store.Pinned(ctx, server)
	if err != nil {
		return []error{fmt.Errorf("server %s: its tools cannot be compared with what they were: %w", server, err)}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, item := range items {
		key := [2]string{server, item.Original}
		delete(p.changed, key)
		is, err := canonical(item.received)
		if err != nil {
			faults = append(faults, fmt.Errorf("server %s: tool %s: %w", server, item.Original, err))
			continue
		}
		was, known := pinned[item.Original]
		switch {
		case !known:
			if err := p.store.Pin(ctx, server, item.Original, is); err != nil {
				faults = append(faults, fmt.Errorf("server %s: tool %s cannot be pinned: %w", server, item.Original, err))
			}
			pinned[item.Original] = is // two entries of one name are compared, too
		case !samePin(was, is):
			e := &ChangedError{Server: server, Tool: item.Original, Withheld: p.mode == PinsEnforce, Was: was, Is: is}
			p.changed[key] = e
			faults = append(faults, e)
		}
	}
	return faults
}

// served leaves out what is withheld.
func (p *pins) served(items []*Item) []*Item {
	if p.mode != PinsEnforce {
		return items
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var served []*Item
	for _, item := range items {
		if p.changed[[2]string{item.Server, item.Original}] == nil {
			served = append(served, item)
		}
	}
	return served
}

// canonical returns a definition in the one form that all texts of the same
// JSON value have: members in order, numbers as written, no spaces.
func canonical(definition json.RawMessage) (json.RawMessage, error) {
	decoder := json.NewDecoder(bytes.NewReader(definition))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	return jsonrpc.Marshal(value)
}
