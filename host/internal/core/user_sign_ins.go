package core

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/accesstoken"
	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream/oauth"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

const (
	linkLifetime = 10 * time.Minute
	maxLinks     = 1000
	maxSteps     = 16 // of one sign-in that wait at the same time
)

// signInLinks holds the sign-ins of users that wait for a browser.
type signInLinks struct {
	mu      sync.Mutex
	byID    map[string]*userSignIn
	byState map[string]*browserStep
	steps   int64                // registered so far
	marks   []byte               // see markKey
	over    map[string]time.Time // expiry of links that have ended, by id; a copy in the store can be read meanwhile
}

// userSignIn is a running sign-in of a user to a server, which ends when the user has
// signed in, at an error, or when it expires.
type userSignIn struct {
	id   string
	cfg  oauth.Config // with the user's subject
	done chan struct{}
	err  error // why the sign-in failed; nil: the user signed in. Valid after done is closed

	// Guarded by signInLinks.mu.
	expires time.Time
	stored  time.Time // the expiry of the link in the store; zero: it is not there
	ended   bool
}

// browserStep waits for an answer at a redirect address. login or attempt is set.
type browserStep struct {
	signIn  *userSignIn
	link    string // the id in the name of the browser's cookie
	cookie  string // its value
	login   *accesstoken.BrowserLogin
	attempt *oauth.Attempt
	number  int64         // steps that were registered later have higher numbers
	stored  store.Version // of the copy in the store; 0: there is none
}

// open returns the sign-in of a user to a server, a new one if none waits. The link of a later call is valid
// for linkLifetime from this call on, or up to a minute less, so that not every call changes the store. open returns
// LIMIT_REACHED if maxLinks wait.
func (s *signInLinks) open(cfg oauth.Config) (*userSignIn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.endExpired(now)
	for _, one := range s.byID {
		if one.cfg.File() == cfg.File() {
			if one.expires.Before(now.Add(linkLifetime - time.Minute)) {
				one.expires = now.Add(linkLifetime)
			}
			return one, nil
		}
	}
	if len(s.byID) >= maxLinks {
		return nil, toolerr.New(toolerr.LimitReached, "too many users are signing in; try again later")
	}
	if s.byID == nil {
		s.byID, s.byState = map[string]*userSignIn{}, map[string]*browserStep{}
	}
	one := &userSignIn{id: rand.Text(), cfg: cfg, expires: now.Add(linkLifetime), done: make(chan struct{})}
	s.byID[one.id] = one
	return one, nil
}

// endExpired ends the sign-ins that have expired at the time now. The caller holds s.mu.
func (s *signInLinks) endExpired(now time.Time) {
	for _, one := range s.byID {
		if now.After(one.expires) {
			s.endLocked(one, errors.New("the sign-in was not completed in time"))
		}
	}
}

// restore adds a sign-in of an earlier process of the host with its id and expiry, or makes
// the id one of the sign-in of the same user to the same server that waits. It returns the
// sign-in; nil if maxLinks wait, or the sign-in has ended meanwhile.
func (s *signInLinks) restore(id string, cfg oauth.Config, expires time.Time) *userSignIn {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.over[id].After(now) {
		return nil
	}
	s.endExpired(now) // among them can be one of the same user, whose link was issued earlier
	if len(s.byID) >= maxLinks {
		return nil
	}
	if s.byID == nil {
		s.byID, s.byState = map[string]*userSignIn{}, map[string]*browserStep{}
	}
	restored := &userSignIn{id: id, cfg: cfg, expires: expires, stored: expires, done: make(chan struct{})}
	for _, one := range s.byID {
		if one.cfg.File() == cfg.File() {
			restored = one
		}
	}
	s.byID[id] = restored
	return restored
}

// get returns the sign-in with an id; nil if none waits or it has expired.
func (s *signInLinks) get(id string) *userSignIn {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.byID[id]
	if one == nil || time.Now().After(one.expires) {
		return nil
	}
	return one
}

// expiryOf returns when the links of a sign-in expire.
func (s *signInLinks) expiryOf(one *userSignIn) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return one.expires
}

// setStored notes whether the link of a sign-in is in the store with its present expiry, which it returns. changed
// is false if that was noted before.
func (s *signInLinks) setStored(one *userSignIn, stored bool) (expires time.Time, changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !stored {
		one.stored = time.Time{}
		return one.expires, true
	}
	changed = !one.stored.Equal(one.expires)
	one.stored = one.expires
	return one.expires, changed
}

// isStored reports whether the link of a sign-in is in the store, unless it has expired or ended there.
func (s *signInLinks) isStored(one *userSignIn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !one.stored.IsZero()
}

// idsOf returns the ids of the links of a sign-in.
func (s *signInLinks) idsOf(of *userSignIn) (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, one := range s.byID {
		if one == of {
			ids = append(ids, id)
		}
	}
	return ids
}

// end ends a sign-in and removes its links. err is nil if the user signed in.
func (s *signInLinks) end(ended *userSignIn, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLocked(ended, err)
}

// endLocked is end for callers that hold s.mu.
func (s *signInLinks) endLocked(ended *userSignIn, err error) {
	if ended.ended {
		return
	}
	ended.ended, ended.err = true, err
	maps.DeleteFunc(s.over, func(_ string, expires time.Time) bool { return time.Now().After(expires) })
	for id, one := range s.byID {
		if one == ended {
			delete(s.byID, id)
			if s.over == nil {
				s.over = map[string]time.Time{}
			}
			s.over[id] = one.expires
		}
	}
	maps.DeleteFunc(s.byState, func(_ string, step *browserStep) bool { return step.signIn == ended })
	close(ended.done)
}

// registerStep makes step one that waits for the browser's answer with this state. Steps of several browsers
// wait at the same time, because a mail scanner or a preview can open the link, too. If maxSteps of the sign-in
// wait, the oldest one ends, and rather one whose user is not known yet. registerStep returns its state; "": none ended.
func (s *signInLinks) registerStep(state string, step *browserStep) (replaced string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if step.signIn.ended {
		return state
	}
	count, oldest := 0, ""
	for other, old := range s.byState {
		if old.signIn != step.signIn {
			continue
		}
		count++
		if first := s.byState[oldest]; first == nil || old.endsBefore(first) {
			oldest = other
		}
	}
	if count >= maxSteps {
		delete(s.byState, oldest)
		replaced = oldest
	}
	s.steps++
	step.number = s.steps
	s.byState[state] = step
	return replaced
}

// endsBefore reports whether a step ends before another one if too many wait.
func (b *browserStep) endsBefore(other *browserStep) bool {
	if known := b.attempt != nil; known != (other.attempt != nil) {
		return !known
	}
	return b.number < other.number
}

// cookieFor returns the value of the cookie for the browser that opens the link of a sign-in: the one that it has,
// so that it can open the link in two tabs, or else a new one.
func (s *signInLinks) cookieFor(r *http.Request, one *userSignIn) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cookie, err := r.Cookie(signInCookie + one.id); err == nil {
		for _, step := range s.byState {
			if step.signIn == one && step.link == one.id && isSecret(cookie.Value, step.cookie) {
				return cookie.Value
			}
		}
	}
	return rand.Text()
}

// wait waits until a sign-in has ended or expires, and returns why it failed, or until ctx ends. Then ended is
// false.
func (s *signInLinks) wait(ctx context.Context, one *userSignIn) (ended bool, err error) {
	for {
		s.mu.Lock()
		s.endExpired(time.Now())
		left := time.Until(one.expires)
		s.mu.Unlock()
		timer := time.NewTimer(max(left, time.Millisecond)) // a later call can postpone the expiry
		select {
		case <-one.done:
			timer.Stop()
			return true, one.err
		case <-ctx.Done():
			timer.Stop()
			return false, nil
		case <-timer.C:
		}
	}
}

// markKey returns the key of the marks of browsers.
func (s *signInLinks) markKey() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.marks == nil {
		s.marks = []byte(rand.Text())
	}
	return s.marks
}

// takeStep removes and returns the step that waits for the answer in the request r. isUser
// is true for answers of the users' issuer. It returns nil if no such step waits, or the
// request does not come from the browser that opened the link.
func (s *signInLinks) takeStep(r *http.Request, isUser bool) *browserStep {
	s.mu.Lock()
	defer s.mu.Unlock()
	states := r.URL.Query()["state"]
	if len(states) != 1 {
		return nil
	}
	step := s.byState[states[0]]
	if step == nil || (step.login != nil) != isUser || time.Now().After(step.signIn.expires) {
		return nil
	}
	cookie, err := r.Cookie(signInCookie + step.link)
	if err != nil || !isSecret(cookie.Value, step.cookie) {
		return nil
	}
	delete(s.byState, states[0])
	return step
}

// isSecret reports whether a given text is a secret. The time that it takes does not tell in which character they differ.
func isSecret(given, secret string) bool {
	return subtle.ConstantTimeCompare([]byte(given), []byte(secret)) == 1
}
