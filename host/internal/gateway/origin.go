package gateway

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// hasOwnHost reports whether the header Host of a request names this server. Another name
// can be that of a web page which has pointed its name to this machine (DNS rebinding).
func (h *HTTPHandler) hasOwnHost(r *http.Request) bool {
	return slices.Contains(h.cfg.Hosts, strings.ToLower(r.Host))
}

// hasOwnOrigin reports whether a request comes from no web page, or from a page of
// this server.
func (h *HTTPHandler) hasOwnOrigin(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return true
	}
	u, err := url.Parse(origins[0])
	if len(origins) == 1 && h.cfg.Auth != nil && strings.EqualFold(origins[0], h.cfg.Auth.baseURL()) {
		return true
	}
	return len(origins) == 1 && err == nil && u.Scheme == "http" && u.User == nil && u.Path == "" &&
		slices.Contains(h.cfg.Hosts, strings.ToLower(u.Host))
}
