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
	before  atomic.Pointer[tokens] // cached before, which a request that was begun may have
	hasRead atomic.Bool            // whether the store has been read

	nonce   atomic.Value // string: the last one of the server, for proofs
	checked atomic.Int64 // when the file was last looked at, in nanoseconds

	unproven atomic.Pointer[string] // access token of the last refresh; nil: the server has accepted it

	reading chan struct{} // holds a value while the store is read

	mu       sync.Mutex  // guards the fields below; not held during requests or reads
	running  *renewal    // nil: none runs
	failedAt time.Time   // when the last renewal failed
	failed   error       // of the last renewal, if the provider did not answer; nil: it did
	changes  int         // of cached
	file     os.FileInfo // the file that was read last
	used     []string    // tokens that were sent, to hide them in messages

	// unsaved are refreshed tokens that could not be stored, nil: none; replaced is the access
	// token that the store has in their place.
	unsaved  *tokens
	replaced string

	refusedToken string    // that the server refused although it was just issued
	refusedAt    time.Time // when that was
}

// NewSource returns the source of a server's tokens. It does no work.
func NewSource(cfg Config) *Source { return &Source{cfg: cfg, reading: make(chan struct{}, 1)} }

// Token returns the access token to send; "" if nobody has signed in. It first refreshes
// a token that is about to expire, and waits for that only for a short time while the token
// is valid. It returns an error if the store cannot be read, if the refresh fails and
// the token has expired, if ctx ends first, or that wraps ErrSignIn if a new sign-in is
// necessary.
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
	if t != nil && (t.Refresh != "" || s.cfg.signsInAlone()) && t.isDue(time.Now()) {
		var err error
		if t, err = s.renewDue(ctx, t); err != nil {
			return "", err
		}
	}
	return accessOf(t), nil
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
	err = s.cfg.updateRecord(ctx, func(r *record) (bool, error) {
		if t := r.Tokens; t != nil && t.Access != token && containsAll(t.Scopes, scopes) {
			again = true // signed in since
			s.setTokens(t)
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

// reload reads the store, unless that was done before. After an error the next call tries
// again. It returns an error if ctx ends before it can read.
func (s *Source) reload(ctx context.Context) error {
	return s.read(ctx, s.hasRead.Load, s.cfg.loadRecord)
}

// read caches the tokens of the record that load returns, unless skip reports true or the cached
// tokens have changed meanwhile. It waits until another read has ended, and returns an error if ctx
// ends before.
func (s *Source) read(ctx context.Context, skip func() bool, load func(context.Context) (record, error)) error {
	select {
	case s.reading <- struct{}{}:
		defer func() { <-s.reading }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if skip() {
		return nil
	}
	s.mu.Lock()
	changes := s.changes
	s.mu.Unlock()
	r, err := load(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changes == changes {
		s.restoreUnsaved(&r)
		s.cacheTokens(r.Tokens)
	}
	return nil
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
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.read(ctx, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return info != nil && s.file != nil && os.SameFile(info, s.file) && info.ModTime().Equal(s.file.ModTime())
	}, s.cfg.loadRecord)
}

// checkCluster reads the record in the store again. It returns an error only if the cached
// tokens have expired: while the cluster cannot be reached, they are used.
func (s *Source) checkCluster(ctx context.Context) error {
	err := s.read(ctx, func() bool { return false }, func(ctx context.Context) (record, error) {
		ctx, cancel := context.WithTimeout(ctx, statusTimeout)
		defer cancel()
		return s.cfg.loadRecord(ctx)
	})
	if t := s.cached.Load(); err != nil && t != nil && (t.Expires.IsZero() || time.Now().Before(t.Expires)) {
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
	if old := s.cached.Load(); accessOf(old) != accessOf(t) {
		s.before.Store(old)
		s.failed = nil
	}
	s.changes++
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

// NeedsSignIn reports whether err wraps ErrSignIn.
func (s *Source) NeedsSignIn(err error) bool { return errors.Is(err, ErrSignIn) }

// SignIn describes the stored sign-in; "": none, and the server asked for none.
func (s *Source) SignIn() string {
	a, ok, err := s.cfg.Status()
	switch {
	case err != nil:
		return err.Error()
	case !ok:
		return ""
	}
	s.mu.Lock()
	a.Fault = s.failed
	s.mu.Unlock()
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
