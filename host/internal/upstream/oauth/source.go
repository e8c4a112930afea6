package oauth

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Source supplies the access token of one server. It is safe for concurrent
// use, also by several processes. Tokens are read from the store at
// the first request and after a refusal.
type Source struct {
	cfg Config

	cached  atomic.Pointer[tokens] // nil: not signed in
	hasRead atomic.Bool            // whether the store has been read

	nonce   atomic.Value // string: the last one of the server, for proofs
	checked atomic.Int64 // when the file was last looked at, in nanoseconds

	unproven atomic.Pointer[string] // access token of the last refresh; nil: the server has accepted it

	mu   sync.Mutex  // one refresh or read at a time
	file os.FileInfo // the file that was read last
	used []string    // tokens that were sent, to hide them in messages

	// unsaved are refreshed tokens that could not be stored, nil: none; replaced is the access
	// token that the store has in their place.
	unsaved  *tokens
	replaced string

	refusedToken string    // that the server refused although it was just issued
	refusedAt    time.Time // when that was
}

// NewSource returns the source of a server's tokens. It does no work.
func NewSource(cfg Config) *Source { return &Source{cfg: cfg} }

// Token returns the access token to send; "" if nobody has signed in. It first refreshes
// a token that is about to expire. It returns an error if the store cannot be read, if
// the refresh fails and the token has expired, or that wraps ErrSignIn if a new sign-in
// is necessary.
func (s *Source) Token(ctx context.Context) (string, error) {
	if !s.hasRead.Load() {
		if err := s.reload(ctx); err != nil {
			return "", err
		}
	}
	if s.cached.Load() == nil { // a refusal has the store read again
		return "", nil
	}
	if now := time.Now().UnixNano(); now-s.checked.Load() > int64(checkInterval) {
		s.checked.Store(now)
		if err := s.checkStore(ctx); err != nil {
			return "", err
		}
	}
	t := s.cached.Load()
	if t == nil {
		return "", nil
	}
	if now := time.Now(); (t.Refresh != "" || s.cfg.signsInAlone()) && t.isDue(now) {
		fresh, err := s.refreshOrReread(ctx, t.Access, false)
		switch {
		case err == nil:
			t = fresh
		case now.After(t.Expires) || errors.Is(err, ErrSignIn):
			return "", err
		}
	}
	if t == nil {
		return "", nil
	}
	return t.Access, nil
}

// Refused handles an answer of status 401 or 403 to a request that was sent with token
// ("": without). again reports whether to repeat the request. err tells the user what to
// do; nil without again: a sign-in does not resolve the answer.
func (s *Source) Refused(ctx context.Context, token string, status int, headers []string) (again bool, err error) {
	challenge := ParseChallenge(headers)
	if status == http.StatusForbidden {
		if challenge.Error != "insufficient_scope" {
			return false, nil
		}
		return s.requestScopes(ctx, token, challenge.Scopes)
	}
	if t := s.cached.Load(); challenge.Error == "use_dpop_nonce" && t != nil && t.Access == token && t.Scheme == dpopScheme { // the token is valid
		return false, nil
	}
	t, err := s.refreshOrReread(ctx, token, true)
	switch {
	case err != nil:
		return false, err
	case t != nil:
		return true, nil
	case token == "" && !challenge.Bearer:
		return false, nil // it may want other credentials
	}
	if challenge.Bearer {
		if err := s.storeChallenge(ctx, challenge); err != nil {
			return false, err
		}
	}
	return false, s.cfg.signInRequired(fmt.Sprintf("server %s needs a sign-in", s.cfg.Server))
}

// storeChallenge stores a challenge in the record for the next sign-in, if it differs from
// the stored one: not every server sends it in answer to the first request.
func (s *Source) storeChallenge(ctx context.Context, challenge Challenge) error {
	same := func(r *record) bool { return r.Asked != nil && reflect.DeepEqual(*r.Asked, challenge) }
	if r, err := s.cfg.loadRecord(ctx); err != nil || same(&r) {
		return err
	}
	return s.cfg.updateRecord(ctx, func(r *record) (bool, error) {
		changed := !same(r)
		r.Asked = &challenge
		return changed, nil
	})
}

// requestScopes stores the scopes that a call needs, for the next sign-in. again reports whether a
// sign-in since then has added them. Otherwise the error wraps ErrSignIn.
func (s *Source) requestScopes(ctx context.Context, token string, scopes []string) (again bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err = s.cfg.updateRecord(ctx, func(r *record) (bool, error) {
		if t := r.Tokens; t != nil && t.Access != token && containsAll(t.Scopes, scopes) {
			again = true // signed in since
			s.cacheTokens(t)
			return false, nil
		}
		if containsAll(r.Wanted, scopes) && len(r.Wanted) > 0 {
			return false, nil
		}
		r.Wanted = mergeUnique(r.Wanted, scopes)
		return true, nil
	})
	if err != nil || again {
		return again, err
	}
	s.checked.Store(0) // the next request may come after the sign-in
	what := strings.Join(scopes, " ")
	if len(scopes) == 0 {
		what = "it does not name them"
	}
	return false, s.cfg.signInRequiredWith(fmt.Sprintf("server %s needs a sign-in with more scopes (%s)", s.cfg.Server, what), scopes)
}

// refreshOrReread returns tokens other than the refused or expiring access token old: those that
// another process has stored meanwhile, or refreshed ones; nil: there are none. If the server
// refuses the refresh token, the stored tokens are removed, and the error wraps ErrSignIn.
// Of all processes one refreshes, under the lock, so that a refresh token that
// changes with each use is used once.
func (s *Source) refreshOrReread(ctx context.Context, old string, refused bool) (*tokens, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.cached.Load(); t != nil && t.Access != old {
		return t, nil
	}
	// Without tokens in the store there is nothing to lock.
	switch r, err := s.cfg.loadRecord(ctx); {
	case err != nil:
		return nil, err
	case r.Tokens == nil && !s.cfg.signsInAlone():
		s.cacheTokens(nil)
		return nil, nil
	}
	var result, unknown *tokens // unknown: of a client that the server does not know
	refreshed := false
	err := s.cfg.updateRecord(ctx, func(r *record) (bool, error) {
		stored := accessOf(r.Tokens)
		s.restoreUnsaved(r)
		t := r.Tokens
		switch {
		case t == nil && !s.cfg.signsInAlone():
			return false, nil
		case t != nil && t.Access != old && (refused || !t.isDue(time.Now())):
			result = t
			return false, nil
		case refused && s.refreshIsFutile(old):
			return false, fmt.Errorf("server %s refuses the token that its provider has just issued", s.cfg.Server)
		case s.cfg.signsInAlone():
			fresh, err := s.obtainAlone(ctx, r)
			result = fresh
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
		// Not cancelled with the call: the answer may hold the only valid
		// refresh token.
		fresh, err := s.cfg.refresh(context.WithoutCancel(ctx), s.cfg.newHTTP(), *t)
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
		r.Tokens, result, refreshed = &fresh, &fresh, true
		s.unproven.Store(&fresh.Access)
		s.unsaved, s.replaced = &fresh, stored
		return true, nil
	})
	if refreshed && err == nil {
		s.unsaved = nil
	} else if refreshed {
		err = nil // the tokens are valid; the next refresh stores its own
	}
	if err == nil || errors.Is(err, ErrSignIn) {
		s.cacheTokens(result)
	}
	if unknown != nil { // after the lock of the record is free
		err = withFault(err, s.cfg.forgetClient(ctx, unknown.Issuer, unknown.Client))
	}
	return result, err
}

// obtainAlone requests tokens for a program that signs in without a user, and puts them into
// r, which is locked. On an error it returns nil. s.mu is held.
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

// reload reads the store, unless that was done before. After an error the next call tries
// again.
func (s *Source) reload(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hasRead.Load() {
		return nil
	}
	r, err := s.cfg.loadRecord(ctx)
	if err == nil {
		s.cacheTokens(r.Tokens)
	}
	return err
}

// checkInterval is the interval between checks for a sign-in or sign-out of another
// process.
const checkInterval = 5 * time.Second

// checkStore reads the store again if its file has been replaced, or the record in the
// cluster. After an error the known tokens stay.
func (s *Source) checkStore(ctx context.Context) error {
	if s.cfg.Kind == InCluster {
		return s.checkCluster(ctx)
	}
	info, err := os.Stat(s.cfg.recordFile())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || info != nil && s.file != nil && os.SameFile(info, s.file) && info.ModTime().Equal(s.file.ModTime()) {
		return err
	}
	r, err := s.cfg.loadRecord(ctx)
	if err == nil {
		s.restoreUnsaved(&r)
		s.cacheTokens(r.Tokens)
	}
	return err
}

// checkCluster reads the record in the store again. It returns an error only if the cached
// tokens have expired: while the cluster cannot be reached, they are used.
func (s *Source) checkCluster(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	r, err := s.cfg.loadRecord(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.restoreUnsaved(&r)
	}
	t := s.cached.Load()
	switch {
	case err == nil && (t == nil || r.Tokens == nil || t.Access != r.Tokens.Access):
		s.cacheTokens(r.Tokens)
	case err != nil && t != nil && (t.Expires.IsZero() || time.Now().Before(t.Expires)):
		return nil
	}
	return err
}

// cacheTokens caches tokens (nil: not signed in), and keeps them for Secrets. s.mu is held.
func (s *Source) cacheTokens(t *tokens) {
	s.file, _ = os.Stat(s.cfg.recordFile()) //nolint:errcheck // it is read again then
	if t != nil && !slices.Contains(s.used, t.Access) {
		s.used = append(s.used[max(0, len(s.used)-6):], t.Access)
		if t.Refresh != "" {
			s.used = append(s.used, t.Refresh)
		}
	}
	s.cached.Store(t)
	s.hasRead.Store(true)
}

// Changed reports whether the store has other tokens than this source, as after a sign-in by another
// process; false if it has none or cannot be read.
func (s *Source) Changed() bool {
	ctx, cancel := context.WithTimeout(context.Background(), statusTimeout)
	defer cancel()
	r, err := s.cfg.loadRecord(ctx)
	if err != nil || r.Tokens == nil {
		return false
	}
	t := s.cached.Load()
	return t == nil || t.Access != r.Tokens.Access
}

// Secrets returns the tokens that were in use last, to hide them in messages.
func (s *Source) Secrets() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.used)
}

// SignIn describes the stored sign-in; "": none, and the server asked for none.
func (s *Source) SignIn() string {
	a, ok, err := s.cfg.Status()
	switch {
	case err != nil:
		return err.Error()
	case !ok:
		return ""
	}
	return a.String()
}

// containsAll reports whether all contains each of some.
func containsAll(all, some []string) bool {
	return !slices.ContainsFunc(some, func(one string) bool { return !slices.Contains(all, one) })
}

// mergeUnique returns a copy of a, followed by the texts that only b has.
func mergeUnique(a, b []string) []string {
	a = slices.Clone(a)
	for _, one := range b {
		if !slices.Contains(a, one) {
			a = append(a, one)
		}
	}
	return a
}
