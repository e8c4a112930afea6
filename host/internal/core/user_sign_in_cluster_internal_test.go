package core

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/host/internal/store/memory"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream/oauth"
)

// twoHosts returns two hosts with one store, and a sign-in of alice whose link the first one has sent.
func twoHosts(t *testing.T) (a, b *App, s *store.Store, one *userSignIn) {
	t.Helper()
	s = memory.New(memory.Config{})
	state := t.TempDir()
	a, b = hostWithLinks(t, state, s, dialect.CallerCredentials), hostWithLinks(t, state, s, dialect.CallerCredentials)
	usersIssuer(t, a, b)
	cfg, ok := a.snapshot.Load().byName["notes"].cfg.SignInOf("alice", a.tokenStorage(), "")
	require.True(t, ok)
	one, err := a.links.open(cfg)
	require.NoError(t, err)
	a.storeLink(t.Context(), one)
	return a, b, s, one
}

// The answer to a step can arrive at another host, from the same browser and once.
func TestStepIsAnsweredAtAnotherHost(t *testing.T) {
	a, b, s, one := twoHosts(t)
	browser := newVisitor(t, a)
	at := func(host *App, v *visitor, path string) string {
		v.a = host
		return v.visit(path).Body.String()
	}
	answer := func(state string) string { return "/sign-in/user?error=server_error&state=" + state }

	state := browser.open(one)
	require.Contains(t, at(b, newVisitor(t, b), answer(state)), "not valid any more", "another browser")
	require.Contains(t, at(b, browser, "/sign-in/callback?code=c&state="+state), "not valid any more", "another step")
	require.Contains(t, at(b, browser, answer(state)), "server_error")
	for _, host := range []*App{a, b} {
		require.Contains(t, at(host, browser, answer(state)), "not valid any more", "a state is accepted once")
	}

	browser.a = b // the link, too
	state = browser.open(b.findLink(t.Context(), one.id))
	entries, err := s.Keys.List(t.Context(), "sign-in-", "", 10)
	require.NoError(t, err)
	require.Len(t, entries, 2, "the link and the step")
	for _, entry := range entries {
		for _, secret := range []string{one.id, state, "verifier"} {
			require.NotContains(t, entry.Key+string(entry.Value), secret, "who reads the store cannot answer")
		}
	}
	require.Contains(t, at(a, browser, answer(state)), "server_error")
	require.Contains(t, at(b, browser, answer(state)), "not valid any more")

	// The step at the server.
	a.registerStep(t.Context(), "S", &browserStep{signIn: one, link: one.id, cookie: browser.cookies[signInCookie+one.id].Value, attempt: &oauth.Attempt{}})
	require.Contains(t, at(b, browser, "/sign-in/user?code=c&state=S"), "not valid any more", "another step")
	require.Contains(t, at(b, browser, "/sign-in/callback?error=server_error&state=S"), "The link is still valid")

	// A step of a sign-in that has ended.
	browser.a = a
	state = browser.open(one)
	a.endLink(t.Context(), one, nil)
	require.Contains(t, at(b, browser, answer(state)), "not valid any more")

	// The other host does not send a link that has ended.
	first, err := a.openLink(t.Context(), one.cfg)
	require.NoError(t, err)
	known := b.findLink(t.Context(), first.id)
	require.NotNil(t, known)
	same, err := b.openLink(t.Context(), one.cfg)
	require.NoError(t, err)
	require.Same(t, known, same)
	a.endLink(t.Context(), first, nil)
	other, err := b.openLink(t.Context(), one.cfg)
	require.NoError(t, err)
	require.NotEqual(t, first.id, other.id)
	require.NotNil(t, a.findLink(t.Context(), other.id))
	<-known.done
}

// A link that a later call at one host made valid for longer is valid at the other host, too, where it has expired.
func TestLinkIsProlongedAtAnotherHost(t *testing.T) {
	a, b, _, one := twoHosts(t)
	known := b.findLink(t.Context(), one.id)
	require.NotNil(t, known)
	known.expires = time.Now().Add(-time.Second)
	other := one.cfg
	other.Subject = "bob"
	_, err := b.links.open(other) // ends what has expired
	require.NoError(t, err)
	<-known.done
	one.expires = time.Now().Add(time.Second)
	_, err = a.openLink(t.Context(), one.cfg)
	require.NoError(t, err)
	require.NotNil(t, b.findLink(t.Context(), one.id))
}

// Steps that end because too many wait end at the other hosts, too.
func TestStoredStepsAreBounded(t *testing.T) {
	a, _, s, one := twoHosts(t)
	for range maxSteps + 5 {
		newVisitor(t, a).open(one)
	}
	entries, err := s.Keys.List(t.Context(), "sign-in-step/", "", 100)
	require.NoError(t, err)
	require.Len(t, entries, maxSteps)
}

// The steps are in the memory of one host if the store fails.
func TestStepsWithoutTheStore(t *testing.T) {
	a, _, s, one := twoHosts(t)
	s.Keys = failing{}
	browser := newVisitor(t, a)
	w := browser.visit("/sign-in/user?error=server_error&state=" + browser.open(one))
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.True(t, strings.Contains(w.Body.String(), "server_error"), w.Body)
}

// failing are the keys of a store that cannot be reached.
type failing struct{ store.Keys }

var errUnreachable = errors.New("unreachable")

func (failing) Get(context.Context, string) (store.Entry, error) {
	return store.Entry{}, errUnreachable
}

func (failing) Put(context.Context, string, []byte, store.Version, time.Time) (store.Version, error) {
	return 0, errUnreachable
}

func (failing) Delete(context.Context, string, store.Version) error { return errUnreachable }

// A call goes on when its sign-in ends at another host, also by another link.
func TestCallWaitsForAnotherHost(t *testing.T) {
	for _, failed := range []error{nil, errors.New("refused")} {
		a, b, _, one := twoHosts(t)
		type end struct {
			ended bool
			err   error
		}
		ends := make(chan end, 1)
		before := a.lastSignInEnd(t.Context(), one.cfg)
		go func() {
			ended, err := a.awaitLink(t.Context(), one, before)
			ends <- end{ended, err}
		}()
		other := one.cfg
		other.Subject = "bob"
		bobs, err := b.links.open(other)
		require.NoError(t, err)
		b.endLink(t.Context(), bobs, nil)
		theirs, err := b.links.open(one.cfg)
		require.NoError(t, err)
		require.NotEqual(t, one.id, theirs.id)
		b.endLink(t.Context(), theirs, failed)
		got := <-ends
		require.True(t, got.ended)
		require.Equal(t, failed, got.err)
		require.Nil(t, b.findLink(t.Context(), one.id), "its own link has ended, too")

		one, err = a.links.open(one.cfg)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		ended, err := a.awaitLink(ctx, one, a.lastSignInEnd(t.Context(), one.cfg))
		require.False(t, ended, "an earlier end is not its own")
		require.NoError(t, err)
	}
}
