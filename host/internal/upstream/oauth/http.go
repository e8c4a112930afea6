package oauth

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/httpguard"
	"github.com/toolroom-mcp/toolroom/internal/netguard"
	"github.com/toolroom-mcp/toolroom/internal/redact"
)

// The bounds of a request for metadata or tokens.
const (
	connectTimeout = 10 * time.Second
	requestTimeout = 30 * time.Second
	maxBody        = 1 << 20
	maxRedirects   = 3
)

// newHTTP returns a client for requests to addresses that servers name. It
// connects to public addresses, and to private ones if the MCP server is at
// one. Only a request without credentials (GET) follows redirects.
func (c Config) newHTTP() *http.Client {
	private := c.isPrivate()
	control := func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		class := netguard.Classify(at.Addr().Unmap().WithZone(""))
		if class.Reach == netguard.Public || private && class.Reach != netguard.Never {
			return nil
		}
		return fmt.Errorf("%w to %s, which is %s", errAddressRefused, at.Addr(), class.Name)
	}
	return &http.Client{
		Timeout: requestTimeout,
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if req.Method != http.MethodGet || via[0].Method != http.MethodGet {
				return http.ErrUseLastResponse
			}
			if len(via) > maxRedirects {
				return fmt.Errorf("more than %d redirects in a row", maxRedirects)
			}
			_, err := c.checkAddress("redirect target", req.URL.String())
			return err
		},
		Transport: httpguard.RefuseUpgrades(&http.Transport{
			Proxy: http.ProxyFromEnvironment,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				d := net.Dialer{Timeout: connectTimeout}
				if !netguard.IsProxy(address) {
					d.Control = control
				}
				return d.DialContext(ctx, network, address)
			},
			TLSHandshakeTimeout: connectTimeout, ForceAttemptHTTP2: true,
			MaxResponseHeaderBytes: 64 << 10, DisableKeepAlives: true,
		}),
	}
}

// errAddressRefused is the error for an address that a request must not lead to.
var errAddressRefused = errors.New("refused to connect")

// unreachableError is a request without an answer, or with an answer that broke off.
type unreachableError struct {
	text string
	err  error
}

func (e *unreachableError) Error() string { return e.text + ": " + e.err.Error() }

func (e *unreachableError) Unwrap() error { return e.err }

// isTemporary reports whether a request that failed with err can succeed later: the server
// was not reached, or it answered with 429 or 5xx.
func isTemporary(err error) bool {
	if status := (*statusError)(nil); errors.As(err, &status) {
		return status.status == http.StatusTooManyRequests || status.status >= 500
	}
	unreachable := (*unreachableError)(nil)
	return errors.As(err, &unreachable) && !errors.Is(err, errAddressRefused)
}

// statusError is an answer with an error status, with the error code of OAuth
// if the body has one, or an answer with another status that has such a code.
type statusError struct {
	host        string
	status      int
	code        string // RFC 6749, 5.2; "": none
	description string
	nonce       string // for a proof of possession
}

func (e *statusError) Error() string {
	text := fmt.Sprintf("%s answered with status %d", e.host, e.status)
	if e.code != "" {
		text += fmt.Sprintf(" %.60q", e.code)
	}
	if e.description != "" {
		text += fmt.Sprintf(" (%.200q)", e.description)
	}
	return text
}

// sendRequest sends a request and decodes a JSON answer into result; nil: the answer is not read. An
// answer with another status than 2xx, or to a POST with an error code, is a *statusError; GitHub and
// Slack send error codes with status 200. If the server was not reached, the error is an
// *unreachableError. Errors never quote bodies, which may hold credentials.
func sendRequest(client *http.Client, req *http.Request, agent string, result any) error {
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", agent)
	res, err := client.Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) { // whose text has the address, with its query
			err = wrapped.Err
		}
		return &unreachableError{"cannot reach " + req.URL.Host, err}
	}
	defer res.Body.Close() //nolint:errcheck // only read from
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody+1))
	switch {
	case err != nil:
		return &unreachableError{"the answer of " + req.URL.Host + " broke off", err}
	case len(body) > maxBody:
		return fmt.Errorf("the answer of %s is larger than %d bytes", req.URL.Host, maxBody)
	}
	var told struct{ Error, Error_description string } //nolint:revive // as it is written
	if json.Unmarshal(body, &told) != nil {
		told.Error, told.Error_description = "", ""
	}
	switch isError := res.StatusCode < 200 || res.StatusCode > 299; {
	case isError || req.Method == http.MethodPost && told.Error != "":
		return &statusError{host: req.URL.Host, status: res.StatusCode, nonce: res.Header.Get("DPoP-Nonce"), code: told.Error, description: told.Error_description}
	case result == nil:
		return nil
	}
	// Documents below .well-known are often files that are served with another
	// type than JSON.
	if err := json.Unmarshal(body, result); err != nil {
		if media := res.Header.Get("Content-Type"); !strings.HasPrefix(media, "application/json") {
			return fmt.Errorf("%s answered with the type %.60q instead of JSON", req.URL.Host, media)
		}
		if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) && wrong.Field != "" {
			return fmt.Errorf("the answer of %s is not the expected JSON: %.60q has another type", req.URL.Host, wrong.Field)
		}
		return fmt.Errorf("the answer of %s is not the expected JSON", req.URL.Host)
	}
	return nil
}

// userAgent returns the value of the header User-Agent.
func (c Config) userAgent() string { return "toolroom/" + c.Version }

// getJSON requests an address and decodes the answer into result; see sendRequest.
func (c Config) getJSON(ctx context.Context, client *http.Client, address string, result any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return errors.New("the address is malformed")
	}
	return sendRequest(client, req, c.userAgent(), result)
}

// postJSON posts body as JSON and decodes the answer into result; see sendRequest.
func (c Config) postJSON(ctx context.Context, client *http.Client, address string, body, result any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(raw))
	if err != nil {
		return errors.New("the address is malformed")
	}
	req.Header.Set("Content-Type", "application/json")
	return sendRequest(client, req, c.userAgent(), result)
}

// postForm posts a form with the credentials of a client, which it may add to the form, and decodes
// the answer into result; see sendRequest.
func (c Config) postForm(ctx context.Context, client *http.Client, address string, as registration, form url.Values, result any) error {
	return c.postProved(ctx, client, address, as, form, "", result)
}

// postProved does the same as postForm, with a proof of possession; "": without. It returns
// the errors of sendRequest, and of signing.
func (c Config) postProved(ctx context.Context, client *http.Client, address string, as registration, form url.Values, proof string, result any) error {
	var basic string
	switch as.AuthMethod {
	case basicAuth:
		basic = base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(as.ClientID) + ":" + url.QueryEscape(as.ClientSecret)))
	case postAuth:
		form.Set("client_id", as.ClientID)
		form.Set("client_secret", as.ClientSecret)
	case keyAuth:
		signed, err := c.clientAssertion(as)
		if err != nil {
			return err
		}
		form.Set("client_id", as.ClientID)
		form.Set("client_assertion_type", assertionType)
		form.Set("client_assertion", signed)
	default:
		form.Set("client_id", as.ClientID)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return errors.New("the address is malformed")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if proof != "" {
		req.Header.Set("DPoP", proof)
	}
	if basic != "" {
		req.Header.Set("Authorization", "Basic "+basic)
	}
	err = sendRequest(client, req, c.userAgent(), result)
	hideSent(err, form, as.ClientSecret, basic)
	return err
}

// publicParameters are parameters of requests that are no secrets.
var publicParameters = []string{
	"grant_type", "client_id", "scope", "resource", "redirect_uri", "client_assertion_type", "token_type_hint", "audience",
	"subject_token_type", "requested_token_type",
}

// minSecret is the least length of a sent value that hideSent hides: a shorter one can be
// a part of a word.
const minSecret = 6

// hideSent replaces the secrets that a request sent, those in form and others, in the texts
// of the answer's error, which models and logs get: some servers repeat them there.
func hideSent(err error, form url.Values, others ...string) {
	status := (*statusError)(nil)
	if !errors.As(err, &status) {
		return
	}
	for name, values := range form {
		if !slices.Contains(publicParameters, name) {
			others = append(others, values...)
		}
	}
	slices.SortFunc(others, func(a, b string) int { return len(b) - len(a) }) // one can be a part of another
	for _, secret := range others {
		if len(secret) < minSecret {
			continue
		}
		for _, spelling := range []string{secret, url.QueryEscape(secret)} {
			status.code = strings.ReplaceAll(status.code, spelling, "***")
			status.description = strings.ReplaceAll(status.description, spelling, "***")
		}
	}
	status.description = redact.Text(status.description)
}
