package cli_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// isolatedSession is an MCP session with a host, over stdio or HTTP. It answers each question with
// its name, and records its notifications and questions.
type isolatedSession struct {
	name string
	send func(line string)
	log  *transcript // standard error of the host

	mu      sync.Mutex
	last    int
	answers map[int]chan string
	heard   []string
}

// handle handles a line of the host.
func (s *isolatedSession) handle(line string) {
	var m struct {
		ID     json.RawMessage
		Method string
	}
	if json.Unmarshal([]byte(line), &m) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var id int
	switch {
	case m.Method == "": // an answer
		if json.Unmarshal(m.ID, &id) == nil && s.answers[id] != nil {
			s.answers[id] <- line
			delete(s.answers, id)
		}
		return
	case m.ID != nil:
		answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"name":%q}}}`, m.ID, s.name)
		go s.send(answer)
	}
	s.heard = append(s.heard, line)
}

// all returns what the session was told and asked.
func (s *isolatedSession) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.heard, "\n")
}

// begin sends a request and returns the channel for the answer.
func (s *isolatedSession) begin(method, params string) <-chan string {
	answer := make(chan string, 1)
	s.mu.Lock()
	s.last++
	id := s.last
	s.answers[id] = answer
	s.mu.Unlock()
	s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, method, params))
	return answer
}

func (s *isolatedSession) ask(t *testing.T, method, params string) string {
	t.Helper()
	select {
	case line := <-s.begin(method, params):
		return line
	case <-time.After(2 * time.Minute):
		t.Fatalf("%s: no answer to %s %s: %s", s.name, method, params, s.log.String())
	}
	return ""
}

// params returns the params of a call of a tool of the talker.
func (s *isolatedSession) params(tool, text string, n int) string {
	return fmt.Sprintf(`{"name":%q,"arguments":{"text":%q,"n":%d},"_meta":{"progressToken":%q}}`, tool, text, n, s.name)
}

func (s *isolatedSession) call(t *testing.T, tool, text string, n int) string {
	t.Helper()
	return s.ask(t, "tools/call", s.params(tool, text, n))
}

// open opens the session.
func (s *isolatedSession) open(t *testing.T) {
	t.Helper()
	require.Contains(t, s.ask(t, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{"form":{},"url":{}}},"clientInfo":{"name":"test","version":"1"}}`), `"result"`)
	s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// stdioSession starts a host and opens a session.
func stdioSession(t *testing.T, name string, args ...string) *isolatedSession {
	t.Helper()
	host := exec.Command("mcp-host", append([]string{"stdio"}, args...)...)
	s := &isolatedSession{name: name, log: &transcript{}, answers: map[int]chan string{}}
	host.Stderr = s.log
	in, err := host.StdinPipe()
	require.NoError(t, err)
	out, err := host.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, host.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.handleLines(out)
	}()
	t.Cleanup(func() {
		in.Close() //nolint:errcheck // the end tells
		<-ended
		host.Wait() //nolint:errcheck // the test has seen what it needed
	})
	var writing sync.Mutex
	s.send = func(line string) {
		writing.Lock()
		defer writing.Unlock()
		fmt.Fprintln(in, line) //nolint:errcheck // the answer tells
	}
	s.open(t)
	return s
}

// handleLines handles lines of JSON, and of an event stream.
func (s *isolatedSession) handleLines(from io.Reader) {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadString('\n')
		line = strings.TrimSpace(strings.TrimPrefix(line, "data:"))
		if strings.HasPrefix(line, "{") {
			s.handle(line)
		}
		if err != nil {
			return
		}
	}
}

// httpSession opens a session at a host that serves HTTP.
func httpSession(t *testing.T, name, url string, log *transcript) *isolatedSession {
	t.Helper()
	s := &isolatedSession{name: name, log: log, answers: map[int]chan string{}}
	var id string // of the session, set by the answer to initialize
	var opened sync.Once
	request := func(method, body string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		if err != nil {
			return nil, err
		}
		r.Header.Set("Authorization", "Bearer token-of-"+name)
		r.Header.Set("Accept", "application/json, text/event-stream")
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		if id != "" {
			r.Header.Set("Mcp-Session-Id", id)
			r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
		}
		return http.DefaultClient.Do(r)
	}
	s.send = func(line string) {
		resp, err := request(http.MethodPost, line)
		if err != nil {
			return // the test has ended
		}
		opened.Do(func() { id = resp.Header.Get("Mcp-Session-Id") })
		go func() {
			defer resp.Body.Close()
			// The host may have withdrawn the question that line answers.
			if resp.StatusCode >= http.StatusBadRequest && strings.Contains(line, `"method"`) {
				text, _ := io.ReadAll(resp.Body) //nolint:errcheck // the status tells
				t.Errorf("%s: %s %s: %s", name, resp.Status, text, line)
			}
			s.handleLines(resp.Body)
		}()
	}
	s.open(t)
	stream, err := request(http.MethodGet, "")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, stream.StatusCode)
	go func() {
		defer stream.Body.Close()
		s.handleLines(stream.Body)
	}()
	return s
}

// issuer is an identity provider that knows the token token-of-NAME of each user, who is
// in the group NAME.
func issuer(t *testing.T) string {
	t.Helper()
	var url string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reply := func(v any) { json.NewEncoder(w).Encode(v) } //nolint:errcheck // the host is gone
		if strings.HasPrefix(r.URL.Path, "/.well-known/") {
			reply(map[string]any{"issuer": url, "jwks_uri": url + "/keys", "introspection_endpoint": url + "/introspect"})
			return
		}
		name, ok := strings.CutPrefix(r.FormValue("token"), "token-of-")
		reply(map[string]any{"active": ok, "iss": url, "sub": name, "groups": []string{name}, "aud": "toolroom", "exp": time.Now().Add(time.Hour).Unix()})
	}))
	t.Cleanup(s.Close)
	url = s.URL
	return url
}

// isolated are sessions that share one process of the server talk: alpha and beta have a host
// each, with other roots and another configuration; gamma and delta are users of a third
// host, with other profiles.
type isolated struct {
	all   []*isolatedSession
	state string
}

// isolate opens the sessions. Each has a server own with a token, and its own filter of tools.
// The configuration of all hosts ends with settings.
func isolate(t *testing.T, settings string) *isolated {
	t.Helper()
	dir := t.TempDir()
	w := &isolated{state: filepath.Join(dir, "state")}
	t.Cleanup(func() { stopSharing(t, "mcp-host", w.state) })
	view := mcpkittest.Build(t, "./tools/view")
	prepare := func(host, more string, blocked ...string) []string {
		root := filepath.Join(dir, "root of "+host)
		require.NoError(t, os.Mkdir(root, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(root, "a.txt"), []byte("of "+host), 0o600))
		file := filepath.Join(dir, host+".yaml")
		block, err := json.Marshal(blocked)
		require.NoError(t, err)
		text := fmt.Sprintf("share_servers: true\nservers:\n"+
			"  talk: {command: talker, cwd: %[1]q, env: {TALK_SCHEME: test}, tools: {block: %[5]s}}\n"+
			"  own: {command: talker, cwd: %[1]q, env: {SESSION_TOKEN: token of %[2]s}}\n"+
			"  view: {command: %[3]q, args: [--root, %[4]q, --state, %[6]q]}\n%[7]s%[8]s", dir, host, view, root, block, w.state, more, settings)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return []string{"--config", file, "--state", w.state, "--root", root}
	}
	alpha := stdioSession(t, "alpha", prepare("alpha", "", "for_beta", "for_gamma", "for_delta")...)
	beta := stdioSession(t, "beta", prepare("beta", "", "for_alpha", "for_gamma", "for_delta")...)
	address := freeAddress(t)
	auth := fmt.Sprintf("auth: {issuer: %q, url: \"http://%s\", audience: [toolroom], client_id: host, client_secret: the-secret-of-the-host, profiles: {gamma: gammas, delta: deltas}}\n"+
		"profiles: {gammas: {block: [\"*for_delta\"]}, deltas: {block: [\"*for_gamma\", talk__env]}}\n", issuer(t), address)
	log := serveProgram(t, append(prepare("serve", auth, "for_alpha", "for_beta"), "--listen", address)...)
	url := "http://" + address + "/mcp"
	gamma, delta := httpSession(t, "gamma", url, log), httpSession(t, "delta", url, log)
	w.all = []*isolatedSession{alpha, beta, gamma, delta}
	for _, s := range w.all {
		require.Contains(t, s.call(t, "talk__echo", "from "+s.name, 0), "from "+s.name)
	}
	for _, one := range sharedStatus(t, w.state).Servers {
		if one.Name == "talk" {
			require.Equal(t, 3, one.Hosts, "they share a process")
			return w
		}
	}
	t.Fatal("the server is not shared")
	return nil
}

// freeAddress returns a loopback address and port at which nobody listens. Its address is one
// that other programs do not use.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", fmt.Sprintf("127.%d.%d.%d:0", 1+rand.IntN(254), 1+rand.IntN(254), 1+rand.IntN(254)))
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

// serveProgram starts mcp-host serve, waits until it serves, and returns its log.
func serveProgram(t *testing.T, args ...string) (log *transcript) {
	t.Helper()
	log = &transcript{}
	cmd := exec.Command("mcp-host", append([]string{"serve"}, args...)...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "TOOLROOM_TOKEN=") })
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill() //nolint:errcheck // it may have ended
		cmd.Wait()         //nolint:errcheck // it was killed
	})
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, log.String())
	return log
}

// onlyOwn requires that a text names no other session than s.
func (w *isolated) onlyOwn(t *testing.T, s *isolatedSession, text string) {
	t.Helper()
	for _, other := range w.all {
		if other != s {
			require.NotContains(t, text, other.name, "%s hears of it", s.name)
		}
	}
}

// texts returns the texts of a result.
func texts(t *testing.T, answer string) string {
	t.Helper()
	var m struct {
		Result struct{ Content []struct{ Text string } }
	}
	require.NoError(t, json.Unmarshal([]byte(answer), &m), answer)
	var all bytes.Buffer
	for _, one := range m.Result.Content {
		all.WriteString(one.Text + "\n")
	}
	return all.String()
}

// hasError reports whether an answer is an error, or a result with isError.
func hasError(answer string) bool {
	return strings.Contains(answer, `"error":`) || strings.Contains(answer, `"isError":true`)
}

// eventuallyHears waits until the session has received a text.
func (s *isolatedSession) eventuallyHears(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(s.all(), text) }, time.Minute, time.Millisecond, "%s: %s", s.name, text)
}

// heardOnlyOwn requires that no session was told of another one. Each makes another call
// first, after which what the server sent before has arrived.
func (w *isolated) heardOnlyOwn(t *testing.T) {
	t.Helper()
	for range 2 {
		for _, s := range w.all {
			s.call(t, "talk__echo", "", 0)
		}
	}
	for _, s := range w.all {
		w.onlyOwn(t, s, s.all())
	}
}

// host returns the name of a session's host.
func (w *isolated) host(s *isolatedSession) string {
	if s.name == "gamma" || s.name == "delta" {
		return "serve"
	}
	return s.name
}
