package dialect

import (
	"github.com/toolroom-mcp/toolroom/host/internal/accesstoken"
	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
)

// authFields are the settings of the users' sign-in to serve.
func authFields(c *accesstoken.Config) []field {
	return []field{
		textField("issuer", nil, "URL of the authorization server, as in its metadata.", &c.Issuer),
		textField("url", nil, "Address at which clients reach this host, such as https://tools.example.com.", &c.URL),
		{"audience", []string{"audiences"}, "Accepted audiences of access tokens; default: the value of auth.url, and that value followed by /mcp or by a path below /mcp.", listSchema("string"), func(r *reader, n *node) {
			c.Audiences = append(c.Audiences, r.textOrTexts(n)...)
		}},
		{"scopes", []string{"required_scopes", "scope"}, "Scopes that each access token must have; default: none.", listSchema("string"), func(r *reader, n *node) {
			c.Scopes = append(c.Scopes, r.textOrTexts(n)...)
		}},
		textField("user", nil, "Claim that names the user in policy, limits, approvals and logs, for example email (default sub).", &c.UserClaim),
		textField("groups", nil, "Claim with the user's groups; a path such as realm_access.roles selects a member of an object (default groups).", &c.Groups),
		{"profiles", nil, "Scope or group → profile of the users who have it; the profile * has all tools. Users who have none of these scopes and groups are refused. Default: all users have all tools.", mapSchema("string"), func(r *reader, n *node) {
			c.Profiles = append(c.Profiles, r.profileGrants(n)...)
		}},
		textField("client_id", nil, "Id of this host at the authorization server, for the introspection of tokens that are not JSON Web Tokens, and for servers with credentials: caller or token_exchange; default: none.", &c.ClientID),
		{"client_secret", nil, "Secret of the client in client_id. Write ${NAME} to take it from the environment.", typeSchema("string"), func(r *reader, n *node) { c.ClientSecret = secret.Text(r.text(n)) }},
	}
}

// readSignIn reads the setting auth.
func readSignIn(r *reader, n *node, s *Settings) {
	s.Auth = &accesstoken.Config{}
	r.readMembers(n, authFields(s.Auth))
}

// textOrTexts reads a list of texts, or one text; nil for null. For other nodes it reports
// a problem.
func (r *reader) textOrTexts(n *node) []string {
	if n.kind == listNode || n.kind == nullNode {
		return r.texts(n)
	}
	return []string{r.text(n)}
}

// profileGrants reads a map of profiles by scope or group. For another node it reports a
// problem.
func (r *reader) profileGrants(n *node) (grants []accesstoken.ProfileGrant) {
	if n.kind != mapNode {
		r.problem("want a map of profiles by scope or group, not %s", n.kindWord())
		return nil
	}
	path := r.field
	for _, one := range n.pairs {
		r.field, r.line = path+"."+shownName(one.key), one.line
		grants = append(grants, accesstoken.ProfileGrant{To: one.key, Profile: r.text(one.value)})
	}
	return grants
}
