package cli_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream/oauth"
)

// newSlowProvider returns the URL of an MCP server that is its own authorization server. asked is
// closed at the first request for a refresh, which is answered after release is called.
func newSlowProvider(t *testing.T) (address string, asked <-chan struct{}, release func()) {
	t.Helper()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	free, first := make(chan struct{}), make(chan struct{})
	release = sync.OnceFunc(func() { close(free) })
	t.Cleanup(release)
	answer := func(path string, doc func(req *http.Request) map[string]any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(doc(req)) //nolint:errcheck // the host reports it
		})
	}
	answer("/.well-known/oauth-protected-resource/mcp", func(*http.Request) map[string]any {
		return map[string]any{"resource": server.URL + "/mcp", "authorization_servers": []string{server.URL}}
	})
	answer("/.well-known/oauth-authorization-server", func(*http.Request) map[string]any {
		return map[string]any{
			"issuer": server.URL, "authorization_endpoint": server.URL + "/authorize", "token_endpoint": server.URL + "/token",
			"code_challenge_methods_supported": []string{"S256"},
		}
	})
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, req *http.Request) {
		query := req.URL.Query()
		http.Redirect(w, req, query.Get("redirect_uri")+"?code=c&state="+query.Get("state"), http.StatusFound)
	})
	once := sync.OnceFunc(func() { close(first) })
	answer("/token", func(req *http.Request) map[string]any {
		if req.FormValue("grant_type") != "refresh_token" {
			return map[string]any{"access_token": "access-1", "refresh_token": "refresh-1", "token_type": "Bearer", "expires_in": 3600}
		}
		once()
		<-free
		return map[string]any{"access_token": "access-2", "refresh_token": "refresh-2", "token_type": "Bearer", "expires_in": 3600}
	})
	return server.URL + "/mcp", first, release
}

// A host that ends while a provider renews a token stores the new one: the old refresh token may have
// become invalid. The client sees the end of the host's output before.
func TestHostEndsDuringRefresh(t *testing.T) {
	address, asked, release := newSlowProvider(t)
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	c := oauth.Config{Server: "s", URL: address, Storage: oauth.Storage{State: state, Kind: oauth.InFile}, ClientID: "c"}
	browsed := make(chan error, 1)
	_, err := oauth.Login(t.Context(), c, oauth.Prompt{Open: func(link string) error {
		go func() {
			res, err := http.Get(link)
			if err == nil {
				err = res.Body.Close()
			}
			browsed <- err
		}()
		return nil
	}})
	require.NoError(t, err)
	require.NoError(t, <-browsed)
	stored := func() (r map[string]any, tokens map[string]any) {
		t.Helper()
		text, err := os.ReadFile(c.File())
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &r))
		return r, r["tokens"].(map[string]any)
	}
	r, tokens := stored()
	tokens["expires"] = time.Now().Add(-time.Minute).Format(time.RFC3339)
	text, err := json.Marshal(r)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(c.File(), text, 0o600))

	file := filepath.Join(dir, "toolroom.yaml")
	require.NoError(t, os.WriteFile(file, []byte("token_store: file\nservers: {s: {url: '"+address+"', oauth: {client_id: c}}}\n"), 0o600))
	cmd := exec.Command("mcp-host", "stdio", "--config", file, "--state", state, "--root", dir)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	// Pipes of the test: Wait would close those of the command before all is read.
	out, outEnd, err := os.Pipe()
	require.NoError(t, err)
	said, saidEnd, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = outEnd, saidEnd
	require.NoError(t, cmd.Start())
	require.NoError(t, outEnd.Close())
	require.NoError(t, saidEnd.Close())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { cmd.Process.Kill() }) //nolint:errcheck // it may have ended
	_, err = fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	require.NoError(t, err)
	_, err = fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	require.NoError(t, err)
	_, err = fmt.Fprintln(in, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	require.NoError(t, err)
	select {
	case <-asked:
	case err := <-ended:
		t.Fatalf("the host has ended: %v", err)
	}

	_, err = fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`) // it would be answered first
	require.NoError(t, err)
	require.NoError(t, in.Close())
	_, err = io.Copy(io.Discard, out) // to its end
	require.NoError(t, err)
	for lines := bufio.NewScanner(said); ; {
		require.True(t, lines.Scan(), "the host ended without a notice")
		if strings.Contains(lines.Text(), "waiting until the provider of a sign-in has renewed its tokens") {
			break
		}
	}
	if runtime.GOOS != "windows" {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM)) // as clients send it then
	}
	_, tokens = stored()
	require.Equal(t, "refresh-1", tokens["refresh_token"])
	release()
	require.NoError(t, <-ended)
	_, tokens = stored()
	require.Equal(t, "refresh-2", tokens["refresh_token"])
}
