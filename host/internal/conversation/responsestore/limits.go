package responsestore

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// enforceLimits deletes the least recently used responses if there are too many, or too
// many bytes, with a new one of more bytes. Listing all responses takes long, so most calls
// only count. It returns the first error.
func (b *Store) enforceLimits(ctx context.Context, more int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	most, total := max(cmp.Or(b.MaxResponses, 10_000), 1), cmp.Or(b.MaxTotal, 256<<20)
	b.added += more
	b.since++
	if b.since > 1 && b.since < min(recheckAfterResponses, most) && b.added < min(recheckAfterBytes, total/4) {
		return nil
	}
	all, err := b.listByUse(ctx)
	if err != nil {
		return err
	}
	left, bytes := len(all)+1, more
	for _, r := range all {
		bytes += r.Bytes
	}
	for _, r := range all {
		if left <= most && bytes <= total {
			break
		}
		if err := b.Delete(ctx, r.ID); err != nil && !toolerr.Is(err, toolerr.NotFound) {
			return err
		}
		left, bytes = left-1, bytes-r.Bytes
	}
	b.since, b.added = 1, 0
	return nil
}

// listByUse returns all responses, the least recently used first.
func (b *Store) listByUse(ctx context.Context) ([]Response, error) {
	var all []Response
	for after := ""; ; {
		page, err := b.Keys.List(ctx, key(""), after, store.MaxPageEntries)
		if err != nil || len(page) == 0 {
			slices.SortFunc(all, func(a, b Response) int { return cmp.Or(a.Used.Compare(b.Used), strings.Compare(a.ID, b.ID)) })
			return all, err
		}
		for _, entry := range page {
			after = entry.Key
			var r Response
			if json.Unmarshal(entry.Value, &r) == nil {
				all = append(all, r)
			}
		}
	}
}
