package gateway_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Connections that say nothing, or begin to and stop, lock nobody out; they are
// closed, the oldest first, when there are too many, and leave nothing behind.
// IDLE_CONNECTIONS=10000 makes it that many; it needs twice as many descriptors.
func TestIdleConnectionsAreBounded(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("IDLE_CONNECTIONS"))
	if err != nil {
		n = 50
	}
	d := serve(t, open(t, fixtures()))
	d.post(t, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	before := runtime.NumGoroutine()
	var idle []net.Conn
	defer func() {
		for _, c := range idle {
			c.Close()
		}
	}()
	for i := range n {
		c, err := net.Dial("tcp", d.host)
		require.NoError(t, err, "connection %d", i)
		idle = append(idle, c)
		switch i % 3 {
		case 0: // has made a request
			fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n", d.host)
			line, err := bufio.NewReader(c).ReadString('\n')
			require.NoError(t, err, "connection %d", i)
			require.True(t, strings.HasPrefix(line, "HTTP/1.1 200"), line)
		case 1: // has begun one
			fmt.Fprintf(c, "POST /mcp HTTP/1.1\r\nHost: %s\r\nX-Slow: ", d.host)
		}
		if i%100 == 0 {
			status, _, _ := d.post(t, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
			require.Equal(t, 200, status)
		}
	}
	if n > 2048 {
		countClosed(t, idle, before)
	}
	for _, c := range idle {
		c.Close()
	}
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+5 }, time.Minute, 10*time.Millisecond,
		"%d goroutines before, one or two a connection", before)
}

// countClosed checks that so many connections are closed as the bound has it.
func countClosed(t *testing.T, idle []net.Conn, before int) {
	t.Helper()
	require.Less(t, runtime.NumGoroutine()-before, 3*2048+100)
	closed := 0
	for _, c := range idle {
		require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Millisecond)))
		if _, err := io.Copy(io.Discard, c); !errors.Is(err, os.ErrDeadlineExceeded) {
			closed++
		}
	}
	t.Logf("%d of %d were closed", closed, len(idle))
	require.GreaterOrEqual(t, closed, len(idle)-2048)
}
