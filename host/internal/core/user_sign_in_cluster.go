package core

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream/oauth"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// The requests of a browser during one sign-in can arrive at different hosts behind a load balancer, and the
// call can wait at another one. So the steps are in the store, and the end of a sign-in. A step is
// encrypted with a key that only the browser has: its cookie.
const (
	endLife   = time.Minute // of the end of a sign-in in the store
	endsCheck = time.Second // interval in which a waiting call looks for the end at another host
)

// storedStep is a step in the store, before it is encrypted. Login or Attempt is set.
type storedStep struct {
	Link    string `json:"link"`
	Login   []byte `json:"login,omitempty"`
	Attempt []byte `json:"attempt,omitempty"`
}

// stepKey returns the key of a step in the store. It does not tell the state.
func stepKey(state string) string {
	sum := sha256.Sum256([]byte(state))
	return "sign-in-step/" + hex.EncodeToString(sum[:])
}

// stepCipher returns the cipher of a step for a browser with a cookie.
func stepCipher(cookie string) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, []byte(cookie), nil, "toolroom sign-in step", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// registerStep makes step one that waits for the browser's answer with this state, here and at the other hosts
// with this store. If it cannot be stored, it waits here.
func (a *App) registerStep(ctx context.Context, state string, step *browserStep) {
	if a.store != nil {
		var err error
		if step.stored, err = a.putStep(ctx, state, step); err != nil {
			a.notifyOnce(fmt.Sprintf("sign-ins of users can be completed only at the host that began them: %v", err))
		}
	}
	if replaced := a.links.registerStep(state, step); replaced != "" && a.store != nil {
		a.store.Keys.Delete(context.WithoutCancel(ctx), stepKey(replaced), store.Any) //nolint:errcheck // it expires
	}
}

// putStep stores a step until its link expires.
func (a *App) putStep(ctx context.Context, state string, step *browserStep) (store.Version, error) {
	plain := storedStep{Link: step.link}
	var err error
	if step.login != nil {
		plain.Login, err = step.login.Suspend()
	} else {
		plain.Attempt, err = step.attempt.Suspend()
	}
	if err != nil {
		return 0, err
	}
	text, err := json.Marshal(plain)
	if err != nil {
		return 0, err
	}
	aead, err := stepCipher(step.cookie)
	if err != nil {
		return 0, err
	}
	a.storeUsed.Store(true)
	return a.store.Keys.Put(ctx, stepKey(state), aead.Seal(nil, nil, text, []byte(state)), store.Absent, a.links.expiryOf(step.signIn))
}

// takeStep removes and returns the step that waits for the answer in the request r, also one of another host. isUser
// is true for answers of the users' issuer. It returns nil if no such step waits, the request does not come from
// the browser that opened the link, or another host has taken the step.
func (a *App) takeStep(r *http.Request, isUser bool) *browserStep {
	step, states := a.links.takeStep(r, isUser), r.URL.Query()["state"]
	if a.store == nil || len(states) != 1 || len(states[0]) > store.MaxName {
		return step
	}
	ctx, key := r.Context(), stepKey(states[0])
	if step != nil {
		if err := a.store.Keys.Delete(ctx, key, step.stored); step.stored != 0 && toolerr.Is(err, toolerr.Conflict) {
			return nil
		}
		return step
	}
	entry, err := a.store.Keys.Get(ctx, key)
	if err != nil {
		return nil
	}
	for _, cookie := range r.Cookies() {
		link, ok := strings.CutPrefix(cookie.Name, signInCookie)
		if !ok {
			continue
		}
		step, err := a.resumeStep(ctx, entry.Value, states[0], link, cookie.Value)
		if err == nil && (step.login != nil) == isUser {
			if a.store.Keys.Delete(ctx, key, entry.Version) != nil {
				return nil
			}
			return step
		}
	}
	return nil
}

// errNoStep means that a stored step is not for a browser, or that its sign-in has ended.
var errNoStep = errors.New("no such step")

// resumeStep returns the stored step for an answer with a state from a browser with the cookie of a link.
func (a *App) resumeStep(ctx context.Context, sealed []byte, state, link, cookie string) (*browserStep, error) {
	aead, err := stepCipher(cookie)
	if err != nil {
		return nil, err
	}
	text, err := aead.Open(nil, nil, sealed, []byte(state))
	if err != nil {
		return nil, err
	}
	var found storedStep
	if err := json.Unmarshal(text, &found); err != nil {
		return nil, err
	}
	one, issuer := a.findLink(ctx, link), a.issuer.Load()
	if found.Link != link || one == nil || issuer == nil {
		return nil, errNoStep
	}
	step := &browserStep{signIn: one, link: link, cookie: cookie}
	if found.Login != nil {
		step.login, err = issuer.ResumeLogin(found.Login)
	} else {
		step.attempt, err = oauth.Resume(ctx, one.cfg, found.Attempt)
	}
	return step, err
}

// storedEnd is the end of a sign-in in the store.
type storedEnd struct {
	Error string `json:"error,omitempty"` // "": the user signed in
}

// endKey returns the key for the end of the sign-ins of a user to a server.
func endKey(cfg oauth.Config) string {
	sum := sha256.Sum256([]byte(cfg.File()))
	return "sign-in-end/" + hex.EncodeToString(sum[:])
}

// storeEnd tells the other hosts with this store that a sign-in has ended. err is nil if the user signed in.
func (a *App) storeEnd(ctx context.Context, cfg oauth.Config, err error) {
	if a.store == nil {
		return
	}
	var end storedEnd
	if err != nil {
		end.Error = err.Error()
	}
	value, err := json.Marshal(end)
	if err == nil {
		_, err = a.store.Keys.Put(context.WithoutCancel(ctx), endKey(cfg), value, store.Any, time.Now().Add(endLife))
	}
	if err != nil {
		a.notifyOnce(fmt.Sprintf("calls at other hosts do not learn that a sign-in has ended: %v", err))
	}
}

// lastSignInEnd returns the version of the last end of a sign-in of a user to a server; store.Any: it cannot be read.
func (a *App) lastSignInEnd(ctx context.Context, cfg oauth.Config) store.Version {
	if a.store == nil {
		return store.Any
	}
	entry, err := a.store.Keys.Get(ctx, endKey(cfg))
	switch {
	case toolerr.Is(err, toolerr.NotFound):
		return store.Absent
	case err != nil:
		return store.Any
	}
	return entry.Version
}

// awaitLink waits until a sign-in has ended, here or at another host, or until ctx ends: then ended is false. err
// says why it failed. before is the version from lastSignInEnd, read before the sign-in was opened.
func (a *App) awaitLink(ctx context.Context, one *userSignIn, before store.Version) (ended bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	if before != store.Any {
		work.Go(func() { a.watchEnd(ctx, one, before) })
	}
	return a.links.wait(ctx, one)
}

// watchEnd ends a sign-in here when one of the same user to the same server ends at another host, until ctx ends.
func (a *App) watchEnd(ctx context.Context, one *userSignIn, before store.Version) {
	tick := time.NewTicker(endsCheck)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		entry, err := a.store.Keys.Get(ctx, endKey(one.cfg))
		var end storedEnd
		if err != nil || entry.Version == before || json.Unmarshal(entry.Value, &end) != nil {
			continue
		}
		var failed error
		if end.Error != "" {
			failed = errors.New(end.Error)
		}
		a.deleteLinks(ctx, a.links.idsOf(one))
		a.links.end(one, failed)
		return
	}
}
