package dialect

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// CallerCredentials is the value of credentials for servers to which each user signs in.
const CallerCredentials = "caller"

// TokenExchange describes the token for which the host exchanges that of a user.
type TokenExchange struct {
	On       bool
	Audience string
	Resource string // "": the server's URL, unless Audience is set
	Scopes   []string
}

func tokenExchangeSchema() map[string]any {
	return map[string]any{
		"type": []string{"object", "boolean"}, "additionalProperties": false,
		"properties": map[string]any{
			"audience": described(typed("string"), "Name of the server at the issuer."),
			"resource": described(typed("string"), "Address of the server at the issuer; default: url, unless audience is set."),
			"scopes":   described(map[string]any{"type": []string{"array", "string"}, "items": typed("string")}, "Scopes to ask for; default: the issuer decides."),
		},
	}
}

// readTokenExchange reads token_exchange: true, false, or a map of settings.
func readTokenExchange(r *reader, n *node) {
	e := &r.server.TokenExchange
	if n.kind != mapNode {
		e.On, _ = r.boolean(n)
		return
	}
	e.On = true
	name := r.field
	for _, p := range n.pairs {
		r.field, r.line = name+"."+show(p.key), p.line
		switch plain(p.key) {
		case "audience":
			e.Audience = r.text(p.value)
		case "resource":
			e.Resource = r.text(p.value)
		case "scopes", "scope":
			for _, text := range r.oneOrMore(p.value) {
				e.Scopes = append(e.Scopes, strings.Fields(text)...)
			}
		default:
			known := []string{"audience", "resource", "scopes"}
			r.problem("unknown; use %s%s", strings.Join(known, ", "), didYouMean(p.key, known))
		}
	}
	r.field = name
}

// tokenExchange adds the field token_exchange, unless it is off.
func (e *encoder) tokenExchange(x TokenExchange) {
	if !x.On {
		return
	}
	if x.Audience == "" && x.Resource == "" && len(x.Scopes) == 0 {
		e.add(e.node, "token_exchange", boolean(true))
		return
	}
	n := &yaml.Node{Kind: yaml.MappingNode}
	if x.Audience != "" {
		e.add(n, "audience", e.text(x.Audience))
	}
	if x.Resource != "" {
		e.add(n, "resource", e.text(x.Resource))
	}
	e.list(n, "scopes", x.Scopes)
	e.add(e.node, "token_exchange", n)
}
