// Package httpguard protects HTTP clients of untrusted servers. A response of
// status 101 (Switching Protocols) takes over the connection: its body has no
// end, and net/http does not close it when the request's deadline passes.
// httpguard returns an error with the code PROTOCOL_ERROR instead.
package httpguard

import (
	"net/http"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// RefuseUpgrades returns a round tripper that passes requests to next. For a
// response of status 101 it closes the body and returns a PROTOCOL_ERROR.
func RefuseUpgrades(next http.RoundTripper) http.RoundTripper { return transport{next} }

// transport is the round tripper of RefuseUpgrades.
type transport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper, see RefuseUpgrades.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := t.next.RoundTrip(req)
	if err == nil && res.StatusCode == http.StatusSwitchingProtocols {
		res.Body.Close() //nolint:errcheck // it is given up
		return nil, toolerr.New(toolerr.ProtocolError, "it switches to another protocol, which the request did not ask for")
	}
	return res, err
}

// CloseIdleConnections closes the idle connections of next, if next has that
// method. http.Client calls it.
func (t transport) CloseIdleConnections() {
	if closing, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		closing.CloseIdleConnections()
	}
}
