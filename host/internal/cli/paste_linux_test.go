package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/cli"
	"golang.org/x/sys/unix"
)

// newSignInServer returns the URL of an MCP server that requires a sign-in, and is its own
// authorization server. codes receives the codes that the host sends.
func newSignInServer(t *testing.T, codes chan<- string) string {
	t.Helper()
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	answer := func(path string, doc func(req *http.Request) map[string]any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(doc(req)) //nolint:errcheck // the host reports it
		})
	}
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		w.WriteHeader(http.StatusUnauthorized)
	})
	answer("/.well-known/oauth-protected-resource/mcp", func(*http.Request) map[string]any {
		return map[string]any{"resource": server.URL + "/mcp", "authorization_servers": []string{server.URL}}
	})
	answer("/.well-known/oauth-authorization-server", func(*http.Request) map[string]any {
		return map[string]any{
			"issuer": server.URL, "authorization_endpoint": server.URL + "/authorize", "token_endpoint": server.URL + "/token",
			"code_challenge_methods_supported": []string{"S256"},
		}
	})
	answer("/token", func(req *http.Request) map[string]any {
		codes <- req.FormValue("code")
		return map[string]any{"access_token": "a", "token_type": "Bearer"}
	})
	return server.URL + "/mcp"
}

// terminalMode returns the mode of a terminal.
func terminalMode(t *testing.T, tty *os.File) unix.Termios {
	t.Helper()
	var mode *unix.Termios
	control, err := tty.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, control.Control(func(fd uintptr) { mode, err = unix.IoctlGetTermios(int(fd), unix.TCGETS) }))
	require.NoError(t, err)
	return *mode
}

// pasteArguments returns the arguments of a sign-in with --paste to the server s with an address.
func pasteArguments(t *testing.T, address, redirect string) []string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "toolroom.yaml")
	require.NoError(t, os.WriteFile(file, []byte("servers: {s: {url: '"+address+"', oauth: {client_id: c, redirect_uri: '"+redirect+"'}}}\n"), 0o600))
	return []string{"login", "s", "--paste", "--token-store", "file", "--config", file, "--state", filepath.Join(dir, "state")}
}

// A terminal in line mode cuts a line after 4095 bytes; codes of some providers are longer. The
// mode is restored at the end, also if the sign-in is interrupted.
func TestLongPastedAddress(t *testing.T) {
	for name, interrupted := range map[string]bool{"signed in": false, "interrupted": true} {
		t.Run(name, func(t *testing.T) {
			codes := make(chan string, 1)
			args := pasteArguments(t, newSignInServer(t, codes), "http://localhost/callback")
			term := newTerminal(t)
			before := terminalMode(t, term.tty)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			status := make(chan int, 1)
			go func() {
				status <- cli.Run(ctx, args, term.tty, term.tty, term.tty)
			}()
			term.sees(t, "begins with http://localhost and does not load")
			link := regexp.MustCompile(`http://127\.0\.0\.1:\d+/authorize\?[^\s]+`)
			for link.FindString(term.written()) == "" {
				term.sees(t, "\r\n\r\n")
			}
			u, err := url.Parse(link.FindString(term.written()))
			require.NoError(t, err)
			// The mode changes after the link was printed.
			for terminalMode(t, term.tty).Lflag&unix.ICANON != 0 {
				select {
				case code := <-status:
					t.Fatalf("login has ended with %d: %s", code, term.written())
				case <-time.After(time.Millisecond):
				}
			}
			if interrupted {
				cancel()
				require.Equal(t, 1, <-status)
			} else {
				code := strings.Repeat("0123456789", 900)
				fmt.Fprintf(term.keys, "%s?%s\n", u.Query().Get("redirect_uri"), url.Values{"code": {code}, "state": {u.Query().Get("state")}}.Encode()) //nolint:errcheck // login reports it
				require.Equal(t, 0, <-status, term.written())
				require.Equal(t, code, <-codes)
			}
			require.Equal(t, before, terminalMode(t, term.tty))
			if interrupted {
				_, err := term.keys.Write([]byte("\n")) // ends the reading in the background
				require.NoError(t, err)
			}
		})
	}
}

// Ctrl-\ and the end of a connection also end the sign-in with the mode restored.
func TestPasteEndedBySignal(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGQUIT, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			if ignored[sig] {
				t.Skip("it is ignored, as by nohup")
			}
			args := pasteArguments(t, newSignInServer(t, nil), "http://[::1]:8477/callback")
			term := newTerminal(t)
			before := terminalMode(t, term.tty)
			cmd := exec.Command("mcp-host", args...)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = term.tty, term.tty, term.tty
			require.NoError(t, cmd.Start())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				cmd.Wait() //nolint:errcheck // the status says it
			}()
			t.Cleanup(func() {
				cmd.Process.Kill() //nolint:errcheck // it may have ended
				<-ended
			})
			for terminalMode(t, term.tty).Lflag&unix.ICANON != 0 {
				select {
				case <-ended:
					t.Fatalf("login has ended: %s", term.written())
				case <-time.After(time.Millisecond):
				}
			}
			require.NoError(t, cmd.Process.Signal(sig))
			<-ended
			require.Equal(t, before, terminalMode(t, term.tty))
			require.Equal(t, 1, cmd.ProcessState.ExitCode())
			term.sees(t, "begins with http://[::1] and does not load")
			term.sees(t, "the sign-in was interrupted; nothing was stored")
		})
	}
}
