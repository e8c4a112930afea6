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

// Connections that say nothing lock nobody out and are closed, the oldest
// first, when there are too many. IDLE_CONNECTIONS=10000 makes it that many;
// it needs twice as many descriptors.
func TestIdleConnectionsAreBounded(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("IDLE_CONNECTIONS"))
	if err != nil {
		n = 50
	}
	before := runtime.NumGoroutine()
	d := serve(t, open(t, fixtures()))
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
		if i%2 == 0 { // half of them have made a request
			fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHost: %s\r\n\r\n", d.host)
			line, err := bufio.NewReader(c).ReadString('\n')
			require.NoError(t, err, "connection %d", i)
			require.True(t, strings.HasPrefix(line, "HTTP/1.1 200"), line)
		}
		if i%100 == 0 {
			status, _, _ := d.post(t, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
			require.Equal(t, 200, status)
		}
	}
	if n <= 2048 {
		return
	}
	require.Less(t, runtime.NumGoroutine()-before, 3*2048+100)
	closed := 0
	for _, c := range idle {
		require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Millisecond)))
		_, err := io.Copy(io.Discard, c)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			closed++
		}
	}
	t.Logf("%d of %d were closed", closed, n)
	require.GreaterOrEqual(t, closed, n-2048)
}
