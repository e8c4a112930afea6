package upstream

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// This file has the methods of sharedProcess for requests of its server, which a client's user
// answers.

// recordCaller records that a client of a host has sent a request. The caller holds process.mu.
func (process *sharedProcess) recordCaller(u *attachedHost) {
	if process.caller == "" {
		process.caller = u.instance
	}
	process.mixed = process.mixed || process.caller != u.instance
}

// onlyCaller returns the connection of the only host whose client has sent a request: the newest
// one, if possible with a running request. nil: there are several, or none, or it has left.
// The caller holds process.mu.
func (process *sharedProcess) onlyCaller() (only *attachedHost) {
	if process.mixed {
		return nil
	}
	busy := process.busyHosts()
	for _, users := range []map[uint64]*attachedHost{busy, process.hosts} {
		for _, u := range users {
			if u != nil && u.instance == process.caller && (only == nil || only.number < u.number) {
				only = u
			}
		}
		if only != nil {
			break
		}
	}
	return only
}

// errSeveralHosts is the answer to a question that could be for the clients of several hosts.
const errSeveralHosts = "this server works for several clients, and the request does not say for which call it is, so it cannot be assigned; each client gets a process of this server now, so another call can succeed"

// forwardQuestion sends a request of the server to the host whose client it concerns. A server
// that does not name the call may ask for any earlier one, answered or cancelled. So if
// clients of several hosts have called it, it gets an error, and the hosts move to processes
// of their own. The caller holds process.mu.
func (process *sharedProcess) forwardQuestion(line []byte, m jsonrpc.Message) {
	if m.Method == "ping" {
		process.sendToServer(jsonrpc.AppendResult(nil, m.ID, json.RawMessage(`{}`)))
		return
	}
	key, err := jsonrpc.Key(m.ID)
	if err != nil {
		return
	}
	refuse := func(code int, text string) { process.sendToServer(jsonrpc.AppendError(nil, m.ID, code, text)) }
	if !isQuestion(m.Method) {
		refuse(jsonrpc.CodeMethodNotFound, "this host does not answer "+m.Method)
		return
	}
	var u *attachedHost
	id, named := metaRequest(m.Params)
	switch {
	case m.Method == "roots/list":
		u = process.chooseRoots()
	case named:
		u = process.pending[id].host
	default:
		u = process.onlyCaller()
	}
	_, twice := process.questions[key]
	switch {
	case u == nil && m.Method == "roots/list" && len(process.busyHosts()) > 1:
		refuse(jsonrpc.CodeInvalidRequest, "requests of several clients with different roots are running, so this one cannot be answered")
	case u == nil && m.Method != "roots/list" && !named && process.mixed:
		refuse(jsonrpc.CodeInvalidRequest, errSeveralHosts)
		process.onQuestion()
	case u == nil:
		refuse(jsonrpc.CodeMethodNotFound, "no client can answer "+m.Method)
	case twice || len(process.questions) >= maxQuestions*max(1, len(process.hosts)):
		refuse(jsonrpc.CodeInternal, "too many questions are open, or one with this id is")
	default:
		process.questions[key] = sharedQuestion{u, bytes.Clone(m.ID)}
		process.recordElicitation(u, m.Params)
		u.send(line)
	}
}

// busyHosts returns the hosts whose clients wait for answers, nil for an unknown one. A request
// that was cancelled counts for cancelledTime, since the server may still work on it. The
// caller holds process.mu.
func (process *sharedProcess) busyHosts() map[uint64]*attachedHost {
	busy := map[uint64]*attachedHost{}
	for _, request := range process.pending {
		if request.ofClient {
			busy[request.host.number] = request.host
		}
	}
	for id, request := range process.cancelled {
		if time.Since(request.at) > cancelledTime {
			delete(process.cancelled, id)
		} else {
			busy[request.host] = process.hosts[request.host] // nil: it has left
		}
	}
	if time.Since(process.forgotten) <= cancelledTime {
		busy[0] = nil // no host has this number
	}
	return busy
}

// busyHost returns the only host that waits for answers or, if none waits, the only host;
// nil if there are several. The caller holds process.mu.
func (process *sharedProcess) busyHost() (u *attachedHost) {
	busy := process.busyHosts()
	if len(busy) == 0 && len(process.hosts) == 1 {
		busy = process.hosts
	}
	if len(busy) > 1 {
		return nil
	}
	for _, u = range busy {
	}
	return u
}

// cancelledTime is how long a server is assumed to work on a request after its
// cancellation, and maxCancelled bounds the number of such requests. The time is short:
// most servers do not answer a cancelled request, and until then no roots are told that
// differ from those of its client.
const (
	cancelledTime = 30 * time.Second
	maxCancelled  = 10_000
)

// recordCancelled removes a request from those that wait, and records it as cancelled if a
// client sent it: the server may still work on it. The caller holds process.mu.
func (process *sharedProcess) recordCancelled(id uint64) {
	request, waits := process.pending[id]
	delete(process.pending, id)
	if !waits || !request.ofClient {
		return
	}
	if len(process.cancelled) >= maxCancelled {
		maps.DeleteFunc(process.cancelled, func(_ uint64, old cancelledRequest) bool { return time.Since(old.at) > cancelledTime })
	}
	if len(process.cancelled) >= maxCancelled {
		process.forgotten = time.Now()
		return
	}
	process.cancelled[id] = cancelledRequest{request.host.number, time.Now()}
}

// chooseRoots chooses the roots that the process serves when the server asks for roots,
// and moves the hosts with other roots to other processes. It returns a host with the
// chosen roots; nil if the server may work for a host with other roots at present. The
// caller holds process.mu.
func (process *sharedProcess) chooseRoots() *attachedHost {
	busy := process.busyHosts()
	idle := len(busy) == 0
	if idle {
		busy = process.hosts
	}
	var with *attachedHost
	mixed := false
	for _, number := range slices.Sorted(maps.Keys(busy)) {
		u := busy[number]
		switch {
		case u == nil || process.rooted && !slices.Equal(u.roots, process.roots):
			mixed = true
		case with == nil:
			with = u
		case !slices.Equal(u.roots, with.roots):
			mixed = true
		}
	}
	if with == nil {
		return nil
	}
	process.rooted, process.roots = true, with.roots
	for _, u := range process.hosts {
		if !slices.Equal(u.roots, process.roots) {
			process.requestMove(u)
		}
	}
	if mixed && !idle {
		return nil
	}
	return with
}
