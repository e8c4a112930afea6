package upstream

import (
	"errors"
	"net/http"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/config/nesting"
)

// isHostLoop reports whether a server refused the handshake because it is this host, or a
// host that was started below this one. Another attempt would only start another such
// host.
func isHostLoop(err error) bool {
	var refused *call.MCPError
	if errors.As(err, &refused) && refused.Code == nesting.LoopErrorCode {
		return true
	}
	var status *statusError
	return errors.As(err, &status) && status.status == http.StatusLoopDetected
}

// keepOffline keeps the server offline until Reconnect. The caller holds s.mu, or s is not
// shared yet.
func (s *Server) keepOffline(err error) {
	s.refused = err
	s.last = newFailure(StageStart, err)
	s.fails = maxTries
}
