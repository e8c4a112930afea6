package core

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/internal/testkit/faultserver"
)

// A server that cannot be replaced stays, and the one that it is to be
// replaced by is tried again: after some time, and when the server is called.
func TestAReplacementThatFailsIsTriedAgain(t *testing.T) {
	for name, p := range map[string]backoff{
		"by itself":         {first: time.Millisecond, max: time.Millisecond},
		"when it is called": {first: time.Hour, max: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			a, cfg := within(t, config.Config{}, "s")
			a.backoff = p
			var said atomic.Int32
			a.OnNotice(func(string) { said.Add(1) })
			_, err := ask(t.Context(), a, "s__echo", `{}`)
			require.NoError(t, err)
			old := a.Servers()[0]

			var well atomic.Bool
			var starts atomic.Int32
			cfg.Servers = []config.Server{{Config: upstream.Config{Name: "s", Era: upstream.Legacy, Env: []string{"A=1"}, Serve: func(ctx context.Context, in io.Reader, out io.Writer) error {
				if starts.Add(1); !well.Load() {
					return errors.New("not today")
				}
				return faultserver.Serve(ctx, in, out)
			}}}}
			follow(t, a, cfg)
			require.Eventually(t, func() bool { return a.WhyStale() != nil }, time.Minute, time.Millisecond)
			require.ErrorContains(t, a.WhyStale(), "server s does not start with its new configuration; the old one keeps running")
			if p.first < time.Second {
				require.Eventually(t, func() bool { return starts.Load() >= 3 }, time.Minute, time.Millisecond)
			}
			_, err = ask(t.Context(), a, "s__echo", `{}`)
			require.NoError(t, err, "by the one that is there")
			require.Same(t, old, a.Servers()[0])
			require.EqualValues(t, 1, said.Load(), "the same failure is told once")

			well.Store(true)
			require.Eventually(t, func() bool {
				_, err := ask(t.Context(), a, "s__echo", `{}`)
				return err == nil && a.WhyStale() == nil
			}, time.Minute, 5*time.Millisecond)
			require.NotSame(t, old, a.Servers()[0])
			require.Nil(t, a.partialReload.Load())
		})
	}
}

// follow has a host follow a file that says cfg.
func follow(t *testing.T, a *App, cfg config.Config) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "toolroom.yaml")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	cfg.Watched, a.Config.Watched = []string{file}, []string{file}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- a.Follow(ctx, func() (config.Config, error) { return cfg, nil }, config.WatchOptions{})
	}()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
}
