package mcpkittest

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// Fault describes how an answer fails. The zero value is no fault.
type Fault struct {
	Delay     time.Duration   // wait this long before the answer
	Hold      <-chan struct{} // wait until it is closed; nil: do not wait
	Error     *RPCError       // instead of a result
	Crash     bool            // the server ends instead of answering
	Malformed bool            // the answer is a line that is not JSON
	HugeLine  int             // if not 0, the answer is one text of this many bytes
	Times     int             // number of answers that fail; 0: all
}

// SetFault sets the fault of a tool or a method.
func (m *Mock) SetFault(toolOrMethod string, f Fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults[toolOrMethod] = &f
}

// ClearFault removes the fault of a tool or a method.
func (m *Mock) ClearFault(toolOrMethod string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.faults, toolOrMethod)
}

// SetError makes a tool or method answer with a JSON-RPC error.
func (m *Mock) SetError(toolOrMethod string, code int, message string) {
	m.SetFault(toolOrMethod, Fault{Error: &RPCError{Code: code, Message: message}})
}

// SetDelay delays the answers of a tool or method. Fault.Hold does so without a
// clock.
func (m *Mock) SetDelay(toolOrMethod string, d time.Duration) {
	m.SetFault(toolOrMethod, Fault{Delay: d})
}

// SetCrash makes the server end instead of answering: a child exits with status 1,
// Serve returns ErrCrashed, an HTTP connection breaks off.
func (m *Mock) SetCrash(toolOrMethod string) { m.SetFault(toolOrMethod, Fault{Crash: true}) }

// SetMalformed makes the answers of a tool or method lines that are not JSON.
func (m *Mock) SetMalformed(toolOrMethod string) { m.SetFault(toolOrMethod, Fault{Malformed: true}) }

// SetHugeLine makes each answer of a tool or method one text of that many bytes.
func (m *Mock) SetHugeLine(toolOrMethod string, bytes int) {
	m.SetFault(toolOrMethod, Fault{HugeLine: bytes})
}

// takeFault returns the fault for the next answer, the zero value if there is
// none, and counts it down: Fault.Times limits the number. Hold m.mu.
func (m *Mock) takeFault(toolOrMethod string) Fault {
	f := m.faults[toolOrMethod]
	if f == nil {
		return Fault{}
	}
	now := *f
	if f.Times > 0 {
		if f.Times--; f.Times == 0 {
			delete(m.faults, toolOrMethod)
		}
	}
	return now
}

// waitUntilDue waits until the answer is due. It returns false if the request
// was cancelled.
func (f Fault) waitUntilDue(ctx context.Context) bool {
	if f.Delay > 0 {
		timer := time.NewTimer(f.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return false
		}
	}
	if f.Hold != nil {
		select {
		case <-f.Hold:
		case <-ctx.Done():
			return false
		}
	}
	return ctx.Err() == nil
}

// apply returns the line to send instead of answer, the answer to id, by the
// fault: an error, a line that is not JSON or a huge text.
func (f Fault) apply(id json.RawMessage, answer []byte) []byte {
	switch {
	case f.Malformed:
		return []byte(`{"jsonrpc":"2.0","id":` + string(id) + `,"result":{"content":[`)
	case f.Error != nil:
		return jsonrpc.AppendError(nil, id, f.Error.Code, f.Error.Message)
	case f.HugeLine > 0:
		return jsonrpc.AppendResult(nil, id, json.RawMessage(`{"content":[{"type":"text","text":"`+strings.Repeat("x", f.HugeLine)+`"}]}`))
	}
	return answer
}
