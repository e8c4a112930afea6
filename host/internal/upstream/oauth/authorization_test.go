package oauth

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Some providers need further parameters: Google access_type for a refresh token, Auth0 audience.
func TestAuthorizationParameters(t *testing.T) {
	p := newProvider(t)
	p.metadata = func(m map[string]any) { m["scopes_supported"] = []string{"offline_access"} }
	c := p.config()
	c.AuthorizationParameters = map[string]string{"access_type": "offline", "audience": "https://api.example.com/?a=b&state=c", "prompt": "select_account"}
	var asked url.Values
	_, err := Login(t.Context(), c, Prompt{Open: func(address string) error {
		u, err := url.Parse(address)
		require.NoError(t, err)
		asked = u.Query()
		return p.browse(address)
	}})
	require.NoError(t, err)
	for name, value := range c.AuthorizationParameters {
		require.Equal(t, []string{value}, asked[name])
	}
	require.Len(t, asked["state"], 1)
	require.Empty(t, p.forms[0].Get("access_type"), "not in the request for tokens")

	device := p.config()
	device.AuthorizationParameters = c.AuthorizationParameters
	var form url.Values
	p.onDevice = func(req *http.Request) { form = req.PostForm }
	_, err = Login(t.Context(), device, Prompt{Device: func(string, string) error { return nil }})
	require.NoError(t, err)
	require.Equal(t, "offline", form.Get("access_type"))

	machine := p.config()
	machine.AuthorizationParameters = map[string]string{"audience": "a"}
	machine.Grant, machine.ClientID, machine.ClientSecret = ClientCredentials, "machine", "s"
	_, err = NewSource(machine).Refused(t.Context(), "", http.StatusUnauthorized, nil)
	require.NoError(t, err)
	require.Equal(t, "a", p.forms[len(p.forms)-1].Get("audience"))
}

func TestReservedParameters(t *testing.T) {
	for name, want := range map[string]string{
		"redirect_uri": "the host sets it", "STATE": "the host sets it", "code_challenge": "the host sets it", "request_uri": "the host sets it",
		"": "not the name", "a b": "not the name",
	} {
		c := Config{Server: "notes", URL: "https://mcp.example.com/mcp", Storage: Storage{State: "s"}, AuthorizationParameters: map[string]string{name: "x"}}
		require.ErrorContains(t, c.Validate(), want, name)
	}
	c := Config{AuthorizationParameters: map[string]string{}}
	for i := range maxParameters + 1 {
		c.AuthorizationParameters[fmt.Sprint("p", i)] = ""
	}
	setting, err := c.ValidateRequest()
	require.Equal(t, "authorization_parameters", setting)
	require.ErrorContains(t, err, "at most 32")
}

// Microsoft Entra ID supports PKCE, and does not announce it.
func TestPKCEThatIsNotAnnounced(t *testing.T) {
	for _, methods := range []any{nil, []string{"plain"}} {
		p := newProvider(t)
		p.metadata = func(m map[string]any) { m["code_challenge_methods_supported"] = methods }
		c := p.config()
		c.AssumePKCE = true
		_, err := p.login(c)
		if methods != nil {
			require.ErrorContains(t, err, "does not support PKCE with S256")
			continue
		}
		require.NoError(t, err)
		require.NotEmpty(t, p.challenge)
	}
}

// The metadata of Microsoft Entra ID for several tenants name a template as issuer.
func TestIssuerTemplate(t *testing.T) {
	const template = "https://login.example.com/{tenantid}/v2.0"
	for issuer, want := range map[string]bool{
		"https://login.example.com/common/v2.0":             true,
		"https://login.example.com/a/b/v2.0":                false,
		"https://login.example.com//v2.0":                   false,
		"https://login.example.com/v2.0":                    false,
		"https://login.example.com/common":                  false,
		"https://login.example.com/common?/v2.0":            false,
		"https://attacker.example/common/v2.0":              false,
		"https://login.example.com.attacker.example/x/v2.0": false,
		"http://login.example.com/common/v2.0":              false,
	} {
		require.Equal(t, want, isTemplateOf(template, issuer), issuer)
	}
	require.True(t, isTemplateOf("https://login.example.com/{tenantid}", "https://login.example.com/common"))
	require.False(t, isTemplateOf("https://{tenantid}/v2.0", "https://login.example.com/v2.0"))
	require.False(t, isTemplateOf("https://login.example.com/{tenantid}x/v2.0", "https://login.example.com/common/v2.0"))
	require.False(t, isTemplateOf("/{tenantid}", "/common"))

	p := newProvider(t)
	p.resource = func(m map[string]any) { m["authorization_servers"] = []string{p.auth.URL + "/common/v2.0"} }
	p.metadata = func(m map[string]any) { m["issuer"] = p.auth.URL + "/{tenantid}/v2.0" }
	p.redirect = func(v url.Values) { v.Set("iss", p.auth.URL+"/common/v2.0") }
	status, err := p.login(p.config())
	require.NoError(t, err)
	require.Equal(t, p.auth.URL+"/common/v2.0", status.Issuer)
}

func TestRedirectAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"":                               "http://127.0.0.1:PORT/callback",
		"http://localhost:FREE/callback": "http://localhost:PORT/callback",
		"http://localhost/a/b":           "http://localhost:PORT/a/b",
		"http://localhost":               "http://localhost:PORT",
		"http://127.0.0.1/callback/":     "http://127.0.0.1:PORT/callback/",
	} {
		t.Run(address, func(t *testing.T) {
			p := newProvider(t)
			c := p.config()
			c.RedirectURI = address
			var got string
			login := func() error {
				port := freePort(t)
				c.RedirectURI = strings.ReplaceAll(address, "FREE", port)
				_, err := Login(t.Context(), c, Prompt{Open: func(address string) error {
					u, err := url.Parse(address)
					require.NoError(t, err)
					got = u.Query().Get("redirect_uri")
					return p.browse(address)
				}})
				if err == nil && c.RedirectURI != address {
					require.Contains(t, got, ":"+port+"/")
				}
				return err
			}
			err := login()
			for range 10 { // another program can take the port
				if err != nil && strings.Contains(err.Error(), "no port for the redirect") {
					err = login()
				}
			}
			require.NoError(t, err)
			u, err := url.Parse(got)
			require.NoError(t, err)
			require.Equal(t, strings.ReplaceAll(want, "PORT", u.Port()), got)
			require.Equal(t, got, p.forms[0].Get("redirect_uri"))
			require.Equal(t, []any{"native"}, p.registered)
		})
	}
	for address, want := range map[string]string{
		"https://localhost/callback": "not an address such as", "http://localhost/callback?a=b": "not an address such as", "x": "not an address such as",
		"http://localhost/callback#a": "not an address such as", "http://a@localhost/callback": "not an address such as",
		"http://attacker.example/callback": "not an address of this machine", "http://localhost.attacker.example/": "not an address of this machine",
		"http://0.0.0.0/": "not an address of this machine", "http://localhost:/": "no port after the colon", "http://localhost:1/": "another port than redirect_port",
		"http://localhost:65536/": "a port above 65535", "http://localhost:100000/": "a port above 65535",
	} {
		c := Config{RedirectURI: address, RedirectPort: 2}
		if strings.Contains(want, "65535") {
			c.RedirectPort = 0
		}
		setting, err := c.ValidateRequest()
		require.Equal(t, "redirect_uri", setting)
		require.ErrorContains(t, err, want, address)
	}
}

// A browser that is sent to localhost can use either of its addresses, and another program must
// not receive the code.
func TestBothAddressesOfLocalhost(t *testing.T) {
	listeners, err := listenLocally("localhost", "0")
	require.NoError(t, err)
	defer closeAll(listeners)
	_, port, err := net.SplitHostPort(listeners[0].Addr().String())
	require.NoError(t, err)
	if len(listeners) < 2 {
		t.Skip("this machine has no IPv6")
	}
	require.Equal(t, "[::1]:"+port, listeners[1].Addr().String())
	_, err = listenLocally("localhost", port)
	require.Error(t, err)

	other, err := net.Listen("tcp", "[::1]:0")
	require.NoError(t, err)
	defer other.Close() //nolint:errcheck // of the test
	_, port, err = net.SplitHostPort(other.Addr().String())
	require.NoError(t, err)
	_, err = listenLocally("localhost", port)
	require.Error(t, err, "another program has the port on ::1")
}

// freePort returns a port that nobody listens on.
func freePort(t *testing.T) string {
	t.Helper()
	listeners, err := listenLocally("localhost", "0")
	require.NoError(t, err)
	defer closeAll(listeners)
	_, port, err := net.SplitHostPort(listeners[0].Addr().String())
	require.NoError(t, err)
	return port
}

func TestHostOfRedirect(t *testing.T) {
	for address, headers := range map[string]map[string]bool{
		"http://localhost:80/":    {"localhost": true, "localhost:80": true, "127.0.0.1": false},
		"http://localhost:8400/":  {"localhost": false, "LOCALHOST:8400": true, "localhost.attacker.example:8400": false},
		"http://[::1]:80/":        {"[::1]": true},
		"http://127.0.0.1:8400/x": {"127.0.0.1:8400": true, "localhost:8400": false},
	} {
		u, err := url.Parse(address)
		require.NoError(t, err)
		for header, want := range headers {
			require.Equal(t, want, isHostOf(header, u), "%s %s", address, header)
		}
	}
}
