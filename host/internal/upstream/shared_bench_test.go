package upstream_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/internal/testkit/faultserver"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// BenchmarkCall compares a call of a server's own process with a call of a process that
// is shared over a unix socket, one call at a time and with 64 in flight.
func BenchmarkCall(b *testing.B) {
	for _, kind := range []string{"own", "shared"} {
		s := benchServer(b, kind == "shared")
		_, err := do(b.Context(), s, "echo", `{}`)
		require.NoError(b, err)
		b.Run(kind+"/1", func(b *testing.B) {
			for b.Loop() {
				_, err := do(b.Context(), s, "echo", `{"text":"hello"}`)
				require.NoError(b, err)
			}
		})
		b.Run(kind+"/64", func(b *testing.B) {
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					_, err := do(b.Context(), s, "echo", `{"text":"hello"}`)
					require.NoError(b, err)
				}
			})
		})
	}
}

func benchServer(b *testing.B, share bool) *upstream.Server {
	self, err := os.Executable()
	require.NoError(b, err)
	cfg := upstream.Config{Name: "fix", Command: []string{self, faultserver.Arg}, Env: os.Environ(), StartTimeout: time.Minute}
	if share {
		shared := upstream.NewSharedServers(upstream.SharedConfig{})
		listener, err := net.Listen("unix", filepath.Join(b.TempDir(), "s"))
		require.NoError(b, err)
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				go serveShared(shared, conn)
			}
		}()
		b.Cleanup(func() {
			listener.Close() //nolint:errcheck // the benchmark is over
			shared.Close()
		})
		cfg.Share = &upstream.Share{Dial: func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", listener.Addr().String())
		}}
	}
	spawner := upstream.NewSpawner(nil)
	s, err := upstream.New(cfg, spawner)
	require.NoError(b, err)
	b.Cleanup(func() {
		s.Close()
		spawner.Close()
	})
	return s
}

func serveShared(shared *upstream.SharedServers, conn net.Conn) {
	in := jsonrpc.NewReader(conn, 0)
	line, err := in.ReadLine()
	if err != nil {
		return
	}
	if m, err := jsonrpc.Split(line); err == nil {
		shared.Serve(conn, m, in)
	}
}
