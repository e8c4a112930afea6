package core

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/accesstoken"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/host/internal/store/memory"
)

// hostWithLinks returns a host with a server for whose users it makes links.
func hostWithLinks(t *testing.T, state string, s *store.Store, credentials string) *App {
	t.Helper()
	spec := dialect.Server{Name: "notes", URL: "https://notes.example.com/mcp", Credentials: credentials}
	a, err := Open(config.Config{
		State: state, Remote: []dialect.Server{spec},
		Auth: &accesstoken.Config{Issuer: "https://login.example.com", URL: "https://tools.example.com", ClientID: "host"},
	})
	require.NoError(t, err)
	t.Cleanup(a.Close)
	a.store = s
	return a
}

// A link is known to other processes with the same store until it ends or expires.
func TestLinksAreStored(t *testing.T) {
	now := time.Now()
	s := memory.New(memory.Config{Now: func() time.Time { return now }})
	state := t.TempDir()
	before := hostWithLinks(t, state, s, dialect.CallerCredentials)
	server := before.snapshot.Load().byName["notes"].cfg
	cfg, ok := server.SignInOf("alice", before.tokenStorage(), "")
	require.True(t, ok)
	one, err := before.links.open(cfg)
	require.NoError(t, err)
	before.storeLink(t.Context(), one)

	entries, err := s.Keys.List(t.Context(), "sign-in-link/", "", 10)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.NotContains(t, entries[0].Key+string(entries[0].Value), one.id, "who reads the store cannot use the link")

	after := hostWithLinks(t, state, s, dialect.CallerCredentials)
	require.Nil(t, after.findLink(t.Context(), "other"))
	found := after.findLink(t.Context(), one.id)
	require.NotNil(t, found)
	require.Equal(t, "alice", found.cfg.Subject)
	require.WithinDuration(t, one.expires, found.expires, time.Second)
	require.Same(t, found, after.findLink(t.Context(), one.id))

	// A call that waits in the new process waits for the same sign-in.
	third := hostWithLinks(t, state, s, dialect.CallerCredentials)
	waiting, err := third.links.open(cfg)
	require.NoError(t, err)
	require.Same(t, waiting, third.findLink(t.Context(), one.id))
	third.endLink(t.Context(), waiting, nil)
	<-waiting.done
	require.Nil(t, third.findLink(t.Context(), one.id))
	require.Nil(t, third.findLink(t.Context(), waiting.id))
	require.Nil(t, hostWithLinks(t, state, s, dialect.CallerCredentials).findLink(t.Context(), one.id), "it was used")

	// A link of another process is valid longer than the sign-in here that was not completed.
	late := hostWithLinks(t, state, s, dialect.CallerCredentials)
	expired, err := late.links.open(cfg)
	require.NoError(t, err)
	expired.expires = time.Now().Add(-time.Second)
	one.stored = time.Time{}
	before.storeLink(t.Context(), one)
	found = late.findLink(t.Context(), one.id)
	require.NotSame(t, expired, found)
	require.Same(t, found, late.links.get(one.id))
	<-expired.done
	late.endLink(t.Context(), found, nil)

	again, err := before.links.open(cfg)
	require.NoError(t, err)
	require.Same(t, one, again)
	before.links.end(one, nil)
	one, err = before.links.open(cfg)
	require.NoError(t, err)
	before.storeLink(t.Context(), one)
	require.Nil(t, hostWithLinks(t, t.TempDir(), s, dialect.CallerCredentials).findLink(t.Context(), one.id), "another state directory")
	require.Nil(t, hostWithLinks(t, state, s, "").findLink(t.Context(), one.id), "users no longer sign in to the server")
	now = now.Add(linkLifetime + time.Second)
	require.Nil(t, hostWithLinks(t, state, s, dialect.CallerCredentials).findLink(t.Context(), one.id), "it has expired")
}
