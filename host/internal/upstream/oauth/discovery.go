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

// resourceMetadata finds the protected resource metadata: at the address of the
// challenge, then at the well-known addresses of the server's path and root.
// Without any, the server's origin is its own authorization server, as in
// version 2025-03-26. It returns an error for metadata of another resource.
func (c Config) resourceMetadata(ctx context.Context, client *http.Client, challenge Challenge) (resourceMetadata, error) {
	server, err := url.Parse(c.URL)
	if err != nil {
		return resourceMetadata{}, err
	}
	origin := server.Scheme + "://" + server.Host
	var found resourceMetadata
	try := func(address string) error {
		found = resourceMetadata{}
		if err := c.getJSON(ctx, client, address, &found); err != nil {
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
	for _, address := range addresses {
		err := try(address)
		if !isMissing(err) {
			return found, err
		}
	}
	return resourceMetadata{Resource: c.URL, AuthorizationServers: []string{origin}}, nil
}

// clearOnError sets found to zero unless err is nil, and returns err.
func clearOnError(err error, found *resourceMetadata) error {
	if err != nil {
		*found = resourceMetadata{}
	}
	return err
}

// isMissing reports whether an error means that the document does not exist: status 400 to 499.
func isMissing(err error) bool {
	var status *statusError
	return errors.As(err, &status) && status.status >= 400 && status.status < 500
}

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

// authorizationServer requests the metadata of an issuer and checks it. If there is none, it returns
// with fallback the addresses of version 2025-03-26, and otherwise an error.
func (c Config) authorizationServer(ctx context.Context, client *http.Client, issuer string, fallback bool) (serverMetadata, error) {
	at, err := c.checkAddress("authorization server", issuer)
	if err != nil {
		return serverMetadata{}, err
	}
	for _, address := range wellKnownAddresses(at) {
		var m serverMetadata
		err := c.getJSON(ctx, client, address, &m)
		if isMissing(err) {
			continue
		}
		if err != nil {
			return m, err
		}
		if strings.TrimSuffix(m.Issuer, "/") != strings.TrimSuffix(issuer, "/") {
			return m, fmt.Errorf("the metadata of the authorization server %.200q names another issuer, %.200q", issuer, m.Issuer)
		}
		return m, c.checkServer(m)
	}
	if !fallback {
		return serverMetadata{}, fmt.Errorf("the authorization server %.200q has no metadata", issuer)
	}
	base := strings.TrimSuffix(issuer, "/")
	return serverMetadata{
		Issuer: issuer, AuthorizationEndpoint: base + "/authorize", TokenEndpoint: base + "/token",
		RegistrationEndpoint: base + "/register", ChallengeMethods: []string{"S256"},
	}, nil
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
	if !c.openID && !slices.Contains(m.ChallengeMethods, "S256") { // OpenID Connect does not demand that it is announced
		return fmt.Errorf("the authorization server %.200q does not support PKCE with S256", m.Issuer)
	}
	return nil
}
