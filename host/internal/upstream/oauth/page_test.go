package oauth

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The page in the browser tells the result of the sign-in, after it is known.
func TestPageAfterASignIn(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(*provider, *Config)
		fails   bool
		want    []string
	}{
		"success": {func(*provider, *Config) {}, false, []string{"200 ", "<title>Signed in</title>", "mcp-host is signed in to server notes. You can close this page.</p>"}},
		"refused": {func(p *provider, _ *Config) {
			p.redirect = func(v url.Values) { v.Del("code"); v.Set("error", "<script>") }
		}, true, []string{"400 ", "<title>Sign-in failed</title>", "&#34;&lt;script&gt;&#34;"}},
		"no token": {func(p *provider, _ *Config) {
			p.token = func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusTeapot); return true }
		}, true, []string{"400 ", "The sign-in to server notes failed: ", "418"}},
		"no keyring": {func(_ *provider, c *Config) {
			c.Keyring = &fakeKeyring{err: errors.New("no D-Bus")}
		}, false, []string{"200 ", "The tokens are in a file that only you can read, because the keyring of the system cannot be used: no D-Bus."}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			cfg := p.config()
			cfg.Kind = InFile
			c.prepare(p, &cfg)
			if cfg.Keyring != nil {
				cfg.Kind = ""
			}
			_, err := p.login(cfg)
			require.Equal(t, c.fails, err != nil, err)
			p.browsers.Wait()
			require.Len(t, p.pages, 1)
			for _, want := range c.want {
				require.Contains(t, p.pages[0], want)
			}
			require.NotContains(t, strings.ToLower(p.pages[0]), "<script")
			require.Contains(t, p.header.Get("Content-Security-Policy"), "default-src 'none'")
			require.Equal(t, "no-store", p.header.Get("Cache-Control"))
			require.Equal(t, "no-referrer", p.header.Get("Referrer-Policy"))
			if cfg.Keyring != nil { // it is said once
				_, err := p.login(cfg)
				require.NoError(t, err)
				p.browsers.Wait()
				require.NotContains(t, p.pages[1], "keyring")
			}
		})
	}
}
