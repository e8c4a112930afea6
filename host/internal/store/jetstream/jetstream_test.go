package jetstream_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/host/internal/store/jetstream"
	"github.com/toolroom-mcp/toolroom/host/internal/store/storetest"
)

// serve runs a server of one node until the test ends.
func serve(t testing.TB, change func(*server.Options)) *server.Server {
	t.Helper()
	options := &server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(),
		JetStreamMaxStore: 1 << 40, // whatever the disk of this machine has
		NoLog:             true, NoSigs: true,
	}
	if change != nil {
		change(options)
	}
	s, err := server.NewServer(options)
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	require.True(t, s.ReadyForConnections(30*time.Second))
	return s
}

func TestSuite(t *testing.T) {
	s := serve(t, nil)
	storetest.Run(t, func(t *testing.T, c storetest.Config) func() *store.Store {
		name := strings.NewReplacer("/", "-", " ", "_").Replace(t.Name())
		return func() *store.Store {
			s := jetstream.New(jetstream.Config{URL: s.ClientURL(), Name: name, Now: c.Now, Quota: c.Quota, MaxBytes: 32 << 20})
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			return s
		}
	})
}

func Benchmark(b *testing.B) {
	s := serve(b, nil)
	st := jetstream.New(jetstream.Config{URL: s.ClientURL()})
	defer st.Close()
	storetest.Benchmark(b, st)
}
