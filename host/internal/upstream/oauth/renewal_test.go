package oauth

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// expiresIn sets the expiry of the stored access token, from now on.
func expiresIn(t *testing.T, c Config, d time.Duration) {
	t.Helper()
	require.NoError(t, c.updateRecord(t.Context(), func(r *record) (bool, error) {
		r.Tokens.Issued, r.Tokens.Expires = time.Now().Add(-time.Hour), time.Now().Add(d)
		return true, nil
	}))
}

// hang makes the token endpoint answer only after release is called. asked is closed at the
// first request.
func (p *provider) hang() (asked chan struct{}, release func()) {
	asked, free := make(chan struct{}), make(chan struct{})
	var first sync.Once
	p.token = func(http.ResponseWriter, *http.Request) bool {
		first.Do(func() { close(asked) })
		p.mu.Unlock()
		<-free
		p.mu.Lock()
		return false
	}
	release = sync.OnceFunc(func() { close(free) })
	p.t.Cleanup(release)
	return asked, release
}

// awaitEnd waits until no renewal is running.
func (s *Source) awaitEnd() {
	s.mu.Lock()
	running := s.running
	s.mu.Unlock()
	if running != nil {
		<-running.done
	}
}

// A refresh that hangs or fails does not hold calls up while the token is valid, and each of
// them does not begin another one.
func TestRenewalBeforeExpiry(t *testing.T) {
	t.Run("hangs", func(t *testing.T) {
		p := newProvider(t)
		c := p.signedIn()
		expiresIn(t, c, 50*time.Second)
		_, release := p.hang()
		s := NewSource(c)
		before := p.count()
		for range 5 {
			token, err := s.Token(t.Context())
			require.NoError(t, err)
			require.Equal(t, "access-1", token)
			require.Contains(t, s.Secrets(), "access-1")
		}
		require.Equal(t, before+1, p.count())
		release()
		s.awaitEnd()
	})
	t.Run("fails", func(t *testing.T) {
		p := newProvider(t)
		c := p.signedIn()
		expiresIn(t, c, 50*time.Second)
		p.token = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusBadGateway); return true }
		s := NewSource(c)
		before := p.count()
		for range 5 {
			s.mu.Lock()
			if !s.failedAt.IsZero() {
				s.failedAt = time.Now() // also on a slow machine
			}
			s.mu.Unlock()
			token, err := s.Token(t.Context())
			require.NoError(t, err)
			require.Equal(t, "access-1", token)
			s.awaitEnd()
		}
		require.Equal(t, before+1, p.count())
		p.mu.Lock()
		p.token = nil
		p.mu.Unlock()
		s.mu.Lock()
		s.failedAt = s.failedAt.Add(-earlyPause)
		s.mu.Unlock()
		_, err := s.Token(t.Context())
		require.NoError(t, err)
		s.awaitEnd()
		token, err := s.Token(t.Context())
		require.NoError(t, err)
		require.Equal(t, "access-2", token)
	})
	t.Run("is refused", func(t *testing.T) {
		p := newProvider(t)
		c := p.signedIn()
		expiresIn(t, c, 50*time.Second)
		p.refresh = "other"
		s := NewSource(c)
		_, err := s.refreshOrReread(t.Context(), "access-1", false)
		require.ErrorIs(t, err, ErrSignIn)
	})
}

// A call that is cancelled does not wait for the refresh of another call.
func TestCancelledCallDoesNotWaitForRenewal(t *testing.T) {
	p := newProvider(t)
	c := p.signedIn()
	expiresIn(t, c, -time.Second)
	asked, release := p.hang()
	s := NewSource(c)
	done := make(chan error, 1)
	go func() {
		_, err := s.Token(context.Background())
		done <- err
	}()
	<-asked
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Token(ctx)
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.Refused(ctx, "access-1", http.StatusUnauthorized, nil)
	require.ErrorIs(t, err, context.Canceled)
	select {
	case <-done:
		t.Error("the refresh has ended before")
	default:
	}
	release()
	require.NoError(t, <-done)
	require.Equal(t, 1, p.refreshed)
}

// A refresh goes on if its call ends: the answer may hold the only valid refresh token.
func TestRenewalOfCancelledCallGoesOn(t *testing.T) {
	p := newProvider(t)
	c := p.signedIn()
	expiresIn(t, c, -time.Second)
	asked, release := p.hang()
	s := NewSource(c)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := s.Token(ctx)
		done <- err
	}()
	<-asked
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	release()
	token, err := s.Token(t.Context())
	require.NoError(t, err)
	require.Equal(t, "access-2", token)
	require.Equal(t, 1, p.refreshed)
}

// Calls wait for an early renewal at most earlyWait from its start, and Close at most RefreshTime.
func TestWaitsForRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := func() (*Source, *tokens, *renewal) {
			now := time.Now()
			running := &renewal{old: "a", begun: now, sent: true, done: make(chan struct{})}
			s := NewSource(Config{Server: "notes", Storage: Storage{State: t.TempDir()}})
			s.running = running
			known := &tokens{Access: "a", Refresh: "r", Issued: now.Add(-time.Hour), Expires: now.Add(50 * time.Second)}
			s.setTokens(known)
			return s, known, running
		}
		s, known, running := source()
		got, err := s.renewDue(t.Context(), known)
		require.NoError(t, err)
		require.Equal(t, "a", got.Access)
		require.Equal(t, earlyWait, time.Since(running.begun))
		_, err = s.renewDue(t.Context(), known)
		require.NoError(t, err)
		require.Equal(t, earlyWait, time.Since(running.begun), "the next call does not wait")
		begin := time.Now()
		s.Close()
		require.Equal(t, RefreshTime, time.Since(begin))

		s, known, running = source()
		time.AfterFunc(time.Second, func() { running.result = &tokens{Access: "b"}; close(running.done) })
		got, err = s.renewDue(t.Context(), known)
		require.NoError(t, err)
		require.Equal(t, "b", got.Access)
		begin = time.Now()
		s.Close()
		require.Equal(t, begin, time.Now())

		s, known, running = source()
		time.AfterFunc(time.Second, func() { running.err = errors.New("no"); close(running.done) })
		got, err = s.renewDue(t.Context(), known)
		require.NoError(t, err)
		require.Equal(t, "a", got.Access, "it is still valid")

		s, known, running = source()
		time.AfterFunc(time.Minute, func() { running.result = &tokens{Access: "b"}; close(running.done) })
		known.Expires = time.Now().Add(time.Second)
		got, err = s.renewDue(t.Context(), known)
		require.NoError(t, err)
		require.Equal(t, "b", got.Access, "the old one expires during the wait")
		require.Equal(t, time.Minute, time.Since(running.begun))
	})
}

// A request that was signed with a token that was replaced meanwhile has its proof of possession.
func TestProofWithReplacedToken(t *testing.T) {
	key, err := newProofKey()
	require.NoError(t, err)
	s := NewSource(Config{Server: "notes", Storage: Storage{State: t.TempDir()}})
	s.setTokens(&tokens{Access: "a", Key: key, Scheme: dpopScheme})
	s.setTokens(&tokens{Access: "b", Key: key, Scheme: dpopScheme})
	for _, token := range []string{"a", "b"} {
		req, err := http.NewRequest(http.MethodPost, "https://mcp.example.com/", nil)
		require.NoError(t, err)
		require.NoError(t, s.Sign(req, token))
		require.Equal(t, "DPoP "+token, req.Header.Get("Authorization"))
		require.NotEmpty(t, req.Header.Get("DPoP"))
	}
}

// afterExpiry returns the source of an access token that has expired, and its provider, which answers
// requests for tokens with a status.
func afterExpiry(t *testing.T, status int) (*provider, *Source) {
	t.Helper()
	p := newProvider(t)
	c := p.signedIn()
	expiresIn(t, c, -time.Second)
	p.token = func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(status)
		return true
	}
	return p, NewSource(c)
}

// While the provider does not answer, the calls after the expiry share a few refreshes, and use the
// first token after that.
func TestPauseBetweenRefreshesAfterExpiry(t *testing.T) {
	p, s := afterExpiry(t, http.StatusServiceUnavailable)
	before := p.count()
	_, err := s.Token(t.Context())
	require.ErrorContains(t, err, "503")
	require.False(t, s.NeedsSignIn(err))
	require.Contains(t, s.SignIn(), "signed in, not renewed: the access token of server notes cannot be refreshed: ")
	failedAt := func(at time.Time) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.failedAt = at
	}
	failedAt(time.Now().Add(time.Hour)) // the pause does not end during the test
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		_, err = s.Token(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, err = s.Refused(ctx, "access-1", http.StatusUnauthorized, nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		cancel()
	}
	require.Equal(t, before+1, p.count())

	failedAt(time.Now().Add(-failurePause))
	p.mu.Lock()
	p.token = nil
	p.mu.Unlock()
	token, err := s.Token(t.Context())
	require.NoError(t, err)
	require.Equal(t, "access-2", token)
	require.NotContains(t, s.SignIn(), "not renewed")
	require.Equal(t, before+2, p.count())
}

// Calls wait for the end of the pause after a failure, and then for the next refresh.
func TestCallsWaitDuringThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSource(Config{Server: "notes", Storage: Storage{State: t.TempDir()}})
		s.setTokens(&tokens{Access: "a", Refresh: "r"})
		s.failed, s.failedAt = errors.New("no answer"), time.Now()
		begin := time.Now()
		got, err := s.refreshOrReread(t.Context(), "a", false)
		require.NoError(t, err)
		require.Nil(t, got, "nothing is stored")
		require.Equal(t, failurePause, time.Since(begin))
	})
}

// Only while the provider does not answer is there a pause: the other causes end at once, as soon as the
// user has removed them.
func TestNoPauseAfterOtherFailures(t *testing.T) {
	p, s := afterExpiry(t, http.StatusForbidden)
	before := p.count()
	for range 3 {
		_, err := s.Token(t.Context())
		require.ErrorContains(t, err, "403")
	}
	require.Equal(t, before+3, p.count())
}

// A process that ends waits for a refresh that was sent, and has none sent after its end has begun.
func TestRefreshAtTheEnd(t *testing.T) {
	p := newProvider(t)
	c := p.signedIn()
	c.Refreshes = &Refreshes{}
	require.True(t, c.Refreshes.Await(0))
	expiresIn(t, c, -time.Second)
	asked, release := p.hang()
	s := NewSource(c)
	done := make(chan error, 1)
	go func() {
		_, err := s.Token(context.Background())
		done <- err
	}()
	<-asked
	s.Close()
	require.False(t, c.Refreshes.Await(time.Millisecond))
	release()
	require.True(t, c.Refreshes.Await(RefreshTime))
	r, err := c.loadRecord(t.Context())
	require.NoError(t, err)
	require.Equal(t, "refresh-2", r.Tokens.Refresh)
	require.NoError(t, <-done)

	expiresIn(t, c, -time.Second)
	unlock, err := c.lockRecord(t.Context()) // as another process that refreshes
	require.NoError(t, err)
	s = NewSource(c)
	go func() {
		_, err := s.Token(context.Background())
		done <- err
	}()
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.running != nil
	}, time.Minute, time.Millisecond)
	s.Close()
	require.True(t, c.Refreshes.Await(0))
	before := p.count()
	unlock()
	require.ErrorIs(t, <-done, errAbandoned)
	require.Equal(t, before, p.count())
}
