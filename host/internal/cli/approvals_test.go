package cli_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/approve"
)

const asking = `
servers: {fix: {command: fixture, args: [-era, legacy]}}
policy: {rules: [{tool: fix__echo, args: {text: "secret*"}, do: deny}, {tool: fix__echo, do: ask, why: it is loud}]}
`

const echoed = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fix__echo","arguments":{"text":"a"}}}`

// send makes a request of the HTTP door.
func (s served) send(t *testing.T, method, path, token, body string) (int, string) {
	t.Helper()
	url := path
	if strings.HasPrefix(path, "/") {
		url = strings.TrimSuffix(s.url, "/mcp") + path
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

func (s served) waiting(t *testing.T) (ids []string) {
	t.Helper()
	status, body := s.send(t, "GET", "/v1/approvals", s.token, "")
	require.Equal(t, 200, status, body)
	var list struct{ Data []struct{ ID string } }
	require.NoError(t, json.Unmarshal([]byte(body), &list))
	for _, one := range list.Data {
		ids = append(ids, one.ID)
	}
	return ids
}

func TestApprovalsOverHTTP(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("TOOLROOM_TOKEN", "")
	notices := make(chan approve.Notice, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var n approve.Notice
		if err := json.NewDecoder(r.Body).Decode(&n); err != nil {
			t.Error(err)
		}
		notices <- n
	}))
	defer receiver.Close()
	t.Setenv("HOOK_KEY", "k")
	dir := t.TempDir()
	config := filepath.Join(dir, "c.yaml")
	require.NoError(t, writeFile(config, asking+"approval: {callback: \""+receiver.URL+"\", callback_secret: \"${HOOK_KEY}\"}\n"))
	s := serve(t, "--config", config, "--state", dir)

	_, body := s.post(t, echoed)
	require.Contains(t, body, `"toolroom/code":"PENDING_APPROVAL","toolroom/status":"pending","toolroom/pending":{"id":"`)
	status, body := s.send(t, "GET", "/v1/approvals", "", "")
	require.Equal(t, 401, status, body)
	ids := s.waiting(t)
	require.Len(t, ids, 1)
	path := "/v1/approvals/" + ids[0]
	for _, c := range []struct {
		method, path, body string
		want               int
		text               string
	}{
		{"GET", path, "", 200, `"state":"pending"`},
		{"GET", path + "?wait=1ms", "", 200, `"state":"pending"`},
		{"GET", path + "?wait=soon", "", 400, `"code":"INVALID_PARAMS"`},
		{"GET", "/v1/approvals/0", "", 404, `"type":"invalid_request_error"`},
		{"GET", "/v1/nothing", "", 404, `"code":"NOT_FOUND"`},
		{"POST", path, `{}`, 400, `"param":"decision"`},
		{"POST", path, `{"decision":"yes"}`, 400, `"param":"decision"`},
		{"POST", path, `{"decision":"approve","args":{}}`, 400, `"param":"args"`},
		{"POST", path, `{"decision":"approve","decision":"deny"}`, 400, `more than once`},
		{"POST", path, `{"decision":"approve","arguments":[]}`, 400, `"param":"arguments"`},
		{"POST", path, `{"decision":"approve","arguments":{"text":"secret"}}`, 403, `"code":"POLICY_DENIED"`},
		{"POST", path, `{"decision":"approve","arguments":{"text":"b"},"note":"quieter"}`, 200, `"state":"approved"`},
		{"POST", path, `{"decision":"deny"}`, 409, `"code":"CONFLICT"`},
	} {
		status, body := s.send(t, c.method, c.path, s.token, c.body)
		require.Equal(t, c.want, status, "%s %s: %s", c.method, c.path, body)
		require.Contains(t, body, c.text)
		require.NotContains(t, body, `"token"`)
	}
	_, body = s.post(t, echoed)
	require.Contains(t, body, `{\"text\":\"b\"}`)
	require.Contains(t, body, "with changed arguments")

	// The address in the callback decides, once, for who has no other token.
	<-notices
	_, body = s.post(t, echoed)
	require.Contains(t, body, "PENDING_APPROVAL")
	n := <-notices
	require.NotContains(t, body, n.DecideURL)
	status, body = s.send(t, "POST", strings.TrimSuffix(n.DecideURL, n.DecideURL[len(n.DecideURL)-3:])+"aaa", "", `{"decision":"approve"}`)
	require.Equal(t, 401, status, body)
	status, body = s.send(t, "GET", n.DecideURL, "", "")
	require.Equal(t, 405, status, body)
	status, body = s.send(t, "POST", n.DecideURL, "", `{"decision":"approve"}`)
	require.Equal(t, 200, status, body)
	require.Contains(t, body, `"decided_by":"the callback"`)
	status, body = s.send(t, "POST", n.DecideURL, "", `{"decision":"approve"}`)
	require.Equal(t, 409, status, body)
	_, body = s.post(t, echoed)
	require.Contains(t, body, `{\"text\":\"a\"}`)
}

// A host that is killed between the request and the decision, and again
// between the decision and the call, is not missed.
func TestApprovalsOutliveTheHost(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "c.yaml")
	require.NoError(t, writeFile(config, asking))
	once := func() string { // a host that is killed after one call
		host := exec.Command("mcp-host", "stdio", "--config", config, "--state", dir)
		in, err := host.StdinPipe()
		require.NoError(t, err)
		out, err := host.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, host.Start())
		fmt.Fprintln(in, echoed) //nolint:errcheck // the answer tells
		line, err := bufio.NewReader(out).ReadString('\n')
		require.NoError(t, err)
		require.NoError(t, host.Process.Kill())
		host.Wait() //nolint:errcheck // it was killed
		return line
	}
	require.Contains(t, once(), "PENDING_APPROVAL")
	require.Contains(t, once(), "PENDING_APPROVAL")
	run := func(args ...string) string {
		out, err := exec.Command("mcp-host", append(args, "--config", config, "--state", dir)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	var all []struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(run("approvals", "list", "--json")), &all))
	require.Len(t, all, 1, "the same call is the same request, whichever host is asked")
	run("approvals", "approve", all[0].ID[:10])
	require.Contains(t, once(), `{\"text\":\"a\"}`)
	require.Contains(t, once(), "PENDING_APPROVAL")
}

// A host that is killed while a chain goes on after its approval has made none of
// the steps before in vain: the same call goes on where it was.
func TestAChainOutlivesTheHost(t *testing.T) {
	var made [3]atomic.Int32
	began, killed := make(chan struct{}), make(chan struct{})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		step := slices.Index([]string{"/one", "/gate", "/slow"}, r.URL.Path)
		if n := made[step].Add(1); step == 2 && n == 1 {
			close(began)
			<-killed
		}
		fmt.Fprintf(w, `{"n":%d}`, step) //nolint:errcheck // a test's
	}))
	defer web.Close()
	dir := t.TempDir()
	config := filepath.Join(dir, "c.yaml")
	text := "policy: {rules: [{tool: gate, do: ask}]}\ntools:\n  all: {chain: [{tool: one}, {tool: gate}, {tool: slow}]}\n"
	for _, name := range []string{"one", "gate", "slow"} {
		text += fmt.Sprintf("  %s: {http: {url: %q, method: POST, allow_private: true}}\n", name, web.URL+"/"+name)
	}
	require.NoError(t, writeFile(config, text))
	args := []string{"--config", config, "--state", dir}
	const all = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"all","arguments":{}}}`
	require.Contains(t, start(t, nil, append([]string{"stdio"}, args...)...).say(t, all), "PENDING_APPROVAL")
	_, list, _ := mcpHost(t, append([]string{"approvals", "list", "--json"}, args...)...)
	var waiting []struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(list), &waiting))
	require.Len(t, waiting, 1)
	status, _, said := mcpHost(t, append([]string{"approvals", "approve", waiting[0].ID}, args...)...)
	require.Zero(t, status, said)

	host := start(t, nil, append([]string{"stdio"}, args...)...)
	_, err := io.WriteString(host.in, all+"\n")
	require.NoError(t, err)
	<-began
	answer := start(t, nil, append([]string{"stdio"}, args...)...).say(t, all)
	require.Contains(t, answer, "CONFLICT", "another goes on with it")
	host.end()
	close(killed)
	next := start(t, nil, append([]string{"stdio"}, args...)...)
	require.Contains(t, next.say(t, all), `"text":"{\"n\":2}"`)
	require.Equal(t, []int32{1, 1, 2}, []int32{made[0].Load(), made[1].Load(), made[2].Load()})
	require.Contains(t, next.say(t, all), "PENDING_APPROVAL", "another call begins anew")
	require.EqualValues(t, 2, made[0].Load())
}

// The user at the client is asked, in either era, over stdio and HTTP.
func TestTheClientIsAskedForApproval(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "c.yaml")
	require.NoError(t, writeFile(config, asking))
	host := exec.Command("mcp-host", "stdio", "--config", config, "--state", dir)
	in, err := host.StdinPipe()
	require.NoError(t, err)
	out, err := host.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, host.Start())
	defer host.Wait() //nolint:errcheck // its input ends
	defer in.Close()
	lines := bufio.NewReader(out)
	say := func(line string) string {
		fmt.Fprintln(in, line) //nolint:errcheck // the answer tells
		answer, err := lines.ReadString('\n')
		require.NoError(t, err)
		return answer
	}
	modern := func(id int, more string) string {
		return say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"fix__echo","arguments":{"text":"m"}%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`, id, more))
	}
	asked := modern(1, "")
	require.Contains(t, asked, `"resultType":"input_required"`)
	require.Contains(t, asked, "May fix__echo of server fix be called? rule 2 of this host's policy (tool fix__echo) requires approval: it is loud.")
	var round struct {
		Result struct {
			InputRequests map[string]struct{ Method string }
			RequestState  string
		}
	}
	require.NoError(t, json.Unmarshal([]byte(asked), &round))
	require.Equal(t, "elicitation/create", round.Result.InputRequests["q1"].Method)
	done := modern(2, `,"inputResponses":{"q1":{"action":"accept","content":{"decision":"approve"}}},"requestState":"`+round.Result.RequestState+`"`)
	require.Contains(t, done, `{\"text\":\"m\"}`)

	say(`{"jsonrpc":"2.0","id":3,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}`)
	question := say(echoed)
	require.Contains(t, question, `"method":"elicitation/create"`)
	var q struct{ ID json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(question), &q))
	denied := say(`{"jsonrpc":"2.0","id":` + string(q.ID) + `,"result":{"action":"decline"}}`)
	require.Contains(t, denied, "POLICY_DENIED: fix__echo: this call was denied by the user at stdio")
}

// run starts the program in a directory and returns what it says.
func run(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("mcp-host", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// approveAll approves what waits, and returns how much that was.
func approveAll(t *testing.T, flags ...string) int {
	t.Helper()
	out, err := run(t, "", append([]string{"approvals", "list", "--json"}, flags...)...)
	require.NoError(t, err, out)
	var all []struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(out), &all))
	for _, one := range all {
		out, err := run(t, "", append([]string{"approvals", "approve", one.ID}, flags...)...)
		require.NoError(t, err, out)
	}
	return len(all)
}

// What is approved for staging is not for production, though the server and the
// tool have the same names: another variable, another program, another root,
// another directory.
func TestAnApprovalIsNotForAnotherPlace(t *testing.T) {
	state, here, there := t.TempDir(), t.TempDir(), t.TempDir()
	config := func(name, server string) string {
		file := filepath.Join(state, name)
		require.NoError(t, writeFile(file, "servers: {fix: {command: fixture, "+server+"}}\npolicy: {rules: [{tool: fix__echo, do: ask}]}\n"))
		return file
	}
	call := func(dir, config string, flags ...string) string {
		out, _ := run(t, dir, append([]string{"call", "fix__echo", "text=a", "--config", config, "--state", state}, flags...)...) //nolint:errcheck // what it says tells
		return out
	}
	staging := config("staging.yaml", "args: [-era, legacy], env: {DB: staging}")
	require.Contains(t, call(here, staging, "--root", here), "requires approval")
	require.Equal(t, 1, approveAll(t, "--config", staging, "--state", state))
	for name, out := range map[string]string{
		"variable":  call(here, config("a.yaml", "args: [-era, legacy], env: {DB: production}"), "--root", here),
		"arguments": call(here, config("b.yaml", "args: [-era, auto], env: {DB: staging}"), "--root", here),
		"root":      call(here, staging, "--root", there),
		"directory": call(there, staging, "--root", here),
	} {
		require.Contains(t, out, "requires approval", name)
	}
	require.Contains(t, call(here, staging, "--root", here), `{"text":"a"}`)
	require.Contains(t, call(here, staging, "--root", here), "requires approval")
}

// The steps of a chain before one that waits are made once, also by a host that
// is started anew.
func TestAChainIsNotBegunAgain(t *testing.T) {
	var marks atomic.Int64
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"n":%d}`, marks.Add(1)) //nolint:errcheck // the client tells
	}))
	defer service.Close()
	dir := t.TempDir()
	config := filepath.Join(dir, "c.yaml")
	require.NoError(t, writeFile(config, asking+`
tools:
  - {name: mark, description: d, mode: live, input_schema: {type: object}, http: {url: "`+service.URL+`", method: POST, allow_private: [127.0.0.1]}}
  - name: two
    description: d
    mode: chain
    input_schema: {type: object}
    chain: {steps: [{id: m, tool: mark}, {tool: fix__echo, args: {text: "mark ${steps.m.result.n}"}}]}
`))
	flags := []string{"--config", config, "--state", dir}
	call := func() string {
		out, _ := run(t, dir, append([]string{"call", "two"}, flags...)...) //nolint:errcheck // what it says tells
		return out
	}
	require.Contains(t, call(), "requires approval")
	require.Contains(t, call(), "requires approval")
	require.Equal(t, 1, approveAll(t, flags...))
	require.Contains(t, call(), `{"text":"mark 1"}`)
	require.EqualValues(t, 1, marks.Load())
	require.Contains(t, call(), "requires approval")
	require.EqualValues(t, 2, marks.Load(), "another call is another one")
}

// What a caller writes cannot hide what it asks for, nor a note what was
// decided.
func TestNothingHidesInAnApproval(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "c.yaml")
	require.NoError(t, writeFile(config, asking))
	flags := []string{"--config", config, "--state", dir}
	out, err := run(t, dir, append([]string{"call", "fix__echo", `{"text":"\u0072m\u200b\udb40\udc41 -rf\n\u202e~"}`}, flags...)...)
	require.Error(t, err)
	require.Contains(t, out, "requires approval")
	out, err = run(t, dir, append([]string{"approvals", "list"}, flags...)...)
	require.NoError(t, err)
	require.Contains(t, out, `{"text":"rm\u200b\U000e0041 -rf\n\u202e~"}`)
	id := strings.Fields(out)[0]
	out, err = run(t, dir, append([]string{"approvals", "deny", id, "--note", "no\nstate     approved"}, flags...)...)
	require.NoError(t, err, out)
	out, err = run(t, dir, append([]string{"approvals", "show", id}, flags...)...)
	require.NoError(t, err, out)
	require.Contains(t, out, "\n"+`note      no\nstate     approved`+"\n")
	require.Contains(t, out, "arguments {\n  \"text\": \"rm\\u200b\\U000e0041 -rf\\n\n      \\u202e~\"\n}\n")
	require.Regexp(t, `(?m)^where +in .*fixture -era legacy$`, out)
}

// Over HTTP totals are of an address, however many connections and sessions
// come from it.
func TestTotalsOfAnAddress(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("TOOLROOM_TOKEN", "")
	dir := t.TempDir()
	config := filepath.Join(dir, "c.yaml")
	require.NoError(t, writeFile(config, "servers: {fix: {command: fixture, args: [-era, legacy]}}\npolicy: {max_total_calls: 3}\n"))
	s := serve(t, "--config", config, "--state", dir)
	made := 0
	for range 6 {
		http.DefaultClient.CloseIdleConnections()
		if _, body := s.post(t, echoed); !strings.Contains(body, "LIMIT_REACHED") {
			made++
		}
	}
	require.Equal(t, 3, made)
}
