package backend_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/host/internal/store/backend"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func TestOpenTouchesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	for _, c := range []backend.Config{
		{Dir: dir},
		{URL: "memory:", Dir: dir},
		{URL: "nats://user:secret@127.0.0.1:1,tls://127.0.0.1:2?name=n&replicas=3", Dir: dir},
	} {
		s, err := backend.Open(c)
		require.NoError(t, err)
		require.NoDirExists(t, dir)
		require.NoError(t, s.Close())
		require.NoDirExists(t, dir)
	}
}

func TestDefaultIsTheDatabase(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	for range 2 { // what the first puts the second finds
		s, err := backend.Open(backend.Config{Dir: dir})
		require.NoError(t, err)
		_, err = s.Keys.Put(t.Context(), "k", []byte("v"), store.Any, time.Time{})
		require.NoError(t, err)
		e, err := s.Keys.Get(t.Context(), "k")
		require.NoError(t, err)
		require.Equal(t, "v", string(e.Value))
		require.NoError(t, s.Close())
	}
	_, err := os.Stat(filepath.Join(dir, "host.db"))
	require.NoError(t, err)
}

func TestClusterThatIsNotThere(t *testing.T) {
	s, err := backend.Open(backend.Config{URL: "nats://user:secret@127.0.0.1:1"})
	require.NoError(t, err)
	_, err = s.Keys.Get(t.Context(), "k")
	require.Equal(t, toolerr.TransportError, toolerr.CodeOf(err), "%v", err)
	require.NotContains(t, err.Error(), "secret")
	require.Contains(t, err.Error(), "127.0.0.1:1")
	require.NoError(t, s.Close())
}

func TestWhatIsWrongIsNamed(t *testing.T) {
	for _, test := range []struct {
		config backend.Config
		says   string
	}{
		{backend.Config{}, "--state"},
		{backend.Config{URL: "redis://u:secret@h"}, "nats://HOST:4222"},
		{backend.Config{URL: "nats://a,%zz://secret"}, "nats://HOST:4222"},
		{backend.Config{URL: "memory"}, "memory:"},
		{backend.Config{URL: "nats://h?name=a.b"}, "name"},
		{backend.Config{URL: "nats://h?replicas=0"}, "replicas"},
		{backend.Config{URL: "nats://h?replica=3"}, "replica"},
		{backend.Config{URL: "nats://h?name=%zz"}, "parameters"},
		{backend.Config{Dir: "d", MaxBytes: -1}, "max_bytes"},
	} {
		_, err := backend.Open(test.config)
		require.Equal(t, toolerr.InvalidInput, toolerr.CodeOf(err), "%+v: %v", test.config, err)
		require.Contains(t, err.Error(), test.says)
		require.NotContains(t, err.Error(), "secret")
	}
}
