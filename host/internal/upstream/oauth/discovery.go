package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// resourceMetadata is the metadata of a protected resource (RFC 9728), here of the MCP
// server.
type resourceMetadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	ScopesSupported      []string `json:"scopes_supported"`
	DPoPRequired         bool     `json:"dpop_bound_access_tokens_required"`
	DPoPAlgorithms       []string `json:"dpop_signing_alg_values_supported"`

	guessed bool  // the server has none, so that it is its own authorization server
	fault   error // of an address that may have some; only with guessed
}

// serverMetadata is of RFC 8414, 8628, 9207 and the draft of client metadata
// documents.
type serverMetadata struct {
	Issuer                string   `json:"issuer"`
	AuthorizationEndpoint string   `json:"authorization_endpoint"`
	TokenEndpoint         string   `json:"token_endpoint"`
	RegistrationEndpoint  string   `json:"registration_endpoint"`
	RevocationEndpoint    string   `json:"revocation_endpoint"`
	DeviceEndpoint        string   `json:"device_authorization_endpoint"`
	ScopesSupported       []string `json:"scopes_supported"`
	AuthMethods           []string `json:"token_endpoint_auth_methods_supported"`
	ChallengeMethods      []string `json:"code_challenge_methods_supported"`
	TakesMetadataDocument bool     `json:"client_id_metadata_document_supported"`
	SendsIssuer           bool     `json:"authorization_response_iss_parameter_supported"`
	DPoPAlgorithms        []string `json:"dpop_signing_alg_values_supported"`
}

// resourceMetadata finds the protected resource metadata: at the address of the challenge,
// or else at the well-known addresses of the server's path and root. Without any, the
// server's origin is its own authorization server, as in version 2025-03-26. It returns an
// error for metadata of another resource, and for any fault at the address of the challenge.
func (c Config) resourceMetadata(ctx context.Context, client *http.Client, challenge Challenge) (resourceMetadata, error) {
	server, err := url.Parse(c.URL)
	if err != nil {
		return resourceMetadata{}, err
	}
	origin := server.Scheme + "://" + server.Host
	var found resourceMetadata
	try := func(address string) error {
		found = resourceMetadata{}
		if err := c.getMetadata(ctx, client, "protected resource metadata", address, &found); err != nil {
			return err
		}
		if !coversAddress(found.Resource, server) {
			return fmt.Errorf("the metadata at %.200q is for the resource %.200q, not for %.200q", address, found.Resource, origin+server.Path)
		}
		if len(found.AuthorizationServers) == 0 {
			return fmt.Errorf("the metadata at %.200q names no authorization server", address)
		}
		return nil
	}
	if challenge.Metadata != "" {
		if _, err := c.checkAddress("resource metadata address", challenge.Metadata); err != nil {
			return found, err
		}
		return found, clearOnError(try(challenge.Metadata), &found)
	}
	addresses := []string{origin + "/.well-known/oauth-protected-resource"}
	if path := strings.Trim(server.EscapedPath(), "/"); path != "" {
		addresses = slices.Insert(addresses, 0, addresses[0]+"/"+path)
	}
	var fault error
	for _, address := range addresses {
		err := try(address)
		var none *noDocumentError
		if !errors.As(err, &none) {
			return found, clearOnError(err, &found)
		}
		if !none.missing && fault == nil {
			fault = err
		}
	}
	return resourceMetadata{Resource: c.URL, AuthorizationServers: []string{origin}, guessed: true, fault: fault}, nil
}

// clearOnError sets found to zero unless err is nil, and returns err.
func clearOnError(err error, found *resourceMetadata) error {
	if err != nil {
		*found = resourceMetadata{}
	}
	return err
}

// A noDocumentError tells that there is no metadata at an address: the server answered with an
// error status or with something else. Single-page applications answer each path with a page.
type noDocumentError struct {
	error
	missing bool // whether the status was 400 to 499
}

// Unwrap returns the wrapped error.
func (e *noDocumentError) Unwrap() error { return e.error }

// getMetadata requests a document of metadata, which what names in errors. It returns a
// *noDocumentError if the server has none at the address.
func (c Config) getMetadata(ctx context.Context, client *http.Client, what, address string, doc interface{ isMetadata() bool }) error {
	err := c.getJSON(ctx, client, address, doc)
	if err == nil && !doc.isMetadata() {
		err = errors.New("the JSON document there is something else")
	}
	if err == nil {
		return nil
	}
	err = fmt.Errorf("the %s at %.200q: %w", what, address, err)
	var unreachable *unreachableError
	if errors.As(err, &unreachable) { // other addresses are at the same host
		return err
	}
	var status *statusError
	return &noDocumentError{err, errors.As(err, &status) && status.status >= 400 && status.status < 500}
}

func (m *resourceMetadata) isMetadata() bool {
	return m.Resource != "" || len(m.AuthorizationServers) > 0
}

func (m *serverMetadata) isMetadata() bool { return m.Issuer != "" || m.TokenEndpoint != "" }

// coversAddress reports whether metadata of a resource applies to a server's address:
// the same origin, and the same path or one above it (RFC 8707 allows the less
// specific identifier).
func coversAddress(resource string, server *url.URL) bool {
	r, err := url.Parse(resource)
	if err != nil || !strings.EqualFold(r.Scheme, server.Scheme) || !strings.EqualFold(hostPort(r), hostPort(server)) {
		return false
	}
	above, path := strings.TrimSuffix(r.EscapedPath(), "/"), strings.TrimSuffix(server.EscapedPath(), "/")
	return above == path || strings.HasPrefix(path, above+"/")
}

// hostPort returns the host with its port, by default that of the scheme.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
	}
	return u.Hostname() + ":" + port
}

// maxIssuers bounds the authorization servers of a resource that are tried.
const maxIssuers = 4

// authorizationServer requests the metadata of the authorization servers of a resource and returns
// those of the first that answers. For a server without resource metadata and without
// metadata at its origin, it returns the addresses of version 2025-03-26.
func (c Config) authorizationServer(ctx context.Context, client *http.Client, r resourceMetadata) (serverMetadata, error) {
	var fault error
	for _, issuer := range r.AuthorizationServers[:min(len(r.AuthorizationServers), maxIssuers)] {
		m, err := c.serverMetadata(ctx, client, issuer)
		var none *noDocumentError
		var unreachable *unreachableError
		switch {
		case err == nil:
			return m, c.checkServer(m)
		case !errors.As(err, &none) && !errors.As(err, &unreachable):
			return serverMetadata{}, err
		case none != nil && none.missing && r.guessed && r.fault == nil:
			return guessedMetadata(issuer), nil
		case fault == nil:
			fault = err
		default:
			fault = withFault(fault, err)
		}
	}
	if r.fault != nil {
		fault = withFault(r.fault, fault)
	}
	return serverMetadata{}, fault
}

// guessedMetadata returns the addresses of an authorization server in version 2025-03-26.
func guessedMetadata(issuer string) serverMetadata {
	base := strings.TrimSuffix(issuer, "/")
	return serverMetadata{
		Issuer: issuer, AuthorizationEndpoint: base + "/authorize", TokenEndpoint: base + "/token",
		RegistrationEndpoint: base + "/register", ChallengeMethods: []string{"S256"},
	}
}

// serverMetadata requests the metadata of an issuer, and checks no address in it. It returns a
// *noDocumentError if there is none, and an error for metadata of another issuer.
func (c Config) serverMetadata(ctx context.Context, client *http.Client, issuer string) (serverMetadata, error) {
	at, err := c.checkAddress("authorization server", issuer)
	if err != nil {
		return serverMetadata{}, err
	}
	var fault error
	for _, address := range wellKnownAddresses(at) {
		var m serverMetadata
		err := c.getMetadata(ctx, client, "metadata of the authorization server", address, &m)
		var none *noDocumentError
		switch {
		case errors.As(err, &none):
			if !none.missing && fault == nil {
				fault = err
			}
			continue
		case err != nil:
			return serverMetadata{}, err
		case !c.openID && isTemplateOf(m.Issuer, issuer):
			m.Issuer = issuer
		case strings.TrimSuffix(m.Issuer, "/") != strings.TrimSuffix(issuer, "/"):
			return serverMetadata{}, fmt.Errorf("the metadata of the authorization server %.200q names another issuer, %.200q", issuer, m.Issuer)
		}
		return m, nil
	}
	if fault != nil {
		return serverMetadata{}, fault
	}
	return serverMetadata{}, &noDocumentError{fmt.Errorf("the authorization server %.200q has no metadata", issuer), true}
}

// tenantTemplate represents the tenant in the issuer of Microsoft Entra ID's metadata for several
// tenants (common, organizations).
const tenantTemplate = "{tenantid}"

// isTemplateOf reports whether an issuer in metadata is the requested issuer with
// tenantTemplate as a segment of its path, so that both have the same origin.
func isTemplateOf(template, issuer string) bool {
	before, after, ok := strings.Cut(template, "/"+tenantTemplate)
	tenant, isBefore := strings.CutPrefix(issuer, before+"/")
	tenant, isAfter := strings.CutSuffix(tenant, after)
	u, err := url.Parse(before)
	return ok && isBefore && isAfter && tenant != "" && !strings.ContainsAny(tenant, "/?#") && (after == "" || after[0] == '/') && err == nil && u.Host != ""
}

// wellKnownAddresses lists the addresses of an issuer's metadata: OAuth's, then OpenID
// Connect's.
func wellKnownAddresses(issuer *url.URL) []string {
	origin, path := issuer.Scheme+"://"+issuer.Host, strings.Trim(issuer.EscapedPath(), "/")
	if path == "" {
		return []string{origin + "/.well-known/oauth-authorization-server", origin + "/.well-known/openid-configuration"}
	}
	return []string{
		origin + "/.well-known/oauth-authorization-server/" + path,
		origin + "/.well-known/openid-configuration/" + path,
		origin + "/" + path + "/.well-known/openid-configuration",
	}
}

// checkServer returns an error for an address in an authorization server's metadata that is missing
// or not permitted, and if the server does not support PKCE with S256.
func (c Config) checkServer(m serverMetadata) error {
	for _, e := range []struct {
		what, address string
		required      bool
	}{
		{"authorization endpoint", m.AuthorizationEndpoint, m.DeviceEndpoint == ""},
		{"token endpoint", m.TokenEndpoint, true},
		{"registration endpoint", m.RegistrationEndpoint, false},
		{"revocation endpoint", m.RevocationEndpoint, false},
		{"device authorization endpoint", m.DeviceEndpoint, false},
	} {
		if e.address == "" && !e.required {
			continue
		}
		if _, err := c.checkAddress(e.what, e.address); err != nil {
			return err
		}
	}
	switch {
	case c.openID || slices.Contains(m.ChallengeMethods, "S256"): // OpenID Connect does not demand that it is announced
		return nil
	case len(m.ChallengeMethods) > 0:
		return fmt.Errorf("the authorization server %.200q does not support PKCE with S256", m.Issuer)
	case !c.AssumePKCE:
		return fmt.Errorf("the metadata of the authorization server %.200q does not announce PKCE; if its documentation says that it supports PKCE with S256, set oauth.assume_pkce for server %s", m.Issuer, c.Server)
	}
	return nil
}
