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
	Delay     time.Duration   // before the answer
	Hold      <-chan struct{} // no answer before it is closed
	Error     *RPCError       // instead of a result
	Crash     bool            // instead of answering, the server ends
	Malformed bool            // the answer is a line that is not JSON
	HugeLine  int             // the answer is one text of this many bytes
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

// fault returns the fault for the next answer and counts it. The caller holds
// m.mu.
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

// wait waits until the answer is due. It reports false if the request was
// cancelled.
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

// spoil returns the answer with the fault applied.
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
