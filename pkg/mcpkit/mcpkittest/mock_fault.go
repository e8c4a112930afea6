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
func (m *Mock) SetFault(what string, f Fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults[what] = &f
}

// ClearFault removes the fault of a tool or a method.
func (m *Mock) ClearFault(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.faults, what)
}

// SetError makes a tool or method answer with a JSON-RPC error.
func (m *Mock) SetError(what string, code int, message string) {
	m.SetFault(what, Fault{Error: &RPCError{Code: code, Message: message}})
}

// Delay delays the answers of a tool or method. Fault.Hold does so without a
// clock.
func (m *Mock) Delay(what string, d time.Duration) { m.SetFault(what, Fault{Delay: d}) }

// Crash makes the server end instead of answering: a child exits with status 1,
// Serve returns ErrCrashed, an HTTP connection breaks off.
func (m *Mock) Crash(what string) { m.SetFault(what, Fault{Crash: true}) }

// Malformed makes the answers of a tool or method lines that are not JSON.
func (m *Mock) Malformed(what string) { m.SetFault(what, Fault{Malformed: true}) }

// HugeLine makes each answer of a tool or method one text of that many bytes.
func (m *Mock) HugeLine(what string, bytes int) { m.SetFault(what, Fault{HugeLine: bytes}) }

// takeFault returns the fault for the next answer, the zero value if there is
// none, and counts it down: Fault.Times limits the number. Hold m.mu.
func (m *Mock) takeFault(what string) Fault {
	f := m.faults[what]
	if f == nil {
		return Fault{}
	}
	now := *f
	if f.Times > 0 {
		if f.Times--; f.Times == 0 {
			delete(m.faults, what)
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
