//go:build oracle

package signin

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
)

// Variables of the headless browser; see oracle/browser.mjs.
const (
	chromiumNode   = "SIGNIN_CHROMIUM_NODE" // makes the test's program start the browser, with this Node.js
	chromiumReport = "SIGNIN_CHROMIUM_REPORT"
	chromiumDeny   = "SIGNIN_CHROMIUM_DENY"
)

// runChromium runs the headless browser with an address.
func runChromium(node, address string) error {
	browser := exec.Command(node, filepath.Join(oracle.Dir(), "browser.mjs"), address)
	browser.Stderr = os.Stderr
	return browser.Run()
}

// chromiumPage is a page as a person sees it. Problems are errors and warnings in the
// browser's console, errors of scripts, and requests that failed or were blocked.
type chromiumPage struct {
	URL                  string
	Status               int
	Title, Heading, Text string
	Problems             []string
}

// chromium makes programs of the test start a headless Chromium as their browser, and
// returns the variables for it and a function that returns the pages that it saw.
func chromium(t *testing.T) (env []string, pages func() []chromiumPage) {
	t.Helper()
	report := filepath.Join(t.TempDir(), "report")
	env = []string{chromiumNode + "=" + oracle.Path(t, "node"), chromiumReport + "=" + report}
	return env, func() (pages []chromiumPage) {
		t.Helper()
		var text []byte
		require.Eventually(t, func() bool {
			var err error
			text, err = os.ReadFile(report)
			require.True(t, err == nil || errors.Is(err, fs.ErrNotExist), err)
			return err == nil
		}, 5*time.Minute, 50*time.Millisecond, "the browser did not end")
		require.NoError(t, json.Unmarshal(text, &pages), "%s", text)
		require.NotEmpty(t, pages)
		return pages
	}
}

// last returns the last page, which must be the host's, at an address that begins with
// origin, and the headings of the pages before.
func last(t *testing.T, pages []chromiumPage, origin string) (page chromiumPage, before []string) {
	t.Helper()
	for _, p := range pages {
		before = append(before, p.Heading)
	}
	page = pages[len(pages)-1]
	require.True(t, strings.HasPrefix(page.URL, origin), page.URL)
	require.Equal(t, page.Title, page.Heading)
	return page, before[:len(before)-1]
}

// loginInChromium signs in to the server notes, with the browser that the host finds.
func (w *world) loginInChromium(env ...string) (out string, ok bool) {
	login := w.command("login", "notes", "--timeout", "5m")
	login.Env = append(login.Env, env...)
	text, err := login.CombinedOutput()
	return string(text), err == nil
}

// The program that opens links on a Linux desktop starts the browser. It shows the
// provider's pages and ends at a page of the host.
func TestSignInInChromium(t *testing.T) {
	w := newWorld(t, "")
	env, pages := chromium(t)
	desktop := t.TempDir()
	require.NoError(t, os.Symlink(os.Args[0], filepath.Join(desktop, "xdg-open")))
	out, ok := w.loginInChromium(append(env, "BROWSER=", "PATH="+desktop+":"+os.Getenv("PATH"))...)
	require.True(t, ok, out)
	require.Contains(t, out, "notes: signed in, renewed at ")

	page, before := last(t, pages(), "http://127.0.0.1:")
	require.Equal(t, []string{"Sign-in", "Authorize"}, before)
	require.Equal(t, "Signed in", page.Title)
	require.Contains(t, page.Text, "Signed in\n\nmcp-host is signed in to server notes. You can close this page.")
	require.Contains(t, page.Text, "The tokens are in a file that only you can read, because the keyring of the system cannot be used")
	require.Empty(t, page.Problems)
	require.Equal(t, 200, page.Status)

	require.Contains(t, w.succeeds(w.echo()...), "hello")
	require.Equal(t, []string{"alice"}, slices.Compact(w.users))
}

// The user refuses at the provider's page of consent: the page and the terminal tell it,
// and nothing is stored.
func TestConsentDeniedInChromium(t *testing.T) {
	w := newWorld(t, "")
	env, pages := chromium(t)
	out, ok := w.loginInChromium(append(env, chromiumDeny+"="+w.issuer)...)
	require.False(t, ok, out)
	require.Contains(t, out, `login notes: the authorization server refused: "access_denied"`)

	page, before := last(t, pages(), "http://127.0.0.1:")
	require.Equal(t, []string{"Sign-in", "Authorize"}, before)
	require.Equal(t, "Sign-in failed", page.Title)
	require.Contains(t, page.Text, `The sign-in to server notes failed: the authorization server refused: "access_denied"`)
	require.Equal(t, 400, page.Status)
	require.NotContains(t, w.stored(), "access_token")
	out, ok = w.run(w.echo()...)
	require.False(t, ok)
	require.Contains(t, out, "mcp-host login notes")
}

// A user of serve opens the link on the host's door. The browser first signs in at the
// issuer of the users, then at the server's provider.
func TestUserSignsInByLinkInChromium(t *testing.T) {
	for _, deny := range []bool{false, true} {
		t.Run(fmt.Sprintf("deny %v", deny), func(t *testing.T) {
			w := newTeam(t, "jwt", true, "credentials: caller")
			v := visitors["SDK 2, 2026-07-28"]
			v.Token, v.Text, v.Links, v.Calls = w.token("alice"), "from alice", true, []string{"notes__toolroom_sign_in", "notes__echo"}
			if deny {
				v.Calls = v.Calls[:1]
			}
			env, pages := chromium(t)
			if deny {
				env = append(env, chromiumDeny+"="+w.provider)
			}
			for _, variable := range env {
				name, value, _ := strings.Cut(variable, "=")
				t.Setenv(name, value)
			}
			got := w.visit("alice", v)
			require.Len(t, got.Links, 1)
			page, before := last(t, pages(), w.url+"/sign-in/")
			if deny {
				require.Equal(t, "Sign-in failed", page.Title)
				require.Contains(t, page.Text, `The sign-in to server notes failed: the authorization server refused: "access_denied"`)
				require.True(t, got.Results[0].IsError)
				require.Contains(t, got.Results[0].Content[0].Text, "access_denied")
				require.NotContains(t, w.stored(), "access_token")
				return
			}
			require.Equal(t, []string{"Sign-in", "Authorize", "Sign-in", "Authorize"}, before)
			require.Equal(t, "Signed in", page.Title)
			require.Equal(t, "Signed in\n\nSigned in to server notes. You can close this page.", strings.TrimSpace(page.Text))
			require.Empty(t, page.Problems)
			got.requireText(t, 0, "Signed in to server notes")
			got.requireText(t, 1, "from alice")
			require.Equal(t, []string{"alice: from alice"}, w.calls())
		})
	}
}
