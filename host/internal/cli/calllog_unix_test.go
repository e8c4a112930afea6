//go:build unix

package cli_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// logged runs mcp-host serve, makes two calls and ends it with a signal. It
// returns what it wrote to standard error.
func logged(t *testing.T, end syscall.Signal, args ...string) string {
	t.Helper()
	var errs strings.Builder
	cmd := exec.Command("mcp-host", append([]string{"serve", "--listen", "127.0.0.1:0",
		"--config", writeConfig(t, map[string][]string{"fix": {"-era", "legacy"}}), "--state", filepath.Join(t.TempDir(), "state")}, args...)...)
	cmd.Env = append(os.Environ(), "TOOLROOM_TOKEN=")
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill() }) //nolint:errcheck // it may have ended
	lines := bufio.NewReader(out)
	read := func() string {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		_, value, _ := strings.Cut(line, ":")
		return strings.TrimSpace(value)
	}
	s := served{url: read(), token: read()}
	_, body := s.post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fix__echo","arguments":{"a":"SEKRIT"}}}`)
	require.Contains(t, body, "SEKRIT")
	_, body = s.post(t, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"fix__fail","arguments":{}}}`)
	require.Contains(t, body, `"isError":true`)
	require.NoError(t, cmd.Process.Signal(end))
	_, err = io.Copy(io.Discard, lines)
	require.NoError(t, err)
	require.NoError(t, cmd.Wait())
	require.NotContains(t, errs.String(), "SEKRIT")
	return errs.String()
}

func TestServeLogsALineACall(t *testing.T) {
	text := logged(t, syscall.SIGTERM)
	require.Regexp(t, `(?m)^time=\S+ level=INFO msg=call caller=http\S* tool=fix__echo server=fix outcome=ok ms=[0-9.e-]+ bytes=[1-9][0-9]*$`, text)
	require.Regexp(t, `(?m)^time=\S+ level=WARN msg=call caller=http\S* tool=fix__fail server=fix outcome=error ms=[0-9.e-]+ bytes=[1-9][0-9]*$`, text)
	require.Regexp(t, `(?m)^time=\S+ level=INFO msg=stop reason=terminated$`, text)

	text = logged(t, syscall.SIGINT, "--quiet")
	require.NotContains(t, text, "msg=")
	require.Contains(t, text, "the token is from")

	text = logged(t, syscall.SIGINT, "--log-format", "json")
	var said []string
	for line := range strings.Lines(text) {
		var m struct {
			Time, Level, Msg, Caller, Tool, Server, Outcome, Reason string
			Ms                                                      *float64
			Bytes                                                   *int
		}
		require.NoError(t, json.Unmarshal([]byte(line), &m), "%s", line)
		require.NotEmpty(t, m.Time)
		switch m.Msg {
		case "call":
			require.NotNil(t, m.Ms)
			require.NotNil(t, m.Bytes)
			said = append(said, m.Tool+" "+m.Outcome)
		case "stop":
			said = append(said, m.Reason)
		}
	}
	require.Equal(t, []string{"fix__echo ok", "fix__fail error", "interrupt"}, said)
}

// Whoever does not read the log holds up no call.
func TestALogThatNobodyReadsIsInNobodysWay(t *testing.T) {
	errs, in, err := os.Pipe()
	require.NoError(t, err)
	defer errs.Close() //nolint:errcheck // it is not read
	cmd := exec.Command("mcp-host", "serve", "--listen", "127.0.0.1:0",
		"--config", writeConfig(t, map[string][]string{"fix": {"-era", "legacy"}}), "--state", filepath.Join(t.TempDir(), "state"))
	cmd.Env = append(os.Environ(), "TOOLROOM_TOKEN=")
	cmd.Stderr = in
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	in.Close() //nolint:errcheck // it is the program's
	t.Cleanup(func() {
		cmd.Process.Kill() //nolint:errcheck // it may have ended
		cmd.Wait()         //nolint:errcheck // likewise
	})
	lines := bufio.NewReader(out)
	read := func() string {
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		_, value, _ := strings.Cut(line, ":")
		return strings.TrimSpace(value)
	}
	s := served{url: read(), token: read()}
	for range 2000 { // far more than a pipe and the buffer hold
		status, _ := s.post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fix__echo","arguments":{"a":1}}}`)
		require.Equal(t, 200, status)
	}
}
