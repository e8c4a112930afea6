//go:build oracle

package signin

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// client calls tools at the host with a user's token, in a session of its own.
type client struct {
	t              *testing.T
	url, token, id string // id of the session
}

func (w *team) client(user string) *client {
	c := &client{t: w.t, url: w.url + "/mcp", token: w.token(user)}
	_, c.id = c.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	require.NotEmpty(w.t, c.id)
	return c
}

func (c *client) post(body string) (text, session string) {
	c.t.Helper()
	req, err := http.NewRequest(http.MethodPost, c.url, strings.NewReader(body))
	require.NoError(c.t, err)
	for name, value := range map[string]string{"Authorization": "Bearer " + c.token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream"} {
		req.Header.Set(name, value)
	}
	if c.id != "" {
		req.Header.Set("Mcp-Session-Id", c.id)
	}
	res, err := http.DefaultClient.Do(req)
	require.NoError(c.t, err)
	defer res.Body.Close() //nolint:errcheck // read only
	all, err := io.ReadAll(res.Body)
	require.NoError(c.t, err)
	require.Equal(c.t, http.StatusOK, res.StatusCode, "%s", all)
	return string(all), res.Header.Get("Mcp-Session-Id")
}

// echo calls the tool and returns the answer.
func (c *client) echo(text string) string {
	c.t.Helper()
	arguments, err := json.Marshal(map[string]string{"text": text})
	require.NoError(c.t, err)
	answer, _ := c.post(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"notes__echo","arguments":` + string(arguments) + `}}`)
	return answer
}

// Totals are of a user: in all sessions of the user, and not of others.
func TestLimitsOfUsers(t *testing.T) {
	for _, format := range []string{"jwt", "opaque"} {
		t.Run(format, func(t *testing.T) {
			w := newTeamWithPolicy(t, format, false, "token_exchange: true", "  max_total_calls: 2\n", "")
			alice, again := w.client("alice"), w.client("alice")
			require.Contains(t, alice.echo("one"), "one")
			require.Contains(t, again.echo("two"), "two")
			for _, c := range []*client{alice, again, w.client("alice")} {
				require.Contains(t, c.echo("three"), "LIMIT_REACHED")
			}
			bob := w.client("bob")
			require.Contains(t, bob.echo("one"), "one")
			require.Contains(t, bob.echo("two"), "two")
			require.Contains(t, bob.echo("three"), "LIMIT_REACHED")
			require.Equal(t, []string{"alice: one", "alice: two", "bob: one", "bob: two"}, w.calls())
		})
	}
}

// An approval is for the call of one user. It does not let another user make the same call.
func TestApprovalsOfUsers(t *testing.T) {
	for _, format := range []string{"jwt", "opaque"} {
		t.Run(format, func(t *testing.T) {
			w := newTeamWithPolicy(t, format, false, "token_exchange: true", "", "    - {tool: notes__echo, caller: http/*, do: ask}\n")
			alice, bob := w.client("alice"), w.client("bob")
			request := regexp.MustCompile(`approvals approve ([A-Za-z0-9_-]+)`)
			first := request.FindStringSubmatch(alice.echo("secret"))
			require.NotNil(t, first)
			second := request.FindStringSubmatch(bob.echo("secret"))
			require.NotNil(t, second)
			require.NotEqual(t, first[1], second[1])
			require.Empty(t, w.calls())

			approve := exec.Command(w.host, "approvals", "approve", first[1], "--config", filepath.Join(w.dir, "front.yaml"), "--state", filepath.Join(w.dir, "front"))
			approve.Env = os.Environ()
			out, err := approve.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Contains(t, bob.echo("secret"), second[1], "it still waits")
			require.Empty(t, w.calls())
			require.Contains(t, alice.echo("secret"), `{\"text\":\"secret\"}`)
			require.Equal(t, []string{"alice: secret"}, w.calls())
			require.NotNil(t, request.FindStringSubmatch(alice.echo("secret")), "it was approved once")
		})
	}
}
