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
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/pipeline/approve"
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
	require.Contains(t, body, "with other arguments than asked for")

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
	require.Contains(t, asked, "May fix__echo of server fix be called? rule 2 of this host's policy (tool fix__echo) asks for approval: it is loud.")
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
