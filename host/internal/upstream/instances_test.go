package upstream_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/internal/testkit/faultserver"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// as calls a tool as one caller.
func as(ctx context.Context, s *upstream.Server, caller, tool, arguments string) (string, error) {
	req := request(tool, `{"arguments":`+arguments+`}`)
	req.Caller.ID = caller
	res, err := s.Call(ctx, req)
	if err != nil {
		return "", err
	}
	return string(res.Raw), nil
}

// pids are the processes that were started.
func pids(t *testing.T, file string) []int {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var all []int
	for _, line := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(line)
		require.NoError(t, err)
		all = append(all, pid)
	}
	return all
}

func TestEverySessionHasARunOfItsOwn(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pids")
	s := start(t, func(c *upstream.Config) { c.Scope = upstream.PerSession }, "-pid", file, "-era", "legacy")
	tools, err := s.Tools(t.Context())
	require.NoError(t, err)
	require.Len(t, tools, 24)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range 5 {
				_, err := as(t.Context(), s, fmt.Sprint("caller", i%2), "echo", `{}`)
				require.NoError(t, err)
			}
		})
	}
	all.Wait()
	require.Len(t, pids(t, file), 3, "one of each caller, and one that lists the tools")
	require.Equal(t, 2, s.Status().Callers)

	// One caller's crash is its own.
	_, err = as(t.Context(), s, "caller0", "crash", `{}`)
	require.Equal(t, toolerr.ServerOffline, toolerr.CodeOf(err))
	_, err = as(t.Context(), s, "caller1", "echo", `{}`)
	require.NoError(t, err)
	require.Len(t, pids(t, file)[:3], 3)

	gone := pids(t, file)
	upstream.EndIdleInstance(s, "caller1")
	require.Eventually(t, func() bool { return s.Status().Callers == 1 }, time.Minute, 5*time.Millisecond)
	_, err = as(t.Context(), s, "caller1", "echo", `{}`)
	require.NoError(t, err)
	s.Close()
	for _, pid := range append(gone, pids(t, file)...) {
		requireGone(t, pid, "a run")
	}
	_, err = as(t.Context(), s, "caller1", "echo", `{}`)
	require.Equal(t, toolerr.ServerOffline, toolerr.CodeOf(err))
}

func TestRunsOfCallersAreBounded(t *testing.T) {
	t.Parallel()
	s := at(t, "", func(c *upstream.Config) { c.Serve, c.Scope = faultserver.Serve, upstream.PerSession })
	for i := range 70 {
		_, err := as(t.Context(), s, fmt.Sprint(i), "echo", `{}`)
		require.NoError(t, err)
	}
	require.Equal(t, 64, s.Status().Callers)
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for i := range 64 {
		all.Go(func() {
			for ctx.Err() == nil { // it may come when the one more has the last place
				as(ctx, s, fmt.Sprint("busy", i), "hang", `{}`) //nolint:errcheck // it is cancelled
				time.Sleep(time.Millisecond)
			}
		})
	}
	require.Eventually(t, func() bool {
		_, err := as(t.Context(), s, "one more", "echo", `{}`)
		return toolerr.CodeOf(err) == toolerr.LimitReached
	}, time.Minute, 5*time.Millisecond)
}

func TestEveryCallHasARunOfItsOwn(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pids")
	s := start(t, func(c *upstream.Config) { c.Scope = upstream.PerCall }, "-pid", file, "-era", "legacy")
	for range 3 {
		_, err := as(t.Context(), s, "a", "echo", `{}`)
		require.NoError(t, err)
	}
	started := pids(t, file)
	require.Len(t, started, 3)
	for _, pid := range started {
		requireGone(t, pid, "a run")
	}
	// The host's end ends a call under way.
	over := make(chan error, 1)
	go func() {
		_, err := as(t.Context(), s, "a", "hang", `{}`)
		over <- err
	}()
	require.Eventually(t, func() bool { return len(pids(t, file)) == 4 }, time.Minute, 5*time.Millisecond)
	s.Close()
	require.Equal(t, toolerr.ServerOffline, toolerr.CodeOf(<-over))
}

// Messages other than calls go the same way.
func TestMessagesOfASessionGoToItsRun(t *testing.T) {
	t.Parallel()
	s := at(t, "", func(c *upstream.Config) { c.Serve, c.Scope = faultserver.Serve, upstream.PerSession })
	_, err := s.Forward(t.Context(), &call.UpstreamRequest{Method: "ping", Caller: call.Caller{ID: "a"}})
	require.NoError(t, err)
	require.Equal(t, 1, s.Status().Callers)
}
