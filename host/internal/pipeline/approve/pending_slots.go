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
	maxPendingPerCaller     = 25
	maxPendingPerEntryPoint = 75
	maxPendingBytes         = 16 << 20 // bytes of the arguments of all pending requests
	maxStoredRecords        = 400
)

// The keys in addition to those of records.
const (
	registerKey = "approvals/register"
	secretKey   = "approvals/secret"
)

// slotRegister lists the slots of all pending requests, so that they can be counted
// without reading the records. A slot is reserved before the request is written, and
// released after the decision. A host that is killed in between leaves an unused
// slot, until it expires or is detected.
type slotRegister struct {
	Open []pendingSlot `json:"open"`
	Kept []string      `json:"kept"` // keys of records, the oldest first
}

// pendingSlot is the slot of one pending request.
type pendingSlot struct {
	ID         string    `json:"id"`
	Who        string    `json:"who"`
	EntryPoint string    `json:"entry_point"`
	Size       int       `json:"size"`
	Until      time.Time `json:"until"`
}

// secret returns a random key that all hosts with this store share, and creates it if
// necessary. It returns the error of the store.
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

// reserveSlot reserves a slot for a request, and removes finished records if there are more
// than maxStoredRecords. It returns LIMIT_REACHED if the caller, the entry point or the store has
// too many pending requests, or their arguments are too large together. account is the name
// under which the caller's requests are counted.
func (b *Store) reserveSlot(ctx context.Context, r *Record, account string) error {
	key, err := keyOf(r.ID)
	if err != nil {
		return err
	}
	mine := pendingSlot{r.ID, account, sharedEntryPoint(r.Caller.EntryPoint), len(r.Args), r.Expires}
	var gone map[string]bool
	var old []string
	err = b.changeRegister(ctx, func(reg *slotRegister) (bool, error) {
		reg.removeSlots(func(p pendingSlot) bool { return !b.now().Before(p.Until) || gone[p.ID] })
		full := reg.checkLimits(mine)
		if full != nil && gone == nil {
			gone = b.decidedIDs(ctx, reg.Open)
			reg.removeSlots(func(p pendingSlot) bool { return gone[p.ID] })
			full = reg.checkLimits(mine)
		}
		if full != nil {
			return false, full
		}
		reg.Open = append(reg.Open, mine)
		reg.Kept = append(slices.DeleteFunc(reg.Kept, func(k string) bool { return k == key }), key)
		n := max(0, len(reg.Kept)-maxStoredRecords)
		old = slices.Clone(reg.Kept[:n])
		reg.Kept = reg.Kept[n:]
		return true, nil
	})
	if err != nil {
		return err
	}
	for _, key := range old {
		b.deleteIfFinished(ctx, key)
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

// releaseSlot releases the slot of the request id. If that fails, the slot expires.
func (b *Store) releaseSlot(ctx context.Context, id string) {
	if id == "" {
		return
	}
	b.changeRegister(ctx, func(reg *slotRegister) (bool, error) { //nolint:errcheck // see above
		n := len(reg.Open)
		reg.removeSlots(func(p pendingSlot) bool { return p.ID == id })
		return len(reg.Open) < n, nil
	})
}

// removeSlots removes the slots for which match returns true.
func (reg *slotRegister) removeSlots(match func(pendingSlot) bool) {
	reg.Open = slices.DeleteFunc(reg.Open, match)
}

// checkLimits returns LIMIT_REACHED if adding a slot would exceed a limit.
func (reg *slotRegister) checkLimits(added pendingSlot) error {
	who, sameEntryPoint, size := 0, 0, added.Size
	for _, p := range reg.Open {
		size += p.Size
		if p.Who == added.Who {
			who++
		}
		if p.EntryPoint == added.EntryPoint {
			sameEntryPoint++
		}
	}
	switch {
	case who >= maxPendingPerCaller:
		return toolerr.New(toolerr.LimitReached, "%d of your calls need approval; continue without this call until some are decided", who)
	case len(reg.Open) >= MaxPending || sameEntryPoint >= maxPendingPerEntryPoint:
		return toolerr.New(toolerr.LimitReached, "%d calls need approval; continue without this call until some are decided", len(reg.Open))
	case size > maxPendingBytes:
		return toolerr.New(toolerr.LimitReached, "the arguments of all pending calls would have %d bytes, more than %d; make smaller calls, or continue until some are decided", size, maxPendingBytes)
	}
	return nil
}

// decidedIDs returns the ids of those open slots whose requests are not pending any
// more.
func (b *Store) decidedIDs(ctx context.Context, open []pendingSlot) map[string]bool {
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

// deleteIfFinished deletes the record at a key if it is finished; errors are ignored, because it
// expires. Other records stay until they expire.
func (b *Store) deleteIfFinished(ctx context.Context, key string) {
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
// meanwhile. f reports whether the register must be written; its error ends the change.
// After maxTries attempts it returns CONFLICT.
func (b *Store) changeRegister(ctx context.Context, f func(*slotRegister) (bool, error)) error {
	var err error
	for range maxTries {
		entry, fault := b.Keys.Get(ctx, registerKey)
		if fault != nil && !toolerr.Is(fault, toolerr.NotFound) {
			return fault
		}
		var reg slotRegister
		if fault == nil && json.Unmarshal(entry.Value, &reg) != nil {
			reg = slotRegister{}
		}
		write, fault := f(&reg)
		if fault != nil || !write {
			return fault
		}
		value, fault := jsonrpc.Marshal(reg)
		if fault != nil {
			return fault
		}
		if _, err = b.Keys.Put(ctx, registerKey, value, entry.Version, b.now().Add(finishedRecordLifetime+b.expires())); err == nil || !toolerr.Is(err, toolerr.Conflict) {
			return err
		}
	}
	return err
}
