// Package httpguard is for clients of servers that are not trusted. An answer
// that hands over the connection, 101 Switching Protocols, has a body without
// an end, which net/http does not end with its request, whatever the deadline
// of that is. Here it is an error, of code PROTOCOL_ERROR.
package httpguard

import (
	"net/http"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Transport returns next without such answers.
func Transport(next http.RoundTripper) http.RoundTripper { return transport{next} }

type transport struct{ next http.RoundTripper }

func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := t.next.RoundTrip(req)
	if err == nil && res.StatusCode == http.StatusSwitchingProtocols {
		res.Body.Close() //nolint:errcheck // it is given up
		return nil, toolerr.New(toolerr.ProtocolError, "it wants to go on in another protocol, which was not asked for")
	}
	return res, err
}

// CloseIdleConnections is what http.Client's calls.
func (t transport) CloseIdleConnections() {
	if closing, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		closing.CloseIdleConnections()
	}
}
