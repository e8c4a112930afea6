package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/server"
	"github.com/toolroom-mcp/toolroom/host/internal/accesstoken"
	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
)

// Auth configures the sign-in of users. The MCP endpoints accept access tokens of its
// issuer; all other paths accept only HTTPConfig.Token.
type Auth struct {
	// Verify returns the user of an access token. It returns an *accesstoken.Error if
	// the token is not valid.
	Verify func(ctx context.Context, token string) (*accesstoken.User, error)

	Issuer string   // the authorization server that issues tokens to clients
	URL    string   // public base URL of the host
	Scopes []string // scopes that a token must have
}

// resourceMetadata is the path prefix of the metadata of a protected resource; the
// path of the resource follows (RFC 9728, section 3.1).
const resourceMetadata = "/.well-known/oauth-protected-resource"

// baseURL returns the public address of the host without a final slash.
func (a *Auth) baseURL() string { return strings.TrimRight(a.URL, "/") }

// serveResourceMetadata serves the metadata that tells clients where users sign in.
func (h *HTTPHandler) serveResourceMetadata(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, resourceMetadata)
	if path != "" && !isEndpoint(path) {
		refuseHTTP(w, r, http.StatusNotFound, "not found; the MCP endpoint is /mcp")
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		refuseHTTP(w, r, http.StatusMethodNotAllowed, "use GET")
		return
	}
	body, err := json.Marshal(struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
		Scopes   []string `json:"scopes_supported,omitempty"`
		Methods  []string `json:"bearer_methods_supported"`
		Name     string   `json:"resource_name"`
	}{h.cfg.Auth.baseURL() + path, []string{h.cfg.Auth.Issuer}, h.cfg.Auth.Scopes, []string{"header"}, "toolroom"})
	if err != nil {
		refuseHTTP(w, r, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(body) //nolint:errcheck // the client is gone
}

// profileNamePattern matches the names that a profile can have.
var profileNamePattern = lazyregexp.New(`^[a-zA-Z0-9_-]{1,64}$`)

// isEndpoint reports whether a path is /mcp or /mcp/PROFILE, even if the profile does
// not exist.
func isEndpoint(path string) bool {
	profile, ok := strings.CutPrefix(path, "/mcp/")
	return path == "/mcp" || ok && profileNamePattern().MatchString(profile)
}

// authenticate returns the user of a request, or nil for a request with the host's own
// token. If neither is valid, it answers the request with an error and returns false.
func (h *HTTPHandler) authenticate(w http.ResponseWriter, r *http.Request) (user *accesstoken.User, ok bool) {
	if h.hasHostToken(r) {
		return nil, true
	}
	if h.cfg.Auth == nil {
		w.Header().Set("WWW-Authenticate", `Bearer realm="toolroom"`)
		h.refuse(w, r, http.StatusUnauthorized, "send the token that serve printed as Authorization: Bearer TOKEN")
		return nil, false
	}
	token := bearerToken(r)
	if token == "" {
		h.refuseWithChallenge(w, r, http.StatusUnauthorized, nil)
		return nil, false
	}
	user, err := h.cfg.Auth.Verify(r.Context(), token)
	var refused *accesstoken.Error
	switch {
	case errors.As(err, &refused) && refused.Code == "insufficient_scope":
		h.refuseWithChallenge(w, r, http.StatusForbidden, refused)
	case errors.As(err, &refused):
		h.refuseWithChallenge(w, r, http.StatusUnauthorized, refused)
	case err != nil:
		w.Header().Set("Retry-After", "5")
		h.refuse(w, r, http.StatusServiceUnavailable, "the access token cannot be verified at present: "+err.Error())
	case !isEndpoint(r.URL.Path):
		h.refuse(w, r, http.StatusForbidden, "users reach the MCP endpoint /mcp only; other addresses need the host's own token (--token-file)")
	default:
		return user, true
	}
	return nil, false
}

// bearerToken returns the bearer token of a request, "" if it has none or several.
func bearerToken(r *http.Request) string {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return ""
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// refuseWithChallenge answers with the status and a WWW-Authenticate header that names the
// address of the metadata (RFC 6750, section 3; RFC 9728, section 5.1).
func (h *HTTPHandler) refuseWithChallenge(w http.ResponseWriter, r *http.Request, status int, why *accesstoken.Error) {
	a := h.cfg.Auth
	path := r.URL.Path
	if !isEndpoint(path) {
		path = "/mcp"
	}
	text := `Bearer realm="toolroom", resource_metadata="` + a.baseURL() + resourceMetadata + path + `"`
	message := "sign in at " + a.Issuer + ": this address needs an access token"
	scopes := a.Scopes
	if why != nil {
		message = why.Reason
		text += `, error="` + why.Code + `", error_description="` + strings.NewReplacer(`"`, "'", `\`, "'").Replace(why.Reason) + `"`
		if why.Code == "insufficient_scope" {
			scopes = why.Scopes
		}
	}
	if len(scopes) > 0 {
		text += `, scope="` + strings.Join(scopes, " ") + `"`
	}
	w.Header().Set("WWW-Authenticate", text)
	h.refuse(w, r, status, message)
}

// userProfile returns the profile and catalog that a user gets at an endpoint. For /mcp,
// profile "", it is the first profile of the user. ok is false if the user may not use the
// profile.
func (h *HTTPHandler) userProfile(user *accesstoken.User, profile string, catalog Catalog) (_ string, _ Catalog, ok bool) {
	switch {
	case user == nil || user.Profiles == nil:
		return profile, catalog, true
	case profile != "":
		return profile, catalog, slices.Contains(user.Profiles, profile)
	case h.gateway.cfg.Profile == nil:
		return "", nil, false
	}
	profile = user.Profiles[0]
	catalog, ok = h.gateway.cfg.Profile(profile)
	return profile, catalog, ok
}

// isOtherUsersSession reports whether the session of a request belongs to another user
// or is unknown.
func (h *HTTPHandler) isOtherUsersSession(r *http.Request, user *accesstoken.User) bool {
	session := r.Header.Get(server.HeaderKeySessionID)
	return session != "" && h.cfg.Auth != nil && h.gateway.clients.get(sessionIdentity(session)).user != userName(user)
}

// withTokenExpiry returns a context that ends when the user's token expires.
func withTokenExpiry(ctx context.Context, user *accesstoken.User) (context.Context, context.CancelFunc) {
	if user == nil {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, user.Expires)
}

// userName returns the name of a user, "" for nil.
func userName(user *accesstoken.User) string {
	if user == nil {
		return ""
	}
	return user.Name
}
