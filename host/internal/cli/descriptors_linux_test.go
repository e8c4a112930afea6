package cli_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// With few descriptors, connections that say nothing, or too little, leave
// enough of them: the door answers, and servers are started and reached.
func TestFewDescriptors(t *testing.T) {
	t.Parallel()
	limit, n := either(128, 256), either(90, 400)
	dir := t.TempDir()
	config := filepath.Join(dir, "c.yaml")
	require.NoError(t, writeFile(config, "servers: {a: {command: fixture}, b: {command: fixture}, c: {command: fixture}}"))
	host := exec.Command("sh", "-c", "ulimit -n "+strconv.Itoa(limit)+`; exec mcp-host "$@"`, "sh",
		"serve", "--listen", "127.0.0.1:0", "--no-token", "--config", config, "--state", dir)
	out, err := host.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, host.Start())
	var idle []net.Conn
	defer func() {
		for _, c := range idle {
			c.Close()
		}
		host.Process.Kill() //nolint:errcheck // how it ends is all the same
		host.Wait()         //nolint:errcheck
	}()
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	url := strings.TrimSpace(strings.TrimPrefix(line, "url:"))
	address := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/mcp")

	// call makes a call over a connection of its own.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	call := func(server string) error {
		response, err := client.Post(url, "application/json", strings.NewReader(
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+server+`__echo","arguments":{"text":"hello"}}}`))
		if err != nil {
			return err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err == nil && !strings.Contains(string(text), "hello") {
			err = fmt.Errorf("status %d: %s", response.StatusCode, text)
		}
		return err
	}
	require.NoError(t, call("a"))
	base, _ := held(t, host.Process.Pid)
	for i := range n {
		c, err := net.Dial("tcp", address)
		require.NoError(t, err, "connection %d", i)
		idle = append(idle, c)
		if i%2 == 0 {
			fmt.Fprintf(c, "POST /mcp HTTP/1.1\r\nHost: %s\r\nX-Slow: ", address) // and no more
		}
	}
	for _, server := range []string{"a", "b", "c"} {
		require.NoError(t, call(server))
	}
	during, _ := held(t, host.Process.Pid)
	t.Logf("%d descriptors, %d with %d idle connections, of %d", base, during, n, limit)
	require.Less(t, during, limit*2/3)
	for _, c := range idle {
		c.Close()
	}
	require.Eventually(t, func() bool {
		now, _ := held(t, host.Process.Pid)
		return now <= base+2*8+4 // two servers more
	}, time.Minute, 50*time.Millisecond, "%d descriptors at first", base)
	require.NoError(t, call("a"))
}
