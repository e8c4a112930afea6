package core

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/accesstoken"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream/oauth"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

const (
	linkLife = 10 * time.Minute
	maxLinks = 1000
	maxSteps = 16 // of one sign-in that wait at the same time
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
	stored  time.Time // the expiry of the link in the store; see storeLink
	ended   bool
}

// browserStep waits for an answer at a redirect address. login or attempt is set.
type browserStep struct {
	signIn  *userSignIn
	cookie  [sha256.Size]byte
	login   *accesstoken.BrowserLogin
	attempt *oauth.Attempt
	number  int64 // steps that were registered later have higher numbers
}

// open returns the sign-in of a user to a server, a new one if none waits. The link is valid for linkLife
// from now on, because each caller is told so, or for up to a minute less, so that not each call changes the
// store. open returns LIMIT_REACHED if maxLinks wait.
func (s *signInLinks) open(cfg oauth.Config) (*userSignIn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.endExpired(now)
	for _, one := range s.byID {
		if one.cfg.File() == cfg.File() {
			if one.expires.Before(now.Add(linkLife - time.Minute)) {
				one.expires = now.Add(linkLife)
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
	one := &userSignIn{id: rand.Text(), cfg: cfg, expires: now.Add(linkLife), done: make(chan struct{})}
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
	if _, over := s.over[id]; over {
		return nil
	}
	s.endExpired(time.Now()) // among them can be one of the same user, whose link was issued earlier
	if len(s.byID) >= maxLinks {
		return nil
	}
	if s.byID == nil {
		s.byID, s.byState = map[string]*userSignIn{}, map[string]*browserStep{}
	}
	restored := &userSignIn{id: id, cfg: cfg, expires: expires, done: make(chan struct{})}
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
// wait, the oldest one ends, and rather one whose user is not known yet.
func (s *signInLinks) registerStep(state string, step *browserStep) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if step.signIn.ended {
		return
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
	}
	s.steps++
	step.number = s.steps
	s.byState[state] = step
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
		given := sha256.Sum256([]byte(cookie.Value))
		for _, step := range s.byState {
			if step.signIn == one && subtle.ConstantTimeCompare(given[:], step.cookie[:]) == 1 {
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
	cookie, err := r.Cookie(signInCookie + step.signIn.id)
	if err != nil {
		return nil
	}
	given := sha256.Sum256([]byte(cookie.Value))
	if subtle.ConstantTimeCompare(given[:], step.cookie[:]) != 1 {
		return nil
	}
	delete(s.byState, states[0])
	return step
}
