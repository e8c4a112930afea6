package oauth

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The limits of a renewal of tokens that are still valid.
const (
	earlyWait  = 2 * time.Second  // the longest wait of calls for it, from its start
	earlyPause = 10 * time.Second // without another one after a failure
)

// failurePause is the time without another renewal of tokens that have expired, after the provider
// has not answered. Calls wait for its end.
const failurePause = 3 * time.Second

// A renewal is a running request for new tokens, or a search for those of another process. Calls
// wait for it together, and it goes on if they end: the answer may hold the only valid
// refresh token.
type renewal struct {
	old   string    // access token that is replaced
	begun time.Time // its start
	done  chan struct{}

	sent      bool // its refresh token was sent, or is about to be
	abandoned bool // it must not send a refresh token any more

	result *tokens // result and err are valid after done is closed
	err    error
}

// wait returns the result of the renewal. It returns an error if ctx ends first.
func (r *renewal) wait(ctx context.Context) (*tokens, error) {
	select {
	case <-r.done:
		return r.result, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// endsWithin reports whether the renewal ends within a time, or before ctx ends.
func (r *renewal) endsWithin(ctx context.Context, d time.Duration) bool {
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-r.done:
		return true
	default:
	}
	select {
	case <-r.done:
		return true
	case <-late.C:
	case <-ctx.Done():
	}
	return false
}

// renewDue renews tokens that expire soon, or have expired. While they are valid it waits at
// most earlyWait, returns them if the renewal has not ended or has failed, and pauses after a
// failure. It returns nil if the user has signed out, and an error if the tokens have expired
// and are not renewed, or that wraps ErrSignIn.
func (s *Source) renewDue(ctx context.Context, t *tokens) (*tokens, error) {
	if t.isValid(time.Now()) {
		running := s.renewEarly(ctx, t)
		if running == nil {
			return t, nil
		}
		ended := running.endsWithin(ctx, time.Until(running.begun.Add(earlyWait)))
		switch {
		case ended && (running.err == nil || errors.Is(running.err, ErrSignIn)):
			return running.result, running.err
		case t.isValid(time.Now()):
			return t, nil
		}
	}
	return s.refreshOrReread(ctx, t.Access, false)
}

// isValid reports whether the access token has not expired.
func (t *tokens) isValid(now time.Time) bool { return t.Expires.IsZero() || now.Before(t.Expires) }

// renewEarly returns the running renewal of t, or starts one; nil: another one runs, or the last
// one failed a short time before.
func (s *Source) renewEarly(ctx context.Context, t *tokens) *renewal {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.running == nil && time.Since(s.failedAt) >= earlyPause:
		return s.startRenewal(ctx, t.Access, false)
	case s.running != nil && s.running.old == t.Access:
		return s.running
	}
	return nil
}

// refreshOrReread returns tokens other than the refused or expiring access token old: those that
// another process has stored meanwhile, or refreshed ones; nil: there are none. It waits for
// a renewal that runs already, or for the end of the pause after a failed one. It returns the error of
// the renewal, or one if ctx ends first.
func (s *Source) refreshOrReread(ctx context.Context, old string, refused bool) (*tokens, error) {
	for {
		s.mu.Lock()
		if t := s.cached.Load(); t != nil && t.Access != old {
			s.mu.Unlock()
			return t, nil
		}
		running := s.running
		if pause := time.Until(s.failedAt.Add(failurePause)); running == nil && s.failed != nil && pause > 0 {
			s.mu.Unlock()
			if err := sleep(ctx, pause); err != nil {
				return nil, err
			}
			continue
		}
		if running == nil {
			running = s.startRenewal(ctx, old, refused)
		}
		s.mu.Unlock()
		t, err := running.wait(ctx)
		if running.old == old || ctx.Err() != nil {
			return t, err
		}
	}
}

// sleep waits for d. It returns an error if ctx ends first.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// startRenewal starts a renewal, and returns it. s.mu is held, and none runs.
func (s *Source) startRenewal(ctx context.Context, old string, refused bool) *renewal {
	running := &renewal{old: old, begun: time.Now(), done: make(chan struct{})}
	s.running = running
	go func() {
		running.result, running.err = s.renew(context.WithoutCancel(ctx), old, refused)
		s.cfg.Refreshes.remove(running)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.running, s.failed = nil, nil
		if running.err != nil {
			s.failedAt = time.Now()
		}
		if isTemporary(running.err) {
			s.failed = running.err
		}
		close(running.done)
	}()
	return running
}

// renew returns tokens other than the access token old, see refreshOrReread, and caches them. If the
// provider refuses the refresh token, the stored tokens are removed, and the error wraps ErrSignIn. If
// the server refuses tokens that were just issued, they stay, and the error wraps ErrSignIn, too. Of
// all processes one refreshes, under the lock of the record, so that a refresh token that changes
// with each use is used once.
func (s *Source) renew(ctx context.Context, old string, refused bool) (*tokens, error) {
	// Without tokens in the store there is nothing to lock.
	switch r, err := s.cfg.loadRecord(ctx); {
	case err != nil:
		return nil, err
	case r.Tokens == nil && !s.cfg.signsInAlone():
		s.setTokens(nil)
		return nil, nil
	}
	var result, unknown *tokens // unknown: of a client that the server does not know
	refreshed, futile := false, false
	err := s.cfg.updateRecord(ctx, func(r *record) (changed bool, err error) {
		stored := accessOf(r.Tokens)
		s.mu.Lock()
		s.restoreUnsaved(r)
		s.mu.Unlock()
		t := r.Tokens
		switch {
		case t == nil && !s.cfg.signsInAlone():
			return false, nil
		case t != nil && t.Access != old && (refused || !t.isDue(time.Now())):
			result = t
			return false, nil
		case refused && s.refreshIsFutile(old):
			futile = true
			return s.cfg.noteRefused(r)
		case s.cfg.signsInAlone():
			result, err = s.obtainAlone(ctx, r)
			return err == nil, err
		case t.Refresh == "":
			if refused {
				r.Tokens = nil
			}
			return refused, s.cfg.signInRequired(fmt.Sprintf("the sign-in to server %s has ended", s.cfg.Server))
		}
		// A refresh token may be valid once, so it is not used while its successor cannot be stored.
		if err := s.cfg.checkRoom(); err != nil {
			return false, fmt.Errorf("the access token of server %s cannot be refreshed: %w", s.cfg.Server, err)
		}
		if err := s.beginSending(); err != nil {
			return false, err
		}
		fresh, err := s.cfg.refresh(ctx, s.cfg.newHTTP(), *t)
		if isRefused(err) || isRefusedWithoutCode(err) && t.hasEnded(refused) {
			r.Tokens = nil
			if isUnknownClient(err) {
				unknown = t
			}
			return true, s.cfg.signInRequired(fmt.Sprintf("the sign-in to server %s has ended (%v)", s.cfg.Server, err))
		}
		if err != nil {
			return false, fmt.Errorf("the access token of server %s cannot be refreshed: %w", s.cfg.Server, err)
		}
		r.Tokens, r.Refused, result, refreshed = &fresh, time.Time{}, &fresh, true
		s.unproven.Store(&fresh.Access)
		s.mu.Lock()
		s.unsaved, s.replaced = &fresh, stored
		s.mu.Unlock()
		return true, nil
	})
	s.mu.Lock()
	if refreshed && err == nil {
		s.unsaved = nil
	} else if refreshed {
		err = nil // the tokens are valid; the next refresh stores its own
	}
	if err == nil || errors.Is(err, ErrSignIn) && !futile {
		s.cacheTokens(result)
	}
	s.mu.Unlock()
	if unknown != nil { // after the lock of the record is free
		err = withFault(err, s.cfg.forgetClient(ctx, unknown.Issuer, unknown.Client))
	}
	return result, err
}

// obtainAlone requests tokens for a program that signs in without a user, and puts them into
// r, which is locked. On an error it returns nil.
func (s *Source) obtainAlone(ctx context.Context, r *record) (*tokens, error) {
	fresh, err := s.cfg.obtainTokens(ctx)
	if err != nil {
		return nil, fmt.Errorf("no access token for server %s: %w", s.cfg.Server, err)
	}
	if s.cfg.Kind == InKeyring {
		if _, err := s.cfg.chooseStorage(ctx, r); err != nil {
			return nil, err
		}
	}
	r.Tokens = &fresh
	s.unproven.Store(&fresh.Access)
	return &fresh, nil
}

// setTokens caches tokens; nil: not signed in.
func (s *Source) setTokens(t *tokens) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cacheTokens(t)
}

// restoreUnsaved gives r the tokens that could not be stored, unless it has others than at
// that time. s.mu is held.
func (s *Source) restoreUnsaved(r *record) {
	switch {
	case s.unsaved == nil:
	case accessOf(r.Tokens) == s.replaced:
		r.Tokens = s.unsaved
	default: // another process signed in or out
		s.unsaved = nil
	}
}

// accessOf returns the access token of t, "" for nil.
func accessOf(t *tokens) string {
	if t == nil {
		return ""
	}
	return t.Access
}
