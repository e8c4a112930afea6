package oauth

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/host/internal/store/memory"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// unreliable is a store whose next requests fail, before or after they are done.
type unreliable struct {
	store.Keys
	down  atomic.Int32 // requests that fail
	after atomic.Int32 // writes whose answer is lost
}

func (u *unreliable) Get(ctx context.Context, key string) (store.Entry, error) {
	if u.down.Add(-1) >= 0 {
		return store.Entry{}, toolerr.New(toolerr.TransportError, "no cluster")
	}
	return u.Keys.Get(ctx, key)
}

func (u *unreliable) Put(ctx context.Context, key string, value []byte, was store.Version, expires time.Time) (store.Version, error) {
	if u.down.Add(-1) >= 0 {
		return 0, toolerr.New(toolerr.TransportError, "no cluster")
	}
	version, err := u.Keys.Put(ctx, key, value, was, expires)
	if len(key) > len(recordKeyPrefix) && key[:len(recordKeyPrefix)] == recordKeyPrefix && u.after.Add(-1) >= 0 {
		return 0, toolerr.New(toolerr.Timeout, "no answer")
	}
	return version, err
}

func newUnreliable() *unreliable { return &unreliable{Keys: memory.New(memory.Config{}).Keys} }

// inCluster returns the configuration of a host with its own state directory.
func (p *provider) inCluster(shared store.Keys) Config {
	c := p.config()
	c.Kind, c.Shared = InCluster, shared
	return c
}

// The hosts of a cluster have different state directories. One of them refreshes, and the
// others get its result. The provider refuses a refresh token that is used twice.
func TestRefreshByTheHostsOfACluster(t *testing.T) {
	p := newProvider(t)
	shared := memory.New(memory.Config{}).Keys
	first := p.inCluster(shared)
	a, err := p.login(first)
	require.NoError(t, err)
	require.True(t, a.SignedIn)
	require.NoFileExists(t, first.recordFile())

	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			source := NewSource(p.inCluster(shared))
			token, err := source.Token(t.Context())
			if err != nil || token != "access-1" && token != "access-2" { // another host may have refreshed already
				t.Error(token, err)
			}
			if again, err := source.Refused(t.Context(), "access-1", 401, nil); !again || err != nil {
				t.Error(again, err)
			}
			if token, err := source.Token(t.Context()); err != nil || token != "access-2" {
				t.Error(token, err)
			}
		})
	}
	all.Wait()
	require.Equal(t, 1, p.refreshed)

	// A host sees the sign-out of another one.
	source := NewSource(p.inCluster(shared))
	_, err = source.Token(t.Context())
	require.NoError(t, err)
	found, err := Logout(t.Context(), p.inCluster(shared))
	require.NoError(t, err)
	require.True(t, found)
	require.NoError(t, source.checkStore(t.Context()))
	token, err := source.Token(t.Context())
	require.NoError(t, err)
	require.Empty(t, token)
	a, _, err = first.Status()
	require.NoError(t, err)
	require.False(t, a.SignedIn)
}

// A host that ends without unlocking has the lock until it expires.
func TestLockOfADeadHost(t *testing.T) {
	var skip atomic.Int64
	shared := memory.New(memory.Config{Now: func() time.Time { return time.Now().Add(time.Duration(skip.Load())) }}).Keys
	r := clusterRecord{shared, "name"}
	_, err := shared.Put(t.Context(), lockKeyPrefix+"name", []byte("dead"), store.Absent, time.Now().Add(leaseDuration))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = r.lock(ctx)
	require.ErrorContains(t, err, "another host has the lock")
	skip.Store(int64(leaseDuration))
	unlock, err := r.lock(t.Context())
	require.NoError(t, err)
	unlock()
	_, err = shared.Get(t.Context(), lockKeyPrefix+"name")
	require.True(t, toolerr.Is(err, toolerr.NotFound), "%v", err)
}

// While the cluster cannot be reached, known tokens are used, and a refreshed token is not
// lost if a write fails or its answer does.
func TestClusterThatFails(t *testing.T) {
	p := newProvider(t)
	shared := newUnreliable()
	c := p.inCluster(shared)
	_, err := p.login(c)
	require.NoError(t, err)
	source := NewSource(c)
	token, err := source.Token(t.Context())
	require.NoError(t, err)
	require.Equal(t, "access-1", token)
	shared.down.Store(1)
	require.NoError(t, source.checkStore(t.Context()))
	token, err = source.Token(t.Context())
	require.NoError(t, err)
	require.Equal(t, "access-1", token)
	require.NotNil(t, source.cached.Load())

	shared.after.Store(1)
	again, err := source.Refused(t.Context(), "access-1", 401, nil)
	require.NoError(t, err)
	require.True(t, again)
	token, err = NewSource(p.inCluster(shared)).Token(t.Context())
	require.NoError(t, err)
	require.Equal(t, "access-2", token)

	shared.down.Store(100)
	_, err = NewSource(c).Token(t.Context())
	require.ErrorContains(t, err, "no cluster")
	shared.down.Store(0)
}

func TestUsersInACluster(t *testing.T) {
	p := newProvider(t)
	shared := memory.New(memory.Config{}).Keys
	for _, subject := range []string{"issuer\nalice", "issuer\nbob", ""} {
		c := p.inCluster(shared)
		c.Subject = subject
		_, err := p.login(c)
		require.NoError(t, err)
	}
	users, err := LogoutUsers(t.Context(), p.inCluster(shared))
	require.NoError(t, err)
	require.Equal(t, 2, users)
	a, _, err := p.inCluster(shared).Status()
	require.NoError(t, err)
	require.True(t, a.SignedIn, "the host itself")
	c := p.inCluster(nil)
	_, err = p.login(c)
	require.ErrorContains(t, err, "token_store: cluster needs the store of a cluster")
}
