package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/server"
	"github.com/toolroom-mcp/toolroom/host/internal/accesstoken"
)

// Auth is the sign-in of users. The endpoints of MCP accept access tokens of
// its issuer; everything else accepts only HTTPConfig.Token.
type Auth struct {
	// Verify returns the user of an access token. Its error is an
	// *accesstoken.Error if the token is not accepted.
	Verify func(ctx context.Context, token string) (*accesstoken.User, error)

	Issuer string   // the authorization server where clients get tokens
	URL    string   // public base URL of the host
	Scopes []string // that tokens must have
}

// resourceMetadata is the path of the metadata of a protected resource, with
// the path of the resource appended (RFC 9728, section 3.1).
const resourceMetadata = "/.well-known/oauth-protected-resource"

// base is the public address of the host, without a slash at the end.
func (a *Auth) base() string { return strings.TrimRight(a.URL, "/") }

// serveResourceMetadata tells clients where users sign in.
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
	}{h.cfg.Auth.base() + path, []string{h.cfg.Auth.Issuer}, h.cfg.Auth.Scopes, []string{"header"}, "toolroom"})
	if err != nil {
		refuseHTTP(w, r, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(body) //nolint:errcheck // the client is gone
}

var profileName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// isEndpoint reports whether a path is /mcp or /mcp/PROFILE, whether or not
// there is such a profile.
func isEndpoint(path string) bool {
	profile, ok := strings.CutPrefix(path, "/mcp/")
	return path == "/mcp" || ok && profileName.MatchString(profile)
}

// admit returns who sent a request: a user, or nil for the owner of the token
// of the host. It answers a request that is not admitted.
func (h *HTTPHandler) admit(w http.ResponseWriter, r *http.Request) (user *accesstoken.User, ok bool) {
	if h.authorized(r) {
		return nil, true
	}
	if h.cfg.Auth == nil {
		w.Header().Set("WWW-Authenticate", `Bearer realm="toolroom"`)
		h.refuse(w, r, http.StatusUnauthorized, "send the token that serve printed as Authorization: Bearer TOKEN")
		return nil, false
	}
	token := bearer(r)
	if token == "" {
		h.challenge(w, r, http.StatusUnauthorized, nil)
		return nil, false
	}
	user, err := h.cfg.Auth.Verify(r.Context(), token)
	var refused *accesstoken.Error
	switch {
	case errors.As(err, &refused) && refused.Code == "insufficient_scope":
		h.challenge(w, r, http.StatusForbidden, refused)
	case errors.As(err, &refused):
		h.challenge(w, r, http.StatusUnauthorized, refused)
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

// bearer returns the token of a request, "" if it has none or several.
func bearer(r *http.Request) string {
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

// challenge refuses a request with the address of the metadata (RFC 6750,
// section 3; RFC 9728, section 5.1).
func (h *HTTPHandler) challenge(w http.ResponseWriter, r *http.Request, status int, why *accesstoken.Error) {
	a := h.cfg.Auth
	path := r.URL.Path
	if !isEndpoint(path) {
		path = "/mcp"
	}
	text := `Bearer realm="toolroom", resource_metadata="` + a.base() + resourceMetadata + path + `"`
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

// ofUser narrows an endpoint to the profiles of a user: /mcp is the first of
// them. ok is false for a profile that the user may not use.
func (h *HTTPHandler) ofUser(user *accesstoken.User, profile string, catalog Catalog) (_ string, _ Catalog, ok bool) {
	switch {
	case user == nil || user.Profiles == nil:
		return profile, catalog, true
	case profile != "":
		return profile, catalog, slices.Contains(user.Profiles, profile)
	case h.gate.cfg.Profile == nil:
		return "", nil, false
	}
	profile = user.Profiles[0]
	catalog, ok = h.gate.cfg.Profile(profile)
	return profile, catalog, ok
}

// foreign reports whether a session belongs to another user, or to nobody who
// is known.
func (h *HTTPHandler) foreign(r *http.Request, user *accesstoken.User) bool {
	session := r.Header.Get(server.HeaderKeySessionID)
	return session != "" && h.cfg.Auth != nil && h.gate.clients.get(sessionIdentity(session)).user != nameOf(user)
}

// untilExpiry ends a stream when the token of its user expires.
func untilExpiry(ctx context.Context, user *accesstoken.User) (context.Context, context.CancelFunc) {
	if user == nil {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, user.Expires)
}

// nameOf returns the name of a user, "" for nil.
func nameOf(user *accesstoken.User) string {
	if user == nil {
		return ""
	}
	return user.Name
}
