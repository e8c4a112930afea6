package dialect

import (
	"go.yaml.in/yaml/v3"
)

// CallerCredentials is the value of credentials for servers to which each user signs in.
const CallerCredentials = "caller"

// TokenExchange holds the settings of token_exchange.
type TokenExchange struct {
	On       bool
	Audience string
	Resource string // "": the server's URL, unless Audience is set
	Scopes   []string
}

// tokenExchangeFields are the members of token_exchange.
func tokenExchangeFields(x *TokenExchange) []field {
	return []field{
		textField("audience", nil, "Name of the server at the issuer.", &x.Audience),
		textField("resource", nil, "Address of the server at the issuer; default: url, unless audience is set.", &x.Resource),
		{"scopes", []string{"scope"}, "Scopes to ask for; default: the issuer decides.", scopesSchema(), func(r *reader, n *node) { x.Scopes = append(x.Scopes, r.scopes(n)...) }},
	}
}

func tokenExchangeSchema() map[string]any {
	schema := objectSchema(tokenExchangeFields(&TokenExchange{}))
	schema["type"] = []string{"object", "boolean"}
	return schema
}

// readTokenExchange reads token_exchange: true, false, or a map of settings.
func readTokenExchange(r *reader, n *node) {
	x := &r.server.TokenExchange
	if n.kind != mapNode {
		x.On, _ = r.boolean(n) // it reports another value
		return
	}
	x.On = true
	r.readMembers(n, tokenExchangeFields(x))
}

// addTokenExchange adds the field token_exchange, unless it is off.
func (e *encoder) addTokenExchange(x TokenExchange) {
	if !x.On {
		return
	}
	if x.Audience == "" && x.Resource == "" && len(x.Scopes) == 0 {
		e.addMember(e.node, "token_exchange", boolean(true))
		return
	}
	n := &yaml.Node{Kind: yaml.MappingNode}
	if x.Audience != "" {
		e.addMember(n, "audience", e.textValue(x.Audience))
	}
	if x.Resource != "" {
		e.addMember(n, "resource", e.textValue(x.Resource))
	}
	e.addList(n, "scopes", x.Scopes)
	e.addMember(e.node, "token_exchange", n)
}
