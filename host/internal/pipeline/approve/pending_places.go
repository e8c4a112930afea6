package approve

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// The limits of pending requests, so that one caller, and all callers of one entry
// point, leave room for others; and of stored records.
const (
	perCaller     = 25
	perEntryPoint = 75
	maxOpen       = 16 << 20 // bytes of the arguments of all pending requests
	maxKept       = 400
)

// The keys in addition to those of records.
const (
	registerKey = "approvals/register"
	secretKey   = "approvals/secret"
)

// placeRegister lists the places of all pending requests, so that they can be counted
// without reading the records. A place is reserved before the request is written, and
// released after the decision. A host that is killed in between leaves an unused
// place, until it expires or is detected.
type placeRegister struct {
	Open []place  `json:"open"`
	Kept []string `json:"kept"` // keys of records, the oldest first
}

// place belongs to one pending request.
type place struct {
	ID         string    `json:"id"`
	Who        string    `json:"who"`
	EntryPoint string    `json:"entry_point"`
	Size       int       `json:"size"`
	Until      time.Time `json:"until"`
}

// secret returns a random key that all hosts with this store share.
func (b *Store) secret(ctx context.Context) ([]byte, error) {
	for {
		entry, err := b.Keys.Get(ctx, secretKey)
		if err == nil {
			return entry.Value, nil
		}
		if !toolerr.Is(err, toolerr.NotFound) {
			return nil, err
		}
		if _, err = b.Keys.Put(ctx, secretKey, []byte(randomText(30)), 0, time.Time{}); err != nil && !toolerr.Is(err, toolerr.Conflict) {
			return nil, err
		}
	}
}

// reserve reserves a place for a request, or returns an error.
func (b *Store) reserve(ctx context.Context, r *Record, who string) error {
	key, err := keyOf(r.ID)
	if err != nil {
		return err
	}
	mine := place{r.ID, who, sharedEntryPoint(r.Caller.EntryPoint), len(r.Args), r.Expires}
	var gone map[string]bool
	var old []string
	err = b.changeRegister(ctx, func(reg *placeRegister) (bool, error) {
		reg.drop(func(p place) bool { return !b.now().Before(p.Until) || gone[p.ID] })
		full := reg.isFull(mine)
		if full != nil && gone == nil {
			gone = b.decided(ctx, reg.Open)
			reg.drop(func(p place) bool { return gone[p.ID] })
			full = reg.isFull(mine)
		}
		if full != nil {
			return false, full
		}
		reg.Open = append(reg.Open, mine)
		reg.Kept = append(slices.DeleteFunc(reg.Kept, func(k string) bool { return k == key }), key)
		n := max(0, len(reg.Kept)-maxKept)
		old = slices.Clone(reg.Kept[:n])
		reg.Kept = reg.Kept[n:]
		return true, nil
	})
	if err != nil {
		return err
	}
	for _, key := range old {
		b.forget(ctx, key)
	}
	return nil
}

// sharedEntryPoint returns the entry point whose limits apply: the API uses those of
// HTTP.
func sharedEntryPoint(entryPoint string) string {
	if entryPoint == "api" {
		return "http"
	}
	return entryPoint
}

// release releases a place. If that fails, the place expires.
func (b *Store) release(ctx context.Context, id string) {
	if id == "" {
		return
	}
	b.changeRegister(ctx, func(reg *placeRegister) (bool, error) { //nolint:errcheck // see above
		n := len(reg.Open)
		reg.drop(func(p place) bool { return p.ID == id })
		return len(reg.Open) < n, nil
	})
}

func (reg *placeRegister) drop(which func(place) bool) { reg.Open = slices.DeleteFunc(reg.Open, which) }

// isFull returns an error if there is no place for another request.
func (reg *placeRegister) isFull(mine place) error {
	who, sameEntryPoint, size := 0, 0, mine.Size
	for _, p := range reg.Open {
		size += p.Size
		if p.Who == mine.Who {
			who++
		}
		if p.EntryPoint == mine.EntryPoint {
			sameEntryPoint++
		}
	}
	switch {
	case who >= perCaller:
		return toolerr.New(toolerr.LimitReached, "%d of your calls need approval; continue without this call until some are decided", who)
	case len(reg.Open) >= MaxPending || sameEntryPoint >= perEntryPoint:
		return toolerr.New(toolerr.LimitReached, "%d calls need approval; continue without this call until some are decided", len(reg.Open))
	case size > maxOpen:
		return toolerr.New(toolerr.LimitReached, "the arguments of all pending calls would have %d bytes, more than %d; make smaller calls, or continue until some are decided", size, maxOpen)
	}
	return nil
}

// decided returns the places whose requests are not pending any more.
func (b *Store) decided(ctx context.Context, open []place) map[string]bool {
	gone := map[string]bool{}
	for _, p := range open {
		key, err := keyOf(p.ID)
		if err != nil {
			continue
		}
		if r, _, err := b.read(ctx, key); err == nil && (r == nil || r.ID != p.ID || r.StateAt(b.now()) != Pending) {
			gone[p.ID] = true
		}
	}
	return gone
}

// forget removes the record of a finished request; other records expire.
func (b *Store) forget(ctx context.Context, key string) {
	r, version, err := b.read(ctx, key)
	if err != nil || r == nil {
		return
	}
	now := b.now()
	if state := r.StateAt(now); state == Done || state == Lapsed || state == Denied && !now.Before(r.Expires) {
		b.Keys.Delete(ctx, key, version) //nolint:errcheck // then it expires
	}
}

// changeRegister applies f to the register, again if another process changed it
// meanwhile. f reports whether the register must be written.
func (b *Store) changeRegister(ctx context.Context, f func(*placeRegister) (bool, error)) error {
	var err error
	for range maxTries {
		entry, fault := b.Keys.Get(ctx, registerKey)
		if fault != nil && !toolerr.Is(fault, toolerr.NotFound) {
			return fault
		}
		var reg placeRegister
		if fault == nil && json.Unmarshal(entry.Value, &reg) != nil {
			reg = placeRegister{}
		}
		write, fault := f(&reg)
		if fault != nil || !write {
			return fault
		}
		value, fault := jsonrpc.Marshal(reg)
		if fault != nil {
			return fault
		}
		if _, err = b.Keys.Put(ctx, registerKey, value, entry.Version, b.now().Add(finishedLifetime+b.expires())); err == nil || !toolerr.Is(err, toolerr.Conflict) {
			return err
		}
	}
	return err
}
