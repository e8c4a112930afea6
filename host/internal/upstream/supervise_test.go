package upstream_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/internal/testkit/faultserver"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func TestAServerIsOfflineAfterFiveTriesAndComesBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mode, pidFile := filepath.Join(dir, "mode"), filepath.Join(dir, "pids")
	require.NoError(t, os.WriteFile(mode, []byte("crash"), 0o600))
	changed := make(chan struct{}, 100)
	s := start(t, func(c *upstream.Config) { c.RetryEvery, c.Era = 500*time.Millisecond, upstream.Legacy },
		"-start", "@"+mode, "-pid", pidFile, "-era", "legacy")
	s.OnChange(func() { changed <- struct{}{} })
	reports := make(chan string, 100)
	s.OnFailure(func(reason string) { reports <- reason })
	_, err := s.Tools(t.Context())
	require.Equal(t, toolerr.ServerOffline, toolerr.CodeOf(err))
	require.False(t, s.IsGivenUp(), "it is tried again")
	<-changed // nobody has to call it to find out
	require.True(t, s.IsGivenUp())
	require.GreaterOrEqual(t, len(pids(t, pidFile)), 5)
	st := s.Status()
	require.Equal(t, upstream.Offline, st.State)
	require.Equal(t, upstream.StageStart, st.Last.Stage)
	require.Contains(t, st.Last.Message, "cannot find my configuration")
	require.False(t, st.Last.Time.IsZero())
	require.Contains(t, <-reports, "cannot find my configuration")
	require.Empty(t, reports, "the failures after the first are not reported")

	require.NoError(t, os.Remove(mode))
	require.Eventually(t, func() bool { return s.Status().State == upstream.Unstable }, time.Minute, 5*time.Millisecond, "it comes back by itself")
	<-changed
	require.False(t, s.IsGivenUp())
	mustDo(t, s, "echo", `{}`)
	require.Empty(t, reports)
	_, err = do(t.Context(), s, "crash", `{}`)
	require.Error(t, err)
	require.NotEmpty(t, <-reports, "a server that has worked and ends is reported again")
}

func TestReconnectMakesBeforeItBreaks(t *testing.T) {
	t.Parallel()
	mode := filepath.Join(t.TempDir(), "mode")
	s := start(t, func(c *upstream.Config) { c.StartTimeout = 2 * time.Second }, "-start", "@"+mode)
	mustDo(t, s, "echo", `{}`)
	before := s.Status().PID
	slow := make(chan error, 1)
	go func() {
		_, err := do(t.Context(), s, "sleep", `{"n":2500}`)
		slow <- err
	}()
	require.Eventually(t, func() bool { return upstream.Pending(s) == 1 }, time.Minute, time.Millisecond, "it is under way")
	require.NoError(t, s.Reconnect(t.Context()))
	mustDo(t, s, "echo", `{}`)
	require.NotEqual(t, before, s.Status().PID)
	require.NoError(t, <-slow, "the call under way is still answered")
	requireGone(t, before, "what was replaced")

	// A new run that does not come up leaves the old one in place.
	require.NoError(t, os.WriteFile(mode, []byte("crash"), 0o600))
	before = s.Status().PID
	require.Error(t, s.Reconnect(t.Context()))
	require.Equal(t, before, s.Status().PID)
	mustDo(t, s, "echo", `{}`)
	require.Equal(t, upstream.Unstable, s.Status().State)
}

func TestAnIdleServerThatFallsSilentIsReplaced(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *upstream.Config) { c.HealthEvery, c.QuietTime = 100*time.Millisecond, 1500*time.Millisecond })
	mustDo(t, s, "echo", `{}`)
	before := s.Status().PID
	time.Sleep(400 * time.Millisecond) // it has answered one
	mustDo(t, s, "stop_reading", `{}`)
	require.Eventually(t, func() bool { now := s.Status().PID; return now != 0 && now != before }, time.Minute, 5*time.Millisecond)
	mustDo(t, s, "echo", `{}`)
	requireGone(t, before, "what was silent")
	// On a starved machine the silence after a call may be noticed first.
	require.Contains(t, []string{upstream.StageHealth, upstream.StageRun}, s.Status().Last.Stage)
}

// listenAgain listens at the address of a listener that was closed. A process that
// another test is just starting has that listener, too, until it runs its program.
func listenAgain(t *testing.T, address string) (l net.Listener) {
	t.Helper()
	require.Eventually(t, func() bool {
		var err error
		l, err = net.Listen("tcp", address)
		return err == nil
	}, time.Minute, time.Millisecond)
	return l
}

func TestAServerAtAnAddressGoesAndComesBack(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		t.Run(era, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			address := listener.Addr().String()
			web := &http.Server{Handler: faultserver.Handler("-era", era)}
			go web.Serve(listener) //nolint:errcheck // it is closed
			s := at(t, "http://"+address+"/mcp", nil)
			mustDo(t, s, "echo", `{}`)
			waiting := make(chan error, 1)
			go func() {
				_, err := do(t.Context(), s, "hang", `{}`)
				waiting <- err
			}()
			time.Sleep(50 * time.Millisecond)
			require.NoError(t, web.Close())
			require.Equal(t, toolerr.ServerOffline, toolerr.CodeOf(<-waiting))
			require.Eventually(t, func() bool { return s.Status().State == upstream.Offline }, time.Minute, time.Millisecond, "it is noticed without a call")

			listener = listenAgain(t, address)
			web = &http.Server{Handler: faultserver.Handler("-era", era)}
			go web.Serve(listener) //nolint:errcheck // it is closed
			defer web.Close()      //nolint:errcheck // the end of the test
			require.Eventually(t, func() bool { return s.Status().State == upstream.Unstable }, time.Minute, 5*time.Millisecond)
			mustDo(t, s, "echo", `{}`)
		})
	}
}

func TestADisabledServerIsNotStarted(t *testing.T) {
	t.Parallel()
	s, err := upstream.New(upstream.Config{Name: "off", Disabled: true}, nil)
	require.NoError(t, err)
	defer s.Close()
	_, err = s.Tools(t.Context())
	require.ErrorContains(t, err, "disabled in the configuration")
	require.ErrorContains(t, s.Reconnect(t.Context()), "disabled")
	require.Equal(t, upstream.Disabled, s.Status().State)
	require.True(t, s.IsGivenUp())
}

// answering is a legacy server in this program, of one answer a method.
func answering(answer func(method string) string) func(context.Context, io.Reader, io.Writer) error {
	return func(_ context.Context, in io.Reader, out io.Writer) error {
		lines := bufio.NewScanner(in)
		for lines.Scan() {
			m, err := jsonrpc.Split(lines.Bytes())
			if err != nil || m.Kind != jsonrpc.Request {
				continue
			}
			result := answer(m.Method)
			if m.Method == "initialize" {
				result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x"}}`
			}
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result) //nolint:errcheck // the host is gone
		}
		return lines.Err()
	}
}

func TestPagesThatGoRoundInCircles(t *testing.T) {
	t.Parallel()
	var page atomic.Int32
	s := at(t, "", func(c *upstream.Config) {
		c.Era = upstream.Legacy
		c.Serve = answering(func(method string) string {
			n := page.Add(1)
			return fmt.Sprintf(`{"tools":[{"name":"t%d"}],"nextCursor":"%c"}`, n, "ab"[n%2])
		})
	})
	tools, err := s.Tools(t.Context())
	require.NoError(t, err)
	require.LessOrEqual(t, len(tools), 4)

	s = at(t, "", func(c *upstream.Config) {
		c.Era = upstream.Legacy
		c.Serve = answering(func(method string) string {
			return fmt.Sprintf(`{"tools":[],"nextCursor":"%d"}`, page.Add(1))
		})
	})
	_, err = s.Tools(t.Context())
	require.ErrorContains(t, err, "more than 1000 pages")
}

func TestAServerInThisProgramThatPanics(t *testing.T) {
	t.Parallel()
	s := at(t, "", func(c *upstream.Config) {
		c.Serve = func(context.Context, io.Reader, io.Writer) error { panic("at the disco") }
	})
	_, err := s.Tools(t.Context())
	require.Equal(t, toolerr.ServerOffline, toolerr.CodeOf(err))
	require.ErrorContains(t, err, "at the disco")
}

// The modern version repeats arguments in headers where a tool asks for it,
// and servers refuse calls without.
func TestAnnotatedArgumentsAreRepeatedInHeaders(t *testing.T) {
	t.Parallel()
	other := server.NewMCPServer("other", "2", server.WithToolCapabilities(true))
	other.AddTool(mcp.NewToolWithRawSchema("where", "", []byte(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`)),
		func(_ context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText(req.Header.Get("Mcp-Param-Region")), nil
		})
	s := at(t, serveHTTP(t, server.NewStreamableHTTPServer(other)), func(c *upstream.Config) { c.Era = upstream.Modern })
	require.Equal(t, "eu", textOf(t, mustDo(t, s, "where", `{"region":"eu"}`)))
	require.True(t, strings.HasPrefix(textOf(t, mustDo(t, s, "where", `{"region":"über"}`)), "=?base64?"))
}
