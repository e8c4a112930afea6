//go:build oracle

package signin

import (
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"
)

// linkIn returns the link to the host in an error for a user.
func (w *team) linkIn(text string) string {
	w.t.Helper()
	_, after, ok := strings.Cut(text, "ask the user to open ")
	require.True(w.t, ok, text)
	link, _, _ := strings.Cut(after, " ")
	require.True(w.t, strings.HasPrefix(link, w.url+"/sign-in/"), link)
	return link
}

// A link that was sent stays valid when the host is restarted, also in the middle of the
// sign-in, and is valid once.
func TestLinkAfterARestart(t *testing.T) {
	w := newTeam(t, "jwt", true, "credentials: caller")
	v := visitors["SDK 1"]
	v.Token, v.Text, v.Calls = w.token("alice"), "from alice", []string{"notes__toolroom_sign_in"}
	link := w.linkIn(w.visit("alice", v).Results[0].Content[0].Text)

	w.stop()
	w.serve()
	_, err := browse(link, "bob", "")
	require.ErrorContains(t, err, "This link is for another user")
	w.stop()
	w.serve()
	page, err := browse(link, "alice", "")
	require.NoError(t, err)
	require.Contains(t, page, "Signed in to server notes")
	_, err = browse(link, "alice", "")
	require.ErrorContains(t, err, "This link is not valid any more")
	w.stop()
	w.serve()
	_, err = browse(link, "alice", "")
	require.ErrorContains(t, err, "This link is not valid any more")

	v.Calls = []string{"notes__echo"}
	w.visit("alice", v).requireText(t, 0, "from alice")
	require.Equal(t, []string{"alice: from alice"}, w.calls())
}

// The first call of a user gets the link, also when the host has listed no tools because
// nobody has called since its start.
func TestFirstCallOfAUserAfterARestart(t *testing.T) {
	for name, v := range visitors {
		t.Run(name, func(t *testing.T) {
			w := newTeam(t, "jwt", true, "credentials: caller")
			v.Calls = []string{"notes__echo"}
			for i, user := range []string{"alice", "bob"} {
				v.Token, v.Text, v.Links = w.token(user), "from "+user, true
				got := w.visit(user, v)
				require.NotContains(t, got.Before, "notes__echo")
				require.Len(t, got.Links, 1)
				require.True(t, strings.HasPrefix(got.Links[0].URL, w.url+"/sign-in/"), got.Links[0].URL)
				got.requireText(t, 0, "from "+user)
				require.Len(t, w.calls(), i+1)
				w.stop()
				w.serve()
			}
			v.Token = w.token("carol") // whom the policy denies all calls
			got := w.visit("carol", v)
			require.Contains(t, got.Results[0].Content[0].Text, "POLICY_DENIED")
			require.Empty(t, got.Links)

			v.Token, v.Text, v.Links = w.token("dave"), "from dave", false
			got = w.visit("dave", v)
			require.True(t, got.Results[0].IsError)
			require.Contains(t, got.Results[0].Content[0].Text, "then call notes__echo again")
			page, err := browse(w.linkIn(got.Results[0].Content[0].Text), "dave", "")
			require.NoError(t, err)
			require.Contains(t, page, "Signed in to server notes")
			w.stop()
			w.serve()
			w.visit("dave", v).requireText(t, 0, "from dave")
			require.Equal(t, []string{"alice: from alice", "bob: from bob", "dave: from dave"}, w.calls())
		})
	}
}

// A prompt of a server that nobody has signed in to since the start of the host.
func TestFirstPromptOfAUser(t *testing.T) {
	w := newTeam(t, "jwt", true, "credentials: caller")
	w.tools.set(promptServer())
	alice := w.client("alice")
	const request = `{"jsonrpc":"2.0","id":7,"method":"prompts/get","params":{"name":"notes__greet"}}`
	answer, _ := alice.post(request)
	var failed struct{ Error struct{ Message string } }
	require.NoError(t, json.Unmarshal([]byte(jsonIn(answer)), &failed), answer)
	page, err := browse(w.linkIn(failed.Error.Message), "alice", "")
	require.NoError(t, err)
	require.Contains(t, page, "Signed in to server notes")
	answer, _ = alice.post(request)
	require.Contains(t, answer, "good morning")
}

// promptServer has a prompt and a resource template.
func promptServer() *server.StreamableHTTPServer {
	s := server.NewMCPServer("notes", "1")
	s.AddPrompt(mcp.NewPrompt("greet"), func(context.Context, mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return mcp.NewGetPromptResult("", []mcp.PromptMessage{mcp.NewPromptMessage(mcp.RoleUser, mcp.NewTextContent("good morning"))}), nil
	})
	s.AddResourceTemplate(mcp.NewResourceTemplate("notes:///{name}", "note"), func(_ context.Context, r mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: r.Params.URI, Text: "the text of a note"}}, nil
	})
	return server.NewStreamableHTTPServer(s, server.WithStateLess(true))
}

// Prompts and resources of a server need the sign-in of the user as tools do. The host's own
// sign-in lists them.
func TestPromptsAndResourcesOfUsers(t *testing.T) {
	for request, want := range map[string]string{
		`"prompts/get","params":{"name":"notes__greet"}`:      "good morning",
		`"resources/read","params":{"uri":"notes:///monday"}`: "the text of a note",
	} {
		t.Run(want, func(t *testing.T) {
			w := newTeam(t, "jwt", true, "credentials: caller")
			w.tools.set(promptServer())
			login := exec.Command(w.host, append([]string{"login", "notes"}, w.files()...)...)
			login.Env = w.browserOf("owner")
			out, err := login.CombinedOutput()
			require.NoError(t, err, "%s", out)

			alice := w.client("alice")
			answer, _ := alice.post(`{"jsonrpc":"2.0","id":7,"method":` + request + `}`)
			require.Contains(t, answer, "needs the sign-in of alice")
			require.NotContains(t, answer, want)
			var failed struct{ Error struct{ Message string } }
			require.NoError(t, json.Unmarshal([]byte(jsonIn(answer)), &failed), answer)
			page, err := browse(w.linkIn(failed.Error.Message), "alice", "")
			require.NoError(t, err)
			require.Contains(t, page, "Signed in to server notes")
			answer, _ = alice.post(`{"jsonrpc":"2.0","id":8,"method":` + request + `}`)
			require.Contains(t, answer, want)

			answer, _ = w.client("bob").post(`{"jsonrpc":"2.0","id":9,"method":` + request + `}`)
			require.Contains(t, answer, "needs the sign-in of bob")
		})
	}
}

// jsonIn returns the message in an answer, which may be an event stream.
func jsonIn(answer string) string {
	for line := range strings.Lines(answer) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			answer = data
		}
	}
	return strings.TrimSpace(answer)
}
