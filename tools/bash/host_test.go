//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// hostBeside puts a host and the tool into one directory, as a build does.
func hostBeside(t *testing.T, p *place) string {
	t.Helper()
	for name, pkg := range map[string]string{"mcp-host": "./host", "mcp-bash": "./tools/bash"} {
		require.NoError(t, os.MkdirAll(filepath.Join(p.dir, "bin"), 0o755))
		mcpkittest.CopyProgram(t, mcpkittest.Build(t, pkg), filepath.Join(p.dir, "bin", name))
	}
	return filepath.Join(p.dir, "bin", "mcp-host")
}

// httpClient is a client of a host over streamable HTTP, with its own
// connections.
type httpClient struct {
	t            *testing.T
	url, session string
	transport    *http.Transport
}

func (c *httpClient) post(message string) []byte {
	c.t.Helper()
	request, err := http.NewRequest(http.MethodPost, c.url, strings.NewReader(message))
	require.NoError(c.t, err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	if c.session != "" {
		request.Header.Set("Mcp-Session-Id", c.session)
	}
	response, err := (&http.Client{Transport: c.transport, Timeout: mcpkittest.MaxWait}).Do(request)
	require.NoError(c.t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(c.t, err)
	if id := response.Header.Get("Mcp-Session-Id"); id != "" {
		c.session = id
	}
	if at := bytes.Index(body, []byte("data: ")); at >= 0 {
		body = body[at+len("data: "):]
		body, _, _ = bytes.Cut(body, []byte("\n"))
	}
	return body
}

func dialHost(t *testing.T, url string) *httpClient {
	t.Helper()
	c := &httpClient{t: t, url: url, transport: &http.Transport{}}
	c.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

func (c *httpClient) call(tool string, args map[string]any) mcpkittest.Result {
	c.t.Helper()
	body := c.post(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + toJSON(c.t, mcpkittest.CallParams(tool, args)) + `}`)
	var answer struct{ Result json.RawMessage }
	require.NoError(c.t, json.Unmarshal(body, &answer), "%s", body)
	result, err := mcpkittest.ParseResult(answer.Result)
	require.NoError(c.t, err, "%s", body)
	return result
}

// Under the host, a job outlives the connection that started it and ends with
// the host; both tools keep their plain names.
func TestJobsOutliveAConnection(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	host := hostBeside(t, p)
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command(host, append(args, "--root", p.root, "--state", p.kept)...)
		cmd.Dir, cmd.Env = p.root, p.env
		return cmd
	}
	names, err := command("tools").Output()
	require.NoError(t, err)
	require.Regexp(t, `(?m)^bash +\S`, string(names))
	require.Regexp(t, `(?m)^bash_job +\S`, string(names))
	out, err := command("call", "bash", `{"command":"pwd"}`).Output()
	require.NoError(t, err)
	require.Contains(t, string(out), p.root+"\nexit 0")

	serve := command("serve", "--listen", "127.0.0.1:0", "--no-token")
	said, err := serve.StderrPipe()
	require.NoError(t, err)
	stdout, err := serve.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, serve.Start())
	t.Cleanup(func() {
		serve.Process.Kill()
		serve.Wait()
	})
	url := make(chan string, 2)
	for _, stream := range []io.Reader{said, stdout} {
		go func() { // ends with the host
			for lines := bufio.NewScanner(stream); lines.Scan(); {
				if found := regexp.MustCompile(`http://127\.0\.0\.1:\d+/mcp`).FindString(lines.Text()); found != "" {
					url <- found
				}
			}
		}()
	}
	var at string
	select {
	case at = <-url:
	case <-time.After(mcpkittest.MaxWait):
		require.Fail(t, "the host does not say where it listens")
	}

	mark := newMark(900)
	first := dialHost(t, at)
	r := first.call("bash", arg("command", "echo begun; sleep 0.3; echo later; sleep "+mark, "run_in_background", true))
	require.False(t, r.IsError, r.Text)
	id := text(t, r, "job_id")
	first.transport.CloseIdleConnections()

	second := dialHost(t, at)
	require.NotEqual(t, first.session, second.session)
	r = second.call("bash_job", arg("action", "poll", "job_id", id, "since", 0, "wait_for", "later", "wait_ms", 30_000))
	require.Contains(t, r.Text, "begun\nlater\n")
	require.Equal(t, true, r.Meta["running"])
	require.NotEmpty(t, processes(t, mark))
	require.NoError(t, serve.Process.Signal(syscall.SIGTERM))
	within(t, "the job ends with the host", func() bool { return len(processes(t, mark)) == 0 })
}
