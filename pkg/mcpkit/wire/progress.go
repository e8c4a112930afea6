package wire

import (
	"context"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// progressInterval is the minimum time between two progress notifications.
const progressInterval = time.Second

// Progress reports the progress of ctx's request to the client, at most once a
// second. See mcpkit.Progress.
func Progress(ctx context.Context, done, total float64, message string) {
	if req := requestOf(ctx); req != nil && !math.IsNaN(done) && !math.IsInf(done, 0) {
		req.reportProgress(done, total, message)
	}
}

// progressState is the progress that was reported for a request.
type progressState struct {
	tokenRead bool            // token has been read from params
	token     json.RawMessage // as the client sent it; nil: none
	lastDone  float64
	sentAt    time.Time // time of the last notification; zero: none was sent
}

// reportProgress sends a progress notification, if one is wanted and due.
func (req *request) reportProgress(done, total float64, message string) {
	req.mu.Lock()
	defer req.mu.Unlock()
	p := &req.progress
	if !p.tokenRead {
		p.tokenRead, p.token = true, progressToken(req.params)
	}
	now := req.conn.clockNow()
	if p.token == nil || req.sendingEnded() || !p.sentAt.IsZero() && (done <= p.lastDone || now.Sub(p.sentAt) < progressInterval) {
		return
	}
	p.lastDone, p.sentAt = done, now
	params := append([]byte(`{"progressToken":`), p.token...)
	params = strconv.AppendFloat(append(params, `,"progress":`...), done, 'f', -1, 64)
	if total > 0 && !math.IsInf(total, 0) {
		params = strconv.AppendFloat(append(params, `,"total":`...), total, 'f', -1, 64)
	}
	if message != "" {
		params = jsonrpc.AppendString(append(params, `,"message":`...), message)
	}
	req.conn.send(jsonrpc.AppendNotification(nil, "notifications/progress", append(params, '}')))
}

// progressToken returns params._meta.progressToken, or nil if it is absent or
// invalid.
func progressToken(params json.RawMessage) json.RawMessage {
	token := jsonrpc.MemberOf(jsonrpc.MemberOf(params, "_meta"), "progressToken")
	if _, err := jsonrpc.Key(token); err != nil {
		return nil
	}
	return token
}
