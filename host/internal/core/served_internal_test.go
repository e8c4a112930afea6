//go:build !race && !windows

package core

import (
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/store/backend"
)

// servedStores are stores of other processes. With the race detector, and for
// another system only to see that it compiles, a whole server is too much.
func servedStores(t *testing.T) []backend.Config {
	nats, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(),
		JetStreamMaxStore: 1 << 40, // whatever the disk of this machine has
		NoLog:             true, NoSigs: true,
	})
	require.NoError(t, err)
	nats.Start()
	t.Cleanup(func() {
		nats.Shutdown()
		nats.WaitForShutdown()
	})
	require.True(t, nats.ReadyForConnections(20*time.Second))
	return []backend.Config{{URL: nats.ClientURL()}}
}
