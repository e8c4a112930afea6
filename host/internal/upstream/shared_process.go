package upstream

import (
	"encoding/json"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A sharedProcess is a program with the hosts that use it. Requests and answers pass
// unchanged, since the hosts use different ids.
type sharedProcess struct {
	key          string
	cfg          Config
	out          *stdio
	idle         time.Duration
	since        time.Time
	settled      chan struct{} // closed when the session is open, or will never be
	closeSettled func()        // closes settled
	ended        chan struct{} // see receiver.done
	// work, of SharedServers, counts the goroutines of the process. Each
	// starts while another counted one runs.
	work *sync.WaitGroup

	mu          sync.Mutex
	err         error // why it ends; nil: it runs
	endNotified bool  // notifyEnd has sent the last message to the hosts
	hosts       map[uint64]*attachedHost
	number      uint64 // of the last user
	opening     *attachedHost
	opened      bool
	retired     bool   // no host is added any more
	caller      string // the instance of the only host whose client has sent a request; "": none
	mixed       bool   // clients of several hosts have
	only        string // the instance of the only host that may use it; "": any may

	onQuestion func() // called when a question could be for the clients of several hosts; it does not wait

	replaced *sharedProcess // retires when the session of this one is open; nil: none
	unopened *time.Timer    // runs failUnopened; nil: not started
	refusals []string       // see notifyRefusal
	idling   *time.Timer    // runs endIfIdle; nil: there are hosts

	initID     uint64                   // of the initialize request of opening
	discoverID uint64                   // the last server/discover request
	openID     uint64                   // a ping after the handshake, whose answer lets other hosts in; 0: none
	initResult json.RawMessage          // the answer to it; nil: the session is not a legacy one
	listID     uint64                   // the last tools/list request for the first page
	tools      json.RawMessage          // the answer to it; nil: unknown, or it has changed
	pending    map[uint64]sharedRequest // by id
	ids        idBlocks
	cancelled  map[uint64]cancelledRequest // by the id of a request that was cancelled and not answered
	forgotten  time.Time                   // when there was no room for another one in cancelled
	ownID      uint64                      // of the last request of SharedServers itself
	questions  map[string]sharedQuestion   // by jsonrpc.Key of the server's id
	elicited   map[string]*attachedHost    // by the elicitationId of an URL elicitation
	roots      []string                    // which the process serves
	rooted     bool                        // the server has asked for roots
	level      string                      // of log messages
	heard      uint64                      // number of messages of the server
	watched    bool                        // watchStopped runs
}

// sharedRequest is a request of a host that the server has not answered.
type sharedRequest struct {
	host *attachedHost
	// ofClient says that a client of the host waits for it: it is not one of the requests
	// with which hosts open sessions and list what a server has.
	ofClient bool
}

// cancelledRequest is a request of a client whose answer nobody waits for.
type cancelledRequest struct {
	host uint64 // its number
	at   time.Time
}

// sharedQuestion is an open request of the server to a host.
type sharedQuestion struct {
	host *attachedHost
	id   json.RawMessage
}

// attachedHost is a host that uses a process.
type attachedHost struct {
	conn      net.Conn
	out       *writer
	requestID json.RawMessage // id of its attachRequest
	pid       int             // process id
	instance  string          // see attachRequest

	// Guarded by the process's mu after the host has joined.
	number     uint64
	roots      []string
	blocks     []uint64 // of ids
	moved      bool     // told to attach again
	level      string
	subscribed map[string]bool
}

// send queues a message for a host and takes ownership of it. A host that does not
// read is disconnected.
func (u *attachedHost) send(message []byte) {
	if u.out.send(append(message, '\n')) != nil {
		u.conn.Close() //nolint:errcheck // it is lost
	}
}

// newSharedProcess returns a process that is not started. work counts its goroutines.
func newSharedProcess(key string, cfg Config, work *sync.WaitGroup) *sharedProcess {
	process := &sharedProcess{
		key: key, cfg: cfg, work: work, since: time.Now(), settled: make(chan struct{}), ended: make(chan struct{}),
		hosts: map[uint64]*attachedHost{}, pending: map[uint64]sharedRequest{}, cancelled: map[uint64]cancelledRequest{},
		questions: map[string]sharedQuestion{}, elicited: map[string]*attachedHost{},
	}
	process.closeSettled = sync.OnceFunc(func() { close(process.settled) })
	return process
}

// addFirst adds the first host, which opens the session, in the time of failUnopened. idle
// is the time after which the process ends without hosts.
func (process *sharedProcess) addFirst(out *stdio, u *attachedHost, idle time.Duration) {
	process.mu.Lock()
	defer process.mu.Unlock()
	process.out, process.idle = out, idle
	process.opening = u
	process.add(u)
	process.unopened = time.AfterFunc(process.cfg.StartTimeout, process.failUnopened)
	if process.cfg.KillsOwnTree { // a bundled tool, which works in the roots of its client
		process.rooted, process.roots = true, u.roots
	}
	if process.err != nil {
		process.unopened.Stop()
		out.close()
	}
}

// failUnopened ends a process whose first host has not opened the session in time, for
// example because that host is stopped (SIGSTOP). Other hosts wait for it.
func (process *sharedProcess) failUnopened() {
	process.mu.Lock()
	defer process.mu.Unlock()
	switch {
	case process.opened || process.err != nil:
	case process.initResult != nil: // it does not answer pings
		process.admitWaitingHosts()
	default:
		process.failLocked(toolerr.New(toolerr.ServerOffline, "it did not answer the handshake within %v", process.cfg.StartTimeout))
	}
}

// admitWaitingHosts records that the session is open, which lets waiting hosts in, and retires
// the replaced process. The caller holds process.mu.
func (process *sharedProcess) admitWaitingHosts() {
	if process.opened {
		return
	}
	process.opened = true
	process.closeSettled()
	if process.replaced != nil {
		process.work.Go(process.replaced.retire)
		process.replaced = nil
	}
}

// add adds a host and answers its request. The caller holds process.mu.
func (process *sharedProcess) add(u *attachedHost) {
	process.number++
	u.number = process.number
	process.hosts[u.number] = u
	process.answerAttach(u)
	for _, text := range process.refusals {
		process.notifyAllLocked(methodRefused, refusedParams(text))
	}
	process.refusals = nil
	if process.idling != nil {
		process.idling.Stop()
		process.idling = nil
	}
}

// canUse reports whether a host with the roots of u can use the process, now or after its
// start.
func (process *sharedProcess) canUse(u *attachedHost) bool {
	process.mu.Lock()
	defer process.mu.Unlock()
	return process.err == nil && !process.retired && process.admits(u) && (!process.rooted || slices.Equal(process.roots, u.roots))
}

// admits reports whether the process may serve a host, as far as questions are concerned. The
// caller holds process.mu.
func (process *sharedProcess) admits(u *attachedHost) bool {
	return process.only == "" || process.only == u.instance
}

// canReplace reports whether the process with this process id runs and works for no client
// of another host than u.
func (process *sharedProcess) canReplace(pid int, u *attachedHost) bool {
	process.mu.Lock()
	defer process.mu.Unlock()
	if pid == 0 || process.out == nil || process.err != nil || process.out.proc.pid() != pid {
		return false
	}
	for _, request := range process.pending {
		if request.ofClient && request.host.pid != u.pid {
			return false
		}
	}
	return true
}

// joinIfUsable adds a host to a process whose session is open. It returns false if the host needs
// another process.
func (process *sharedProcess) joinIfUsable(u *attachedHost) (joined bool) {
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.err != nil || process.retired || !process.admits(u) || !process.opened || process.rooted && !slices.Equal(process.roots, u.roots) {
		return false
	}
	process.add(u)
	return true
}

// answerAttach answers the attachRequest of a host, before the host gets any other
// message. The caller holds process.mu.
func (process *sharedProcess) answerAttach(u *attachedHost) {
	result := attachResult{PID: process.out.proc.pid(), Sandbox: process.out.describe().sandbox}
	for range 2 {
		block, err := process.ids.grant(u)
		if err != nil {
			u.conn.Close() //nolint:errcheck // it has no ids
			return
		}
		result.Blocks = append(result.Blocks, block)
	}
	if raw, err := jsonrpc.Marshal(result); err == nil {
		u.send(jsonrpc.AppendResult(nil, u.requestID, raw))
	}
}

// leave removes a host: it cancels its requests, ends its subscriptions and frees its ids.
func (process *sharedProcess) leave(u *attachedHost) {
	process.mu.Lock()
	defer process.mu.Unlock()
	delete(process.hosts, u.number)
	defer process.ids.release(u, true, nil)
	unanswered := false
	for id, request := range process.pending {
		if request.host == u {
			process.recordCancelled(id)
			process.cancel(id)
			unanswered = true
		}
	}
	for key, open := range process.questions {
		if open.host == u {
			delete(process.questions, key)
			process.sendToServerAnyway(jsonrpc.AppendError(nil, open.id, jsonrpc.CodeInternal, "the client has disconnected"))
		}
	}
	for id, owner := range process.elicited {
		if owner == u {
			delete(process.elicited, id)
		}
	}
	for uri := range u.subscribed {
		if process.subscribersOf(uri) == nil {
			process.sendOwnRequest("resources/unsubscribe", map[string]string{"uri": uri})
		}
	}
	switch {
	case process.err != nil:
	case process.opening == u && !process.opened:
		process.failLocked(errIdle)
	case len(process.hosts) == 0 && (process.idle == 0 || process.retired):
		process.failLocked(errIdle)
	case len(process.hosts) == 0:
		process.idling = time.AfterFunc(process.idle, process.endIfIdle)
	}
	if unanswered && process.err == nil && len(process.hosts) == 0 {
		process.work.Go(process.checkAlive)
	}
}

// retire makes all hosts move to another process, and lets no host in.
func (process *sharedProcess) retire() {
	process.mu.Lock()
	defer process.mu.Unlock()
	process.retired = true
	for _, u := range process.hosts {
		process.requestMove(u)
	}
	if len(process.hosts) == 0 {
		process.failLocked(errIdle)
	}
}

// requestMove tells a host to attach again, to another process. The caller holds
// process.mu.
func (process *sharedProcess) requestMove(u *attachedHost) {
	if !u.moved && !process.endNotified {
		u.moved = true
		u.send(jsonrpc.AppendNotification(nil, methodMoved, nil))
	}
}

// endIfIdle ends the process if no host uses it.
func (process *sharedProcess) endIfIdle() {
	process.mu.Lock()
	defer process.mu.Unlock()
	if len(process.hosts) == 0 {
		process.failLocked(errIdle)
	}
}

// cancel sends the cancellation of a request. The caller holds process.mu.
func (process *sharedProcess) cancel(id uint64) {
	params := append(strconv.AppendUint([]byte(`{"requestId":`), id, 10), `,"reason":"the client has disconnected"}`...)
	process.sendToServerAnyway(jsonrpc.AppendNotification(nil, "notifications/cancelled", params))
}

// sendOwnRequest sends a request of SharedServers itself and returns its id. The caller
// holds process.mu.
func (process *sharedProcess) sendOwnRequest(method string, params any) (id uint64) {
	var raw json.RawMessage
	if params != nil {
		var err error
		if raw, err = jsonrpc.Marshal(params); err != nil {
			return 0
		}
	}
	process.ownID = nextOwnID(process.ownID)
	process.sendToServer(jsonrpc.AppendRequest(nil, strconv.AppendUint(nil, process.ownID, 10), method, raw))
	return process.ownID
}

// sendToServer queues a message for the server that needs no answer, and takes ownership
// of it.
func (process *sharedProcess) sendToServer(message []byte) {
	process.out.send(append(message, '\n')) //nolint:errcheck // the end of the process shows why
}

// sendToServerAnyway does so however much the server has not read yet: answers to its
// questions, of which there are at most maxQuestions a host, and cancellations of pending
// requests. Without them it would wait or work in vain.
func (process *sharedProcess) sendToServerAnyway(message []byte) {
	process.out.sendAnyway(append(message, '\n')) //nolint:errcheck // the end of the process shows why
}

// subscribersOf returns the hosts that are subscribed to a resource. The caller holds
// process.mu.
func (process *sharedProcess) subscribersOf(uri string) (users []*attachedHost) {
	for _, u := range process.hosts {
		if u.subscribed[uri] {
			users = append(users, u)
		}
	}
	return users
}
