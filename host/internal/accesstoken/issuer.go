package accesstoken

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
)

const (
	maxAnswer          = 1 << 20          // bytes of an answer of the issuer
	timeout            = 10 * time.Second // of one request to it
	checkTime          = 5 * time.Second  // of CheckIssuer, for which a person waits
	metadataRetryPause = 5 * time.Second  // after a failure to read the metadata
	keysInterval       = 10 * time.Second // between two requests for the keys
)

// issuer holds the metadata of the authorization server.
type issuer struct {
	Issuer        string `json:"issuer"`
	KeysURL       string `json:"jwks_uri"`
	Introspection string `json:"introspection_endpoint"`
	Authorization string `json:"authorization_endpoint"`
	Token         string `json:"token_endpoint"`
	SendsIssuer   bool   `json:"authorization_response_iss_parameter_supported"`

	verifier *oidc.IDTokenVerifier
	idTokens *oidc.IDTokenVerifier // of ID tokens for this host; nil without a client id
}

// metadataRead is a running request for the metadata. issuer and err are valid after done is closed.
type metadataRead struct {
	done   chan struct{}
	issuer *issuer
	err    error
}

// metadata returns the issuer's metadata (RFC 8414, OpenID Connect Discovery).
// It is read once; a failure is repeated for some seconds without a request. Requests that
// need it at the same time wait for one answer, each until its ctx ends and at most for timeout.
func (v *Verifier) metadata(ctx context.Context) (*issuer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	read, found, err := v.beginMetadata(ctx)
	if read == nil {
		return found, err
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-read.done:
		return read.issuer, read.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
		return nil, fmt.Errorf("the issuer %s has not answered yet", v.cfg.Issuer)
	}
}

// beginMetadata returns the metadata or the last failure if it is known, and otherwise the request
// for it. It starts a request if none is running.
func (v *Verifier) beginMetadata(ctx context.Context) (*metadataRead, *issuer, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.cfg.Now()
	switch {
	case v.issuer != nil:
		return nil, v.issuer, nil
	case v.reading != nil:
		return v.reading, nil, nil
	case v.failed != nil && now.Sub(v.tried) <= metadataRetryPause && !now.Before(v.tried):
		return nil, nil, v.failed
	}
	read := &metadataRead{done: make(chan struct{})}
	v.reading = read
	go func() {
		// The request continues after the caller's has ended, because others wait for the answer, too.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*timeout)
		defer cancel()
		read.issuer, read.err = v.readMetadata(ctx)
		if read.err != nil {
			v.report(read.err)
		}
		v.mu.Lock()
		v.issuer, v.failed, v.tried, v.reading = read.issuer, read.err, v.cfg.Now(), nil
		v.mu.Unlock()
		close(read.done)
	}()
	return read, nil, nil
}

// CheckIssuer requests the metadata and the keys of the issuer, and returns the reason if tokens cannot be
// verified with them. It takes at most checkTime.
func (v *Verifier) CheckIssuer(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	from, err := v.readMetadata(limited)
	if err != nil {
		return cmp.Or(ctx.Err(), err)
	}
	introspects := from.Introspection != "" && v.cfg.ClientID != ""
	if from.KeysURL == "" {
		if introspects {
			return nil
		}
		return errors.New("the issuer's metadata has no jwks_uri")
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := v.getJSON(limited, from.KeysURL, &set); err != nil {
		return cmp.Or(ctx.Err(), fmt.Errorf("the issuer's keys cannot be read: %w", err))
	}
	if len(set.Keys) == 0 && !introspects {
		return fmt.Errorf("the issuer has no keys at %s", from.KeysURL)
	}
	return nil
}

// readMetadata requests the issuer's metadata from the addresses of metadataURLs, one after
// another, until one has the address of the keys, which RFC 8414 does not require. It
// returns the reasons if none has metadata, and an error if it is of another issuer or
// names an unsafe address. ctx needs a deadline: each address gets its share of the time.
func (v *Verifier) readMetadata(ctx context.Context) (*issuer, error) {
	var reasons []string
	var keyless *issuer
	addresses := metadataURLs(v.cfg.Issuer)
	for i, address := range addresses {
		found := &issuer{}
		if err := v.getMetadata(ctx, address, len(addresses)-i, found); err != nil {
			reasons = append(reasons, err.Error())
			continue
		}
		if found.Issuer != v.cfg.Issuer {
			return nil, fmt.Errorf("the metadata at %s belongs to the issuer %q, not to %s", address, found.Issuer, v.cfg.Issuer)
		}
		for name, endpoint := range map[string]string{
			"jwks_uri": found.KeysURL, "introspection_endpoint": found.Introspection, "authorization_endpoint": found.Authorization, "token_endpoint": found.Token,
		} {
			if err := checkEndpoint(endpoint); err != nil && endpoint != "" {
				return nil, fmt.Errorf("the issuer's %s: %w", name, err)
			}
		}
		keys := oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), v.keyClient()), found.KeysURL)
		found.verifier = oidc.NewVerifier(v.cfg.Issuer, keys, &oidc.Config{
			SkipClientIDCheck: true, SkipExpiryCheck: true, SupportedSigningAlgs: algorithms, Now: v.cfg.Now, // user checks both
		})
		if v.cfg.ClientID != "" {
			found.idTokens = oidc.NewVerifier(v.cfg.Issuer, keys, &oidc.Config{ClientID: v.cfg.ClientID, SupportedSigningAlgs: algorithms, Now: v.cfg.Now})
		}
		if found.KeysURL != "" {
			return found, nil
		}
		if keyless == nil {
			keyless = found
		}
	}
	if keyless != nil {
		return keyless, nil
	}
	return nil, fmt.Errorf("the issuer %s has no metadata: %s", v.cfg.Issuer, strings.Join(reasons, "; "))
}

// getMetadata requests one of so many addresses of the metadata. If it does not answer, the others have time left.
func (v *Verifier) getMetadata(ctx context.Context, address string, of int, into *issuer) error {
	share := timeout
	if end, ok := ctx.Deadline(); ok {
		share = time.Until(end) / time.Duration(of)
	}
	limited, cancel := context.WithTimeout(ctx, share)
	defer cancel()
	err := v.getJSON(limited, address, into)
	if err != nil && limited.Err() != nil {
		return fmt.Errorf("%s has not answered within %s", address, textfmt.ShortDuration(share))
	}
	return err
}

// metadataURLs returns the addresses of an issuer's metadata, in the order of
// the MCP specification.
func metadataURLs(issuer string) []string {
	u, err := url.Parse(issuer)
	if err != nil {
		return nil
	}
	path := strings.TrimRight(u.Path, "/")
	base := u.Scheme + "://" + u.Host
	if path == "" {
		return []string{base + "/.well-known/oauth-authorization-server", base + "/.well-known/openid-configuration"}
	}
	return []string{
		base + "/.well-known/oauth-authorization-server" + path,
		base + "/.well-known/openid-configuration" + path,
		base + path + "/.well-known/openid-configuration",
	}
}

func checkEndpoint(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && !(u.Scheme == "http" && isLoopback(u.Hostname())) {
		return errors.New("not an address with https://")
	}
	return nil
}

// isLoopback reports whether a host name or address means this machine.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// getJSON requests an address and decodes the JSON object of the answer into into. It returns
// an error for another status than 200.
func (v *Verifier) getJSON(ctx context.Context, address string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	return v.requestJSON(req, into)
}

// requestJSON sends a request and decodes the JSON answer into into. Another status than 200 is an
// error.
func (v *Verifier) requestJSON(req *http.Request, into any) error {
	res, err := v.client.Do(req)
	if err != nil {
		return fmt.Errorf("the authorization server cannot be reached: %w", err)
	}
	defer res.Body.Close() //nolint:errcheck // it was read
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered with status %d", req.URL.Redacted(), res.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("the answer of %s: %w", req.URL.Redacted(), err)
	case len(body) > maxAnswer:
		return fmt.Errorf("the answer of %s has more than %d bytes", req.URL.Redacted(), maxAnswer)
	case json.Unmarshal(body, into) != nil:
		return fmt.Errorf("the answer of %s is not the expected JSON", req.URL.Redacted())
	}
	return nil
}

// newClient returns a client that follows no redirect: keys and answers come
// from the addresses in the metadata only.
func newClient() *http.Client {
	return &http.Client{
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// keyClient returns a client that asks for the keys at most once in keysInterval:
// tokens with invented key ids must not cause a request each.
func (v *Verifier) keyClient() *http.Client {
	next := v.client.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	c := *v.client
	c.Transport = &throttledTransport{next: next, now: v.cfg.Now}
	return &c
}

// throttledTransport requests the keys at most once in keysInterval and repeats the last
// answer in between.
type throttledTransport struct {
	next http.RoundTripper
	now  func() time.Time

	mu   sync.Mutex
	read time.Time
	body []byte
}

// RoundTrip returns the last answer with status 200 if it is not older than keysInterval,
// and otherwise sends the request. No client waits for the lock meanwhile, because oidc.RemoteKeySet sends one
// request at a time, and each of its callers waits only until its context ends.
func (p *throttledTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if since := p.now().Sub(p.read); p.body == nil || since < 0 || since > keysInterval {
		res, err := p.next.RoundTrip(req)
		if err != nil || res.StatusCode != http.StatusOK {
			return res, err
		}
		body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
		res.Body.Close() //nolint:errcheck // it was read
		if err == nil && len(body) > maxAnswer {
			err = fmt.Errorf("the keys have more than %d bytes", maxAnswer)
		}
		if err != nil {
			return nil, err
		}
		p.body, p.read = body, p.now()
	}
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {"application/json"}, "Cache-Control": {"no-store"}},
		Body:   io.NopCloser(bytes.NewReader(p.body)), ContentLength: int64(len(p.body)),
	}, nil
}

// verifyJWT checks the signature and the issuer of a token, and returns its claims. It
// returns an *Error for a token that is not valid, and another error if the issuer's keys
// cannot be read.
func (v *Verifier) verifyJWT(ctx context.Context, from *issuer, token string) (*claims, error) {
	if from.KeysURL == "" {
		return nil, errors.New("the issuer's metadata has no jwks_uri")
	}
	head, _, _ := strings.Cut(token, ".")
	text, err := base64.RawURLEncoding.DecodeString(head)
	var header struct {
		Type string `json:"typ"`
	}
	if err != nil || json.Unmarshal(text, &header) != nil {
		return nil, invalidToken("the access token is malformed")
	}
	// A token of another kind of the same issuer, such as a logout token, is
	// none (RFC 8725, section 3.11).
	kind := strings.TrimPrefix(strings.ToLower(header.Type), "application/")
	if !slices.Contains([]string{"", "jwt", "at+jwt"}, kind) {
		return nil, invalidToken("the token is of type %.40q, not an access token", header.Type)
	}
	verified, err := from.verifier.Verify(ctx, token)
	if err != nil {
		if strings.Contains(err.Error(), "fetching keys") {
			return nil, errors.New("the issuer's keys cannot be read") // the cause can quote the answer, and any client sees this text
		}
		return nil, invalidToken("the access token is not valid: its signature or issuer is wrong")
	}
	c := &claims{}
	if err := verified.Claims(&c.members); err != nil {
		return nil, invalidToken("the access token is malformed")
	}
	return c, nil
}
