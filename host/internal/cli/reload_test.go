package cli_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// transcript is what a program has written so far.
type transcript struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *transcript) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *transcript) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// waitFor waits until the program has written that.
func (l *transcript) waitFor(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(l.String(), text) }, time.Minute, 5*time.Millisecond, text)
}

// edit replaces a file, as editors do.
func edit(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(name+"~", []byte(text), 0o600))
	require.NoError(t, os.Rename(name+"~", name))
}

// process is mcp-host serve in a process of its own.
type process struct {
	served
	log *transcript
}

func serveProcess(t *testing.T, args ...string) process {
	t.Helper()
	p := process{log: &transcript{}}
	cmd := exec.Command("mcp-host", append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Stderr = p.log
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt) //nolint:errcheck // it may have ended
		io.Copy(io.Discard, out)         //nolint:errcheck // until it has
		cmd.Wait()                       //nolint:errcheck // likewise
		if t.Failed() {
			t.Log(p.log)
		}
	})
	lines := bufio.NewReader(out)
	for _, value := range []*string{&p.url, &p.token} {
		line, err := lines.ReadString('\n')
		require.NoError(t, err, p.log.String())
		_, *value, _ = strings.Cut(strings.TrimSpace(line), ": ")
		*value = strings.TrimSpace(*value)
	}
	return p
}

func (p process) call(t *testing.T, tool, arguments string) string {
	t.Helper()
	_, body := p.post(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, arguments))
	return body
}

// eventually waits until a call answers that.
func (p process) eventually(t *testing.T, tool, arguments, want string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(p.call(t, tool, arguments), want) }, time.Minute, 5*time.Millisecond, want)
}

// While calls are under way without pause the file is edited in every way
// there is. No call is lost, and a server that nothing is said of runs on.
func TestTheConfigurationChangesWhileCallsAreUnderWay(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	dir := t.TempDir()
	file, pids := filepath.Join(dir, "toolroom.yaml"), filepath.Join(dir, "pids")
	still := "  still: {command: fixture, args: [-era, legacy, -pid, " + pids + "]}\n"
	fix := "  fix: {command: fixture, args: [-era, legacy], env: {K: '1'}}\n"
	edit(t, file, "servers:\n"+still+fix)
	p := serveProcess(t, "--config", file, "--state", dir)
	require.Contains(t, p.call(t, "fix__env", `{"text":"K"}`), `"text":"1"`)

	var calls atomic.Int64
	stop := make(chan struct{})
	var load sync.WaitGroup
	defer load.Wait()
	defer sync.OnceFunc(func() { close(stop) })()
	for i, tool := range []string{"fix__echo", "still__echo", "fix__echo", "still__echo"} {
		load.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				arguments := fmt.Sprintf(`{"text":"%d-%d"}`, i, n)
				if body := p.call(t, tool, arguments); !strings.Contains(body, fmt.Sprintf(`%d-%d`, i, n)) {
					t.Errorf("%s: a call was lost: %s", tool, body)
				}
				calls.Add(1)
			}
		})
	}
	slept := make(chan string, 1)
	go func() { slept <- p.call(t, "fix__sleep", `{"n":1500}`) }()

	// A server is started anew: the old one's calls end there.
	fix = strings.Replace(fix, "'1'", "'2'", 1)
	edit(t, file, "servers:\n"+still+fix)
	p.eventually(t, "fix__env", `{"text":"K"}`, `"text":"2"`)
	p.log.waitFor(t, "configuration changed: restarted: fix")

	// What is wrong changes nothing, and says why. So does a server that does
	// not start.
	edit(t, file, "servers:\n"+still+"  fix: {comand: fixture}\n")
	p.log.waitFor(t, "the previous configuration stays in force: "+file+":3: server fix: comand: unknown; did you mean command?")
	says := func(command string) string {
		out, _ := exec.Command("mcp-host", command, "--config", file, "--state", dir).CombinedOutput() //nolint:errcheck // doctor fails
		return string(out)
	}
	for _, command := range []string{"servers", "doctor"} {
		require.Contains(t, says(command), "it keeps its previous configuration: "+file+":3: server fix: comand: unknown")
	}
	edit(t, file, "servers:\n"+still+"  fix: {command: fixture, args: [-start, crash]}\n")
	p.log.waitFor(t, "server fix keeps running: the new one does not start: ")
	require.Contains(t, p.call(t, "fix__env", `{"text":"K"}`), `"text":"2"`)
	require.Eventually(t, func() bool {
		return strings.Contains(says("servers"), "server fix does not start with its new configuration")
	}, time.Minute, 5*time.Millisecond)

	// Stages, filters and profiles need no server to be started anew.
	edit(t, file, "policy: {block: [fix__fail]}\nprofiles: {one: {allow: ['*__echo'], servers: [still]}}\nservers:\n"+still+strings.Replace(fix, "env:", "tools: {block: [noise], rename: {roots: where}}, env:", 1))
	p.eventually(t, "fix__fail", `{}`, "POLICY_DENIED")
	require.Eventually(t, func() bool {
		_, body := p.post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		return strings.Contains(body, `"where"`) && !strings.Contains(body, "fix__noise") && strings.Contains(body, "still__noise")
	}, time.Minute, 5*time.Millisecond)
	one := served{url: p.url + "/one", token: p.token}
	status, body := one.post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, 1, strings.Count(body, `"inputSchema"`), body)

	require.NotContains(t, says("servers"), "it keeps the configuration")

	// Servers come and go.
	edit(t, file, "servers:\n"+still+fix+"  third: {command: fixture}\n")
	p.eventually(t, "third__echo", `{"a":1}`, `{\"a\":1}`)
	p.eventually(t, "fix__fail", `{}`, "it failed")
	status, _ = one.post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	require.Equal(t, http.StatusNotFound, status)
	edit(t, file, "servers:\n"+still+fix)
	p.eventually(t, "third__echo", `{"a":1}`, `unknown tool`)

	require.Contains(t, <-slept, "slept")
	before := calls.Load()
	require.Eventually(t, func() bool { return calls.Load() > before+8 }, time.Minute, time.Millisecond)
	text, err := os.ReadFile(pids)
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(text), "\n"), "it was never started anew")
}

// A client is told that its list has changed when it has.
func TestOnlyAChangedListIsToldOf(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	dir := t.TempDir()
	file := filepath.Join(dir, "toolroom.yaml")
	server := "servers: {fix: {command: fixture, args: [-era, legacy]%s}}\n"
	edit(t, file, fmt.Sprintf(server, ""))
	c := stdio(t, "--config", file, "--state", dir)
	id := 1
	ask := func(method, params string) string {
		id++
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params))
		return c.read()
	}
	ask("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	require.Contains(t, ask("tools/list", "{}"), "fix__noise")

	edit(t, file, fmt.Sprintf(server, ", timeout: 20s, env: {A: b}")+"policy: {block: ['*__fail']}\n")
	require.Eventually(t, func() bool { return strings.Contains(ask("tools/call", `{"name":"fix__fail"}`), "POLICY_DENIED") }, time.Minute, 5*time.Millisecond)
	require.Contains(t, ask("tools/call", `{"name":"fix__env","arguments":{"text":"A"}}`), `"text":"b"`)
	edit(t, file, fmt.Sprintf(server, ", tools: {block: [noise]}"))
	require.JSONEq(t, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`, c.read())
	require.NotContains(t, ask("tools/list", "{}"), "fix__noise")
}
