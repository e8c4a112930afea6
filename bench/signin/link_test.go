//go:build oracle

package signin

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
)

// session is the input of signin.mjs, and seen its output.
type session struct {
	SDK     int      `json:"sdk"`
	Era     string   `json:"era"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
	Calls   []any    `json:"calls"`
	Browser string   `json:"browser"`
	Refuse  bool     `json:"refuse"`
	Unable  bool     `json:"unable"`
	Expire  []string `json:"expire"`
}

type seen struct {
	Before, After []string
	Links         []struct{ Mode, Message, URL, ElicitationID string }
	Completed     []string
	Pages         []string
	Progress      []struct {
		Progress float64
		Message  string
	}
	Results []struct {
		IsError bool
		Content []struct{ Text string }
		Thrown  string
	}
}

// visit runs a TypeScript client of `mcp-host stdio`.
func (w *world) visit(s session, tools ...string) seen {
	w.t.Helper()
	s.Command, s.Args = w.host, []string{"stdio", "--config", w.config, "--state", w.state}
	s.Browser = os.Args[0]
	for _, tool := range tools {
		s.Calls = append(s.Calls, map[string]any{"name": tool, "arguments": map[string]any{"text": "hello"}})
	}
	order, err := json.Marshal(s)
	require.NoError(w.t, err)
	cmd := exec.Command(oracle.Path(w.t, "node"), filepath.Join(oracle.Dir(), "signin.mjs"), string(order))
	cmd.Env = append(os.Environ(), browserUser+"=alice")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(w.t, err)
	var got seen
	require.NoError(w.t, json.Unmarshal(out, &got), "%s", out)
	require.Len(w.t, got.Results, len(tools))
	return got
}

// sessions are the clients of both SDKs and eras.
var sessions = map[string]session{
	"SDK 1":             {SDK: 1, Era: "legacy"},
	"SDK 2, 2025-11-25": {SDK: 2, Era: "legacy"},
	"SDK 2, 2026-07-28": {SDK: 2, Era: "modern"},
}

// A client that opens links signs in while its call waits: first by the tool for
// signing in, then in a call after the tokens have expired.
func TestSignInByLink(t *testing.T) {
	for name, s := range sessions {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "")
			s.Expire = []string{w.issuer + "/test/expire?kind=AccessToken", w.issuer + "/test/expire?kind=RefreshToken"}
			got := w.visit(s, "notes__toolroom_sign_in", "notes__echo")
			require.Contains(t, got.Before, "notes__toolroom_sign_in")
			require.NotContains(t, got.Before, "notes__echo")
			require.Contains(t, got.After, "notes__echo")
			require.NotContains(t, got.After, "notes__toolroom_sign_in")
			require.Len(t, got.Links, 2)
			for _, link := range got.Links {
				require.Equal(t, "url", link.Mode)
				require.True(t, strings.HasPrefix(link.URL, w.issuer+"/auth?"), link.URL)
				require.Contains(t, link.Message, "Server notes needs a sign-in")
				require.Equal(t, s.Era == "modern", link.ElicitationID == "")
				if s.SDK == 1 {
					require.Contains(t, got.Completed, link.ElicitationID)
				}
			}
			require.Len(t, got.Pages, 2)
			require.NotEmpty(t, got.Progress)
			require.Equal(t, "Waiting for the sign-in to server notes", got.Progress[0].Message)
			require.Negative(t, got.Progress[0].Progress)
			require.Contains(t, got.Pages[0], "mcp-host is signed in to server notes")
			require.Contains(t, got.Pages[0], "in a file that only you can read, because the keyring of the system cannot be used")
			for i, want := range []string{"Signed in to server notes", "hello"} {
				require.Empty(t, got.Results[i].Thrown)
				require.False(t, got.Results[i].IsError, got.Results[i])
				require.Contains(t, got.Results[i].Content[0].Text, want)
			}
		})
	}
}

// A client that knows a tool from an earlier session calls it at once, although the host
// has not listed it: the call signs in and is made.
func TestSignInByLinkForAToolThatIsNotListed(t *testing.T) {
	for name, s := range sessions {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "")
			got := w.visit(s, "notes__echo", "notes__nothing")
			require.NotContains(t, got.Before, "notes__echo")
			require.Contains(t, got.After, "notes__echo")
			require.NotContains(t, got.After, "notes__toolroom_sign_in")
			require.Len(t, got.Links, 1)
			require.Contains(t, got.Links[0].Message, "Server notes needs a sign-in. The call of notes__echo continues after it.")
			require.Len(t, got.Pages, 1)
			require.Empty(t, got.Results[0].Thrown)
			require.False(t, got.Results[0].IsError, got.Results[0])
			require.Contains(t, got.Results[0].Content[0].Text, "hello")
			require.Contains(t, got.Results[1].Thrown, "unknown tool")
		})
	}
}

// A client gives up its call while the user is at the provider: the sign-in goes on.
func TestSignInOutlivesItsCall(t *testing.T) {
	w := newWorld(t, "")
	cmd := w.command("stdio")
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	out := bufio.NewScanner(stdout)
	out.Buffer(nil, 1<<20)
	type message struct {
		ID     json.RawMessage
		Method string
		Params struct{ URL string }
		Result json.RawMessage
	}
	send := func(format string, args ...any) {
		_, err := fmt.Fprintf(in, format+"\n", args...)
		require.NoError(t, err)
	}
	await := func(want func(message) bool) message {
		for out.Scan() {
			var m message
			require.NoError(t, json.Unmarshal(out.Bytes(), &m), "%s", out.Bytes())
			if want(m) {
				return m
			}
		}
		require.NoError(t, out.Err())
		require.Fail(t, "the host has ended")
		return message{}
	}
	send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{"url":{}}},"clientInfo":{"name":"c","version":"1"}}}`)
	send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"notes__echo","arguments":{"text":"first"}}}`)
	link := await(func(m message) bool { return m.Method == "elicitation/create" })
	send(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept"}}`, link.ID)
	send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	page, err := browse(link.Params.URL, "alice", "")
	require.NoError(t, err)
	require.Contains(t, page, "mcp-host is signed in to server notes")
	send(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"notes__echo","arguments":{"text":"second"}}}`)
	answered := await(func(m message) bool { return string(m.ID) == "3" && m.Method == "" })
	require.Contains(t, string(answered.Result), "second")
	require.NoError(t, in.Close())
	require.NoError(t, cmd.Wait())
}

// Clients that refuse the link, or cannot open one, are told the command.
func TestSignInThatTheClientDoesNotOpen(t *testing.T) {
	for name, s := range sessions {
		for _, unable := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t, "")
				s.Refuse, s.Unable = true, unable
				got := w.visit(s, "notes__toolroom_sign_in")
				require.Len(t, got.Links, map[bool]int{false: 1, true: 0}[unable])
				require.True(t, got.Results[0].IsError)
				require.Contains(t, got.Results[0].Content[0].Text, "mcp-host login notes")
				unlisted := w.visit(s, "notes__echo")
				require.True(t, unlisted.Results[0].IsError)
				require.Contains(t, unlisted.Results[0].Content[0].Text, "AUTH_FAILED")
				require.Contains(t, unlisted.Results[0].Content[0].Text, "mcp-host login notes")
				require.Contains(t, got.After, "notes__toolroom_sign_in")
				require.NotContains(t, w.stored(), "access_token")
			})
		}
	}
}
