package catalog

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// awaitLists asks the servers of a group, nil meaning all, that have not been listed, and
// waits for those that were never asked. If the servers are replaced meanwhile, it
// waits for the new ones too.
func (c *Catalog) awaitLists(ctx context.Context, kind call.ListKind, group func(*server) bool) {
	for {
		servers := c.servers.Load()
		for _, busy := range c.startLists(kind, *servers, group) {
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

// startLists begins to ask those servers that were never asked or whose last request
// failed; with group, only those for which group is true. It returns a channel for each
// server that is asked for the first time, closed when its list was stored.
func (c *Catalog) startLists(kind call.ListKind, servers []*server, group func(*server) bool) (waits []chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range servers {
		l := s.lists[kind]
		if l.tried && l.err == nil || group != nil && !group(s) {
			continue
		}
		first := !l.tried
		if l.busy == nil {
			c.requestList(s, kind)
		}
		if first && l.busy != nil {
			waits = append(waits, l.busy)
		}
	}
	return waits
}

// requestList requests a list of a server in the background, and stores it. It does nothing after
// the catalog was closed. The caller holds c.mu.
func (c *Catalog) requestList(s *server, kind call.ListKind) {
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
		slow := time.AfterFunc(slowStartDuration, leave)
		raw, err := s.Source.List(c.life, kind)
		slow.Stop()
		leave()
		pins := c.pinned()                 // the current ones, whenever the list was requested
		if kind != call.Tools || s.Plain { // bundled tools change with the host
			pins = nil
		}
		items, faults := s.items(kind, raw)
		listed := items
		if err == nil && pins != nil && pins.mode == PinsEnforce {
			items, err = c.withholdChanged(l, pins, s.Source.Name(), items)
		}
		if err == nil && pins != nil {
			c.queuePinCheck(l, asked, pins, s.Source.Name(), listed)
		}
		c.storeList(l, kind, busy, items, faults, err)
		c.mu.Lock()
		defer c.mu.Unlock()
		if l.changed {
			c.requestWhenPermitted(s, kind)
		}
	})
}

// items converts a server's definitions to items, without tools that the filter blocks.
// faults says what is wrong with definitions, including those that are served.
func (s *server) items(kind call.ListKind, raw []json.RawMessage) (items []*Item, faults []error) {
	for _, definition := range raw {
		item, fault := newItem(s.SourceConfig, kind, definition)
		if fault != nil {
			faults = append(faults, fault)
		}
		if item != nil && (kind != call.Tools || s.Filter.serves(item)) {
			items = append(items, item)
		}
	}
	return items, faults
}

// storeList stores a server's list. A server that cannot be listed keeps its previous
// list: a call starts it again. While it is offline, which the source reports, that
// list is hidden.
func (c *Catalog) storeList(l *listing, kind call.ListKind, busy chan struct{}, items []*Item, faults []error, err error) {
	c.mu.Lock()
	seen := l.tried
	if seen {
		c.rebuildIfOutdated()
	}
	l.tried, l.listed, l.err = true, l.listed || err == nil, err
	if err == nil || len(items) > 0 {
		l.items, l.faults = items, faults
	}
	if l.busy == busy {
		l.busy = nil
	}
	var change Change
	changed := false
	if seen {
		change, changed = c.rebuild(kind)
	} else {
		c.outdated.Store(true)
	}
	closed := c.closed
	c.mu.Unlock()
	close(busy)
	if changed && !closed && c.onChange != nil {
		c.onChange(change)
	}
}
