package core

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/toolroom-mcp/toolroom/host/internal/store"
)

// storedLink is the value of a link in the store, so that links that were sent to users stay
// valid when the host is restarted. The steps in the browser are in memory only: the user
// opens the link again.
type storedLink struct {
	Server  string `json:"server"`
	Subject string `json:"subject"`
	File    string `json:"file"` // of the record that the sign-in changes
}

// linkKey returns the key of a link in the store. It does not tell the id.
func linkKey(id string) string {
	sum := sha256.Sum256([]byte(id))
	return "sign-in-link/" + hex.EncodeToString(sum[:])
}

// storeLink stores the link of a sign-in until it expires, once for each expiry. If that fails, the link
// is valid until the host ends.
func (a *App) storeLink(ctx context.Context, one *userSignIn) {
	if a.store == nil {
		return
	}
	a.links.mu.Lock()
	expires, changed := one.expires, !one.stored.Equal(one.expires)
	one.stored = expires
	a.links.mu.Unlock()
	if !changed {
		return
	}
	value, err := json.Marshal(storedLink{one.cfg.Server, one.cfg.Subject, one.cfg.File()})
	if err == nil {
		a.storeUsed.Store(true)
		_, err = a.store.Keys.Put(ctx, linkKey(one.id), value, store.Any, expires)
	}
	if err != nil {
		a.notifyOnce(fmt.Sprintf("links for sign-ins are valid only until the host is restarted: %v", err))
	}
}

// findLink returns the sign-in with an id, also one of an earlier process; nil if none waits,
// it has expired, or its server is no longer configured.
func (a *App) findLink(ctx context.Context, id string) *userSignIn {
	if one := a.links.get(id); one != nil || a.store == nil || id == "" || len(id) > 64 {
		return one
	}
	entry, err := a.store.Keys.Get(ctx, linkKey(id))
	var link storedLink
	if err != nil || json.Unmarshal(entry.Value, &link) != nil {
		return nil
	}
	p, ok := a.snapshot.Load().byName[link.Server]
	if !ok || !a.usesCallerCredentials(p.cfg) {
		return nil
	}
	cfg, ok := p.cfg.SignInOf(link.Subject, a.tokenStorage(), a.version)
	if !ok || cfg.File() != link.File {
		return nil
	}
	return a.links.restore(id, cfg, entry.Expires)
}

// endLink removes the links of a sign-in from the store, and then ends it, so that a call that waits for it
// goes on after its link is not valid any more. err is nil if the user signed in.
func (a *App) endLink(ctx context.Context, ended *userSignIn, err error) {
	a.deleteLinks(ctx, a.links.idsOf(ended))
	a.links.end(ended, err)
}

// deleteLinks removes links from the store.
func (a *App) deleteLinks(ctx context.Context, ids []string) {
	if a.store == nil {
		return
	}
	for _, id := range ids {
		if err := a.store.Keys.Delete(context.WithoutCancel(ctx), linkKey(id), store.Any); err != nil {
			a.notifyOnce(fmt.Sprintf("the link of a sign-in that has ended cannot be deleted: %v", err))
		}
	}
}
