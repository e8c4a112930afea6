package dialect

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"go.yaml.in/yaml/v3"
)

// OAuth holds the settings for signing in to a server. The zero value is sufficient for servers
// that register clients themselves.
type OAuth struct {
	Off               bool // the host never signs in
	ClientID          string
	ClientSecret      secret.Text
	ClientMetadataURL string
	Grant             string // client_credentials, jwt_bearer, id_jag, or "": a user signs in
	PrivateKey        secret.Text
	KeyAlgorithm      string
	AssertionFile     string // with the JWT for the grant jwt_bearer, or the ID token for id_jag; "" for id_jag: the user signs in
	IdentityProvider  IdentityProvider
	Scopes            []string
	Account           string
	DPoP              bool // bind tokens to a key
	RedirectPort      int
	RedirectURI       string // on this machine; "": http://127.0.0.1/callback

	AuthorizationParameters map[string]string // added to authorization requests
	AssumePKCE              bool              // also if the provider does not announce PKCE
}

// IdentityProvider is the identity provider for the grant id_jag.
type IdentityProvider struct {
	Issuer       string
	ClientID     string
	ClientSecret secret.Text
}

// IsSet reports whether anything is configured except Off.
func (o OAuth) IsSet() bool {
	return o.ClientID != "" || o.ClientSecret != "" || o.ClientMetadataURL != "" || o.Grant != "" || o.PrivateKey != "" || o.AssertionFile != "" || o.IdentityProvider != IdentityProvider{} || o.KeyAlgorithm != "" || len(o.Scopes) > 0 || o.Account != "" || o.RedirectPort != 0 || o.DPoP ||
		o.RedirectURI != "" || len(o.AuthorizationParameters) > 0 || o.AssumePKCE
}

func oauthSchema() map[string]any {
	return map[string]any{
		"type": []string{"object", "boolean"}, "additionalProperties": false,
		"properties": map[string]any{
			"client_id":      withDescription(typeSchema("string"), "Id of a client that is registered at the authorization server; default: the host registers itself."),
			"client_secret":  withDescription(typeSchema("string"), "Secret of the client in client_id. Write ${NAME} to take it from the environment."),
			"grant":          withDescription(enumSchema("authorization_code", "client_credentials", "jwt_bearer", "id_jag"), "Who signs in, and how: a user (authorization_code, the default), or the host with its own credentials (client_credentials), with the JWT in assertion_file (jwt_bearer), or with the user's ID token (id_jag)."),
			"private_key":    withDescription(typeSchema("string"), "Private key in PEM, instead of a secret. Write ${NAME} to take it from the environment."),
			"key_algorithm":  withDescription(typeSchema("string"), "Algorithm of private_key, for example PS256; default: chosen by the kind of key."),
			"assertion_file": withDescription(typeSchema("string"), "For the grant jwt_bearer: file with the JWT of a platform such as Kubernetes. For id_jag: file with the user's ID token; default: the user signs in at identity_provider. The file is read at each use."),
			"identity_provider": withDescription(objectSchema(identityProviderFields(&IdentityProvider{}), "issuer", "client_id"),
				"Identity provider of an enterprise, for the grant id_jag (MCP extension Enterprise-Managed Authorization); default: none."),
			"client_metadata_url":      withDescription(typeSchema("string"), "Address of a client metadata document, which serves as client id."),
			"scopes":                   withDescription(scopesSchema(), "Scopes to ask for; default: the scopes that the server names."),
			"dpop":                     withDescription(typeSchema("boolean"), "Bind the tokens to a key (RFC 9449); default: only if the server asks for it."),
			"account":                  withDescription(typeSchema("string"), "Name of this sign-in if there are several to one address, for example work."),
			"redirect_uri":             withDescription(typeSchema("string"), "Redirect address on this machine, if the client is registered with another one than http://127.0.0.1/callback, for example http://localhost/callback; without a port: any free port."),
			"authorization_parameters": withDescription(mapSchema("string"), "Further parameters of the authorization request (with a grant without a user: of the token request): name → value, for example access_type: offline; default: none."),
			"assume_pkce":              withDescription(typeSchema("boolean"), "Sign in also if the metadata of the authorization server does not announce PKCE (default false). Set it only if the documentation of the provider says that it supports PKCE with S256: otherwise a stolen authorization code can be used by others."),
			"redirect_port":            withDescription(map[string]any{"type": "integer", "minimum": 1, "maximum": 65535}, "Port of the redirect address http://127.0.0.1:PORT/callback; default: any free port."),
		},
	}
}

// readAuth reads Cursor's auth, which holds CLIENT_ID, CLIENT_SECRET and scopes.
// In other products auth is a word that the server's answer makes superfluous.
func readAuth(r *reader, n *node) {
	if n.kind == mapNode {
		readOAuth(r, n)
	}
}

// readAuthProvider reads Gemini CLI's authProviderType. Sign-in with Google's own
// credentials is not supported; without them the server may ask for another one.
func readAuthProvider(r *reader, n *node) {
	if word := r.text(n); word != "" && normalizeName(word) != "dynamicdiscovery" {
		r.warn("%s is not supported; use headers or auth_token_env for credentials", shownName(word))
	}
}

// scopes reads a list of scopes, or a text with spaces between them.
func (r *reader) scopes(n *node) (scopes []string) {
	for _, text := range r.textOrTexts(n) {
		scopes = append(scopes, strings.Fields(text)...)
	}
	return scopes
}

func scopesSchema() map[string]any {
	return map[string]any{"type": []string{"array", "string"}, "items": typeSchema("string")}
}

// discoveredSettings are settings of other products that the host does not need: it reads
// their values in the metadata of the server and its provider.
var discoveredSettings = []string{
	"authorizationurl", "authorizationendpoint", "tokenurl", "tokenendpoint", "registrationurl", "registrationendpoint",
	"issuer", "revocationendpoint", "authservermetadataurl", "tokenparamname", "resource", "granttypessupported",
	"responsetypessupported", "codechallengemethodssupported", "tokenendpointauthmethodssupported",
}

// readRedirect reads a redirect address. In files of other products, it can be the address of a
// server, which is ignored.
func (r *reader) readRedirect(n *node) {
	text := r.text(n)
	u, err := url.Parse(text)
	if !r.strict && (err != nil || u.Scheme != "http" || !slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, u.Hostname())) {
		r.warn("ignored: the host receives redirects on this machine only, at an address such as http://localhost/callback")
		return
	}
	r.server.OAuth.RedirectURI = text
}

// setParameters adds parameters of the authorization request.
func (o *OAuth) setParameters(values map[string]string) {
	if o.AuthorizationParameters == nil && len(values) > 0 {
		o.AuthorizationParameters = map[string]string{}
	}
	maps.Copy(o.AuthorizationParameters, values)
}

// readOAuth reads oauth, also as Claude Code, opencode, Gemini CLI, LibreChat, VS
// Code and Cursor write it.
func readOAuth(r *reader, n *node) {
	o := &r.server.OAuth
	if n.kind != mapNode {
		if value, ok := r.boolean(n); ok {
			o.Off = !value
		}
		return
	}
	name := r.field
	for _, p := range n.pairs {
		r.field, r.line = name+"."+shownName(p.key), p.line
		switch normalizeName(p.key) {
		case "clientid":
			o.ClientID = r.text(p.value)
		case "clientsecret":
			o.ClientSecret = secret.Text(r.text(p.value))
		case "clientmetadataurl":
			o.ClientMetadataURL = r.text(p.value)
		case "grant", "granttype":
			if o.Grant = r.choice(p.value, "authorization_code", "client_credentials", "jwt_bearer", "id_jag"); o.Grant == "authorization_code" {
				o.Grant = ""
			}
		case "privatekey":
			o.PrivateKey = secret.Text(r.text(p.value))
		case "assertionfile":
			o.AssertionFile = r.text(p.value)
		case "identityprovider":
			r.readMembers(p.value, identityProviderFields(&o.IdentityProvider))
		case "keyalgorithm":
			o.KeyAlgorithm = r.text(p.value)
		case "scopes", "scope":
			o.Scopes = append(o.Scopes, r.scopes(p.value)...)
		case "dpop":
			o.DPoP, _ = r.boolean(p.value)
		case "account":
			o.Account = r.text(p.value)
		case "redirectport":
			o.RedirectPort = r.count(p.value)
		case "callbackport": // of Claude Code, whose redirect address is at localhost
			if port := r.count(p.value); port > 0 {
				o.RedirectURI = "http://localhost:" + strconv.Itoa(port) + "/callback"
			}
		case "authorizationparameters", "authorizationparams", "extraauthorizeparams", "extraauthparams":
			o.setParameters(r.textMap(p.value))
		case "assumepkce", "skipcodechallengecheck": // the latter of LibreChat
			o.AssumePKCE, _ = r.boolean(p.value)
		case "redirecturi", "redirecturl":
			r.readRedirect(p.value)
		case "enabled":
			if value, ok := r.boolean(p.value); ok {
				o.Off = !value
			}
		default:
			if audiences := strings.Join(r.audiences(p), " "); audiences != "" {
				o.setParameters(map[string]string{"audience": audiences})
				continue
			}
			if !r.strict && slices.Contains(discoveredSettings, normalizeName(p.key)) {
				continue
			}
			known := []string{"client_id", "client_secret", "grant", "private_key", "key_algorithm", "assertion_file", "identity_provider", "client_metadata_url", "scopes", "dpop", "account", "redirect_port", "redirect_uri", "authorization_parameters", "assume_pkce"}
			if near := didYouMean(p.key, known); r.strict || near != "" {
				r.problem("unknown; use %s%s", strings.Join(known, ", "), near)
			}
		}
	}
	r.field = name
}

// audiences returns Gemini CLI's audiences, which it sends as the parameter audience; nil for other
// keys, and in toolroom's own file.
func (r *reader) audiences(p pair) []string {
	if key := normalizeName(p.key); r.strict || key != "audiences" && key != "audience" {
		return nil
	}
	return r.textOrTexts(p.value)
}

// identityProviderFields are the members of oauth.identity_provider.
func identityProviderFields(p *IdentityProvider) []field {
	return []field{
		textField("issuer", nil, "URL of the identity provider, as in its metadata.", &p.Issuer),
		textField("client_id", nil, "Id of the host at the identity provider.", &p.ClientID),
		{"client_secret", nil, "Secret of the host at the identity provider. Write ${NAME} to take it from the environment.", typeSchema("string"), func(r *reader, n *node) { p.ClientSecret = secret.Text(r.text(n)) }},
	}
}

// expand replaces the variables, with fill.
func (o OAuth) expand(fill func(field, text string) string) OAuth {
	o.ClientID = fill("oauth", o.ClientID)
	o.ClientSecret = secret.Text(fill("oauth", o.ClientSecret.Reveal()))
	o.PrivateKey = secret.Text(fill("oauth", o.PrivateKey.Reveal()))
	o.AssertionFile = fill("oauth", o.AssertionFile)
	o.IdentityProvider = IdentityProvider{
		fill("oauth", o.IdentityProvider.Issuer), fill("oauth", o.IdentityProvider.ClientID), secret.Text(fill("oauth", o.IdentityProvider.ClientSecret.Reveal())),
	}
	o.ClientMetadataURL = fill("oauth", o.ClientMetadataURL)
	o.Account = fill("oauth", o.Account)
	o.RedirectURI = fill("oauth", o.RedirectURI)
	o.AuthorizationParameters = maps.Clone(o.AuthorizationParameters)
	for name, value := range o.AuthorizationParameters {
		o.AuthorizationParameters[name] = fill("oauth", value)
	}
	return o
}

// addOAuth writes the field, as Encode does.
func (e *encoder) addOAuth(o OAuth) {
	if o.Off {
		e.addMember(e.node, "oauth", boolean(false))
		return
	}
	if !o.IsSet() {
		return
	}
	n := &yaml.Node{Kind: yaml.MappingNode}
	text := func(key, value string) {
		if value != "" {
			e.addMember(n, key, e.textValue(value))
		}
	}
	text("client_id", o.ClientID)
	if o.ClientSecret != "" {
		text("client_secret", e.shownValue(o.ClientSecret))
	}
	text("grant", o.Grant)
	if o.PrivateKey != "" {
		text("private_key", e.shownValue(o.PrivateKey))
	}
	text("key_algorithm", o.KeyAlgorithm)
	text("assertion_file", o.AssertionFile)
	if idp := o.IdentityProvider; idp != (IdentityProvider{}) {
		of := &yaml.Node{Kind: yaml.MappingNode}
		for _, one := range [][2]string{{"issuer", idp.Issuer}, {"client_id", idp.ClientID}} {
			if one[1] != "" {
				e.addMember(of, one[0], e.textValue(one[1]))
			}
		}
		if idp.ClientSecret != "" {
			e.addMember(of, "client_secret", e.textValue(e.shownValue(idp.ClientSecret)))
		}
		e.addMember(n, "identity_provider", of)
	}
	text("client_metadata_url", o.ClientMetadataURL)
	e.addList(n, "scopes", o.Scopes)
	if o.DPoP {
		e.addMember(n, "dpop", boolean(true))
	}
	text("account", o.Account)
	text("redirect_uri", o.RedirectURI)
	if len(o.AuthorizationParameters) > 0 {
		values := &yaml.Node{Kind: yaml.MappingNode}
		for _, name := range slices.Sorted(maps.Keys(o.AuthorizationParameters)) {
			e.addMember(values, name, e.textValue(o.AuthorizationParameters[name]))
		}
		e.addMember(n, "authorization_parameters", values)
	}
	if o.AssumePKCE {
		e.addMember(n, "assume_pkce", boolean(true))
	}
	if o.RedirectPort > 0 {
		e.addMember(n, "redirect_port", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(o.RedirectPort)})
	}
	e.addMember(e.node, "oauth", n)
}
