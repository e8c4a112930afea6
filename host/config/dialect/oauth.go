package dialect

import (
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/config/secret"
	"go.yaml.in/yaml/v3"
)

// OAuth is how to sign in to a server. The zero value is sufficient for servers
// that register clients themselves.
type OAuth struct {
	Off               bool // the host never signs in
	ClientID          string
	ClientSecret      secret.Text
	ClientMetadataURL string
	Scopes            []string
	Account           string
	RedirectPort      int
}

// IsSet reports whether anything is configured except Off.
func (o OAuth) IsSet() bool {
	return o.ClientID != "" || o.ClientSecret != "" || o.ClientMetadataURL != "" || len(o.Scopes) > 0 || o.Account != "" || o.RedirectPort != 0
}

func oauthSchema() map[string]any {
	return map[string]any{
		"type": []string{"object", "boolean"}, "additionalProperties": false,
		"properties": map[string]any{
			"client_id":           described(typed("string"), "Id of a client that is registered at the authorization server; default: the host registers itself."),
			"client_secret":       described(typed("string"), "Secret of that client. Write ${NAME} to take it from the environment."),
			"client_metadata_url": described(typed("string"), "Address of a client metadata document, which serves as client id."),
			"scopes":              described(listOf("string"), "Scopes to ask for; default: the scopes that the server names."),
			"account":             described(typed("string"), "Keeps several sign-ins to one address apart, for example work."),
			"redirect_port":       described(map[string]any{"type": "integer", "minimum": 1, "maximum": 65535}, "Port of the redirect address http://127.0.0.1:PORT/callback; default: any free port."),
		},
	}
}

// readOAuth reads oauth, also as Claude Code, opencode and Gemini CLI write it.
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
		r.field, r.line = name+"."+show(p.key), p.line
		switch plain(p.key) {
		case "clientid":
			o.ClientID = r.text(p.value)
		case "clientsecret":
			o.ClientSecret = secret.Text(r.text(p.value))
		case "clientmetadataurl":
			o.ClientMetadataURL = r.text(p.value)
		case "scopes", "scope":
			for _, text := range r.texts(p.value) {
				o.Scopes = append(o.Scopes, strings.Fields(text)...)
			}
		case "account":
			o.Account = r.text(p.value)
		case "redirectport", "callbackport":
			o.RedirectPort = r.count(p.value)
		case "enabled":
			if value, ok := r.boolean(p.value); ok {
				o.Off = !value
			}
		default:
			known := []string{"client_id", "client_secret", "client_metadata_url", "scopes", "account", "redirect_port"}
			if near := didYouMean(p.key, known); r.strict || near != "" {
				r.problem("unknown; use %s%s", strings.Join(known, ", "), near)
			}
		}
	}
	r.field = name
}

// expand replaces the variables, with fill.
func (o OAuth) expand(fill func(field, text string) string) OAuth {
	o.ClientID = fill("oauth", o.ClientID)
	o.ClientSecret = secret.Text(fill("oauth", o.ClientSecret.Reveal()))
	o.ClientMetadataURL = fill("oauth", o.ClientMetadataURL)
	o.Account = fill("oauth", o.Account)
	return o
}

// oauth writes the field, as Encode does.
func (e *encoder) oauth(o OAuth) {
	if o.Off {
		e.add(e.node, "oauth", boolean(false))
		return
	}
	if !o.IsSet() {
		return
	}
	n := &yaml.Node{Kind: yaml.MappingNode}
	text := func(key, value string) {
		if value != "" {
			e.add(n, key, e.text(value))
		}
	}
	text("client_id", o.ClientID)
	if o.ClientSecret != "" {
		text("client_secret", e.shown(o.ClientSecret))
	}
	text("client_metadata_url", o.ClientMetadataURL)
	e.list(n, "scopes", o.Scopes)
	text("account", o.Account)
	if o.RedirectPort > 0 {
		e.add(n, "redirect_port", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(o.RedirectPort)})
	}
	e.add(e.node, "oauth", n)
}
