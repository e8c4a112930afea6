package mcpkit

import (
	"context"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/mark3labs/mcp-go/server"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

type budgetKey struct{}

// bytesPerToken is how tokens are estimated.
const bytesPerToken = 4

// WithBudget returns a context whose calls may answer with tokens tokens.
func WithBudget(ctx context.Context, tokens int) context.Context {
	return context.WithValue(ctx, budgetKey{}, tokens)
}

// hasBudget reports whether ctx carries a budget.
func hasBudget(ctx context.Context) bool {
	_, ok := ctx.Value(budgetKey{}).(int)
	return ok
}

// Budget returns how many bytes the result of the call that ctx belongs to
// may take: its tokens at 4 bytes each, at most MaxMessage.
func Budget(ctx context.Context) int {
	tokens, ok := ctx.Value(budgetKey{}).(int)
	if !ok || tokens <= 0 {
		tokens = DefaultMaxTokens
	}
	return min(tokens, MaxMessage/bytesPerToken) * bytesPerToken
}

// progressInterval is the least time between two progress notifications.
const progressInterval = time.Second

// Progress tells the client how far a long call has come. It does nothing
// when the client sent no progress token; otherwise it sends at most one
// notification a second, only ever with a larger done, and none after the
// answer, so a tool may call it as often as it likes. A total of 0 means
// unknown.
func Progress(ctx context.Context, done, total float64, message string) {
	if v := viewOf(ctx); v != nil && !math.IsNaN(done) && !math.IsInf(done, 0) {
		v.progress(done, total, message)
	}
}

// progressState is what a request remembers about its progress.
type progressState struct {
	looked bool            // whether token has been looked for
	token  json.RawMessage // as the client sent it; nil: none
	last   float64
	at     time.Time // zero: nothing sent yet
}

func (v *view) progress(done, total float64, message string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := &v.prog
	if !p.looked {
		p.looked, p.token = true, progressToken(v.params)
	}
	now := v.conn.now()
	if p.token == nil || v.over() || !p.at.IsZero() && (done <= p.last || now.Sub(p.at) < progressInterval) {
		return
	}
	p.last, p.at = done, now
	params := append([]byte(`{"progressToken":`), p.token...)
	params = strconv.AppendFloat(append(params, `,"progress":`...), done, 'f', -1, 64)
	if total > 0 && !math.IsInf(total, 0) {
		params = strconv.AppendFloat(append(params, `,"total":`...), total, 'f', -1, 64)
	}
	if message != "" {
		params = jsonrpc.AppendString(append(params, `,"message":`...), message)
	}
	v.conn.send(jsonrpc.AppendNotification(nil, "notifications/progress", append(params, '}')))
}

// progressToken returns params._meta.progressToken, or nil.
func progressToken(params json.RawMessage) json.RawMessage {
	token := jsonrpc.MemberOf(jsonrpc.MemberOf(params, "_meta"), "progressToken")
	if _, err := jsonrpc.Key(token); err != nil {
		return nil
	}
	return token
}

// Notify sends a notification that belongs to the request of ctx, with params
// as they are. It is written before the request's answer. It reports false
// when the request has been answered or cancelled, or did not come over
// ServeStdio, and when the client is far behind and has stopped reading.
func Notify(ctx context.Context, method string, params json.RawMessage) bool {
	v := viewOf(ctx)
	if v == nil {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.over() {
		return false
	}
	return v.conn.offer(jsonrpc.AppendNotification(nil, method, params))
}

// SetRawResult makes result, a JSON object without newlines, the result of
// the request that ctx belongs to, byte for byte: the writer puts it in place
// of whatever the handler returns, which must not be an error. It reports false
// when the request did not come over ServeStdio.
func SetRawResult(ctx context.Context, result json.RawMessage) bool {
	v := viewOf(ctx)
	if v == nil {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.raw = result
	return true
}

// viewOf returns the stdio request that ctx belongs to, or nil.
func viewOf(ctx context.Context) *view {
	v, _ := server.ClientSessionFromContext(ctx).(*view)
	return v
}
