package core

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream/oauth"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// storedLink is the value of a link in the store, so that links that were sent to users stay
// valid when the host is restarted, and are valid at all hosts of a cluster.
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

// openLink returns the sign-in of a user to a server, a new one if none waits, and stores its link. It returns
// LIMIT_REACHED if too many users are signing in.
func (a *App) openLink(ctx context.Context, cfg oauth.Config) (*userSignIn, error) {
	one, err := a.links.open(cfg)
	if err != nil {
		return nil, err
	}
	if _, ended := a.storedLinkOf(ctx, one, one.id); ended {
		if one, err = a.links.open(cfg); err != nil {
			return nil, err
		}
	}
	a.storeLink(ctx, one)
	return one, nil
}

// storeLink stores the link of a sign-in until it expires, once for each expiry. If that fails, the link
// is valid until the host ends.
func (a *App) storeLink(ctx context.Context, one *userSignIn) {
	if a.store == nil {
		return
	}
	expires, changed := a.links.setStored(one, true)
	if !changed {
		return
	}
	value, err := json.Marshal(storedLink{one.cfg.Server, one.cfg.Subject, one.cfg.File()})
	if err == nil {
		a.storeUsed.Store(true)
		_, err = a.store.Keys.Put(ctx, linkKey(one.id), value, store.Any, expires)
	}
	if err != nil {
		a.links.setStored(one, false)
		a.notifyOnce(fmt.Sprintf("links for sign-ins are valid only until the host is restarted: %v", err))
	}
}

// storedLinkOf returns the link with an id from the store; nil if it is not there or cannot be read. one is the
// sign-in of the link that this host knows, or nil. If another host has ended it, storedLinkOf ends it here, too.
func (a *App) storedLinkOf(ctx context.Context, one *userSignIn, id string) (entry *store.Entry, ended bool) {
	if a.store == nil || id == "" || len(id) > 64 || one != nil && !a.links.isStored(one) {
		return nil, false
	}
	found, err := a.store.Keys.Get(ctx, linkKey(id))
	switch {
	case err == nil:
		return &found, false
	case one == nil || !toolerr.Is(err, toolerr.NotFound):
		return nil, false
	}
	if one.id == id { // otherwise only this link of it has expired
		a.links.end(one, nil) // a call that waits is repeated
	}
	return nil, true
}

// findLink returns the sign-in with an id, also one of another process; nil if none waits,
// it has expired, or its server is no longer configured.
func (a *App) findLink(ctx context.Context, id string) *userSignIn {
	one := a.links.get(id)
	entry, ended := a.storedLinkOf(ctx, one, id)
	if ended {
		return nil
	}
	var link storedLink
	if one != nil || entry == nil || json.Unmarshal(entry.Value, &link) != nil {
		return one
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
// goes on after its link is not valid any more. err is nil if the user signed in. Calls that wait at other hosts go
// on, too.
func (a *App) endLink(ctx context.Context, ended *userSignIn, err error) {
	a.storeEnd(ctx, ended.cfg, err)
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
