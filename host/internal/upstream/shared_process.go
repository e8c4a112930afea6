package upstream

import (
	"encoding/json"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// idBits is the number of bits of the request ids of one host. The bits above are the
// host's number. The ids of 2 million hosts fit into the integers of JavaScript.
const idBits = 32

// A sharedProcess is a program with the hosts that use it. Requests and answers pass
// unchanged, since the hosts use different ids.
type sharedProcess struct {
	key     string
	cfg     Config
	out     *stdio
	idle    time.Duration
	since   time.Time
	settled chan struct{} // closed when the session is open, or will never be
	settle  func()        // closes settled
	ended   chan struct{} // see receiver.done

	mu      sync.Mutex
	err     error // why it ends; nil: it runs
	users   map[uint64]*sharedUser
	number  uint64 // of the last user
	opening *sharedUser
	opened  bool
	retired bool // no host is added any more

	replaced *sharedProcess // retires when the session of this one is open; nil: none
	idling   *time.Timer

	initID     uint64          // of the initialize request of opening
	initResult json.RawMessage // the answer to it; nil: the session is not a legacy one
	listID     uint64          // the last tools/list request for the first page
	tools      json.RawMessage // the answer to it; nil: unknown, or it has changed
	pending    map[uint64]*sharedUser
	cancelled  map[uint64]time.Time      // of the requests that were cancelled and not answered
	ownID      uint64                    // of the last request of SharedServers itself
	questions  map[string]sharedQuestion // by jsonrpc.Key of the server's id
	elicited   map[string]*sharedUser    // by the elicitationId of an URL elicitation
	roots      []string                  // which the process serves
	rooted     bool                      // the server has asked for roots
	level      string                    // of log messages
	heard      uint64                    // number of messages of the server
	watched    bool                      // watchStopped runs
}

// sharedQuestion is an open request of the server to a host.
type sharedQuestion struct {
	user *sharedUser
	id   json.RawMessage
}

// sharedUser is a host that uses a process.
type sharedUser struct {
	conn  net.Conn
	out   *writer
	name  string // of the server in its configuration
	since time.Time

	// Guarded by the process's mu after the host has joined.
	number     uint64
	roots      []string
	moved      bool // told to attach again
	level      string
	subscribed map[string]bool
}

// send queues a message for a host and takes ownership of it. A host that does not
// read is disconnected.
func (u *sharedUser) send(message []byte) {
	if u.out.send(append(message, '\n')) != nil {
		u.conn.Close() //nolint:errcheck // it is lost
	}
}

func newSharedProcess(key string, cfg Config) *sharedProcess {
	process := &sharedProcess{
		key: key, cfg: cfg, since: time.Now(), settled: make(chan struct{}), ended: make(chan struct{}),
		users: map[uint64]*sharedUser{}, pending: map[uint64]*sharedUser{}, cancelled: map[uint64]time.Time{},
		questions: map[string]sharedQuestion{}, elicited: map[string]*sharedUser{},
	}
	process.settle = sync.OnceFunc(func() { close(process.settled) })
	return process
}

// begin adds the first host, which opens the session.
func (process *sharedProcess) begin(out *stdio, u *sharedUser, idle time.Duration) {
	process.mu.Lock()
	defer process.mu.Unlock()
	process.out, process.idle = out, idle
	process.opening = u
	process.add(u)
	if process.cfg.KillsOwnTree { // a bundled tool, which works in the roots of its client
		process.rooted, process.roots = true, u.roots
	}
	if process.err != nil {
		go out.close()
	}
}

// add adds a host. The caller holds process.mu.
func (process *sharedProcess) add(u *sharedUser) {
	process.number++
	u.number = process.number
	process.users[u.number] = u
	if process.idling != nil {
		process.idling.Stop()
		process.idling = nil
	}
}

// mayTake reports whether a host with the roots of u can use the process, or could
// after its start.
func (process *sharedProcess) mayTake(u *sharedUser) bool {
	process.mu.Lock()
	defer process.mu.Unlock()
	return process.err == nil && !process.retired && (!process.rooted || slices.Equal(process.roots, u.roots))
}

// isRunning reports whether the process has an id and has not ended.
func (process *sharedProcess) isRunning(pid int) bool {
	process.mu.Lock()
	defer process.mu.Unlock()
	return pid != 0 && process.out != nil && process.err == nil && process.out.proc.pid() == pid
}

// join adds a host, after the start. It returns false if the host needs another
// process.
func (process *sharedProcess) join(u *sharedUser) bool {
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.err != nil || process.retired || !process.opened || process.rooted && !slices.Equal(process.roots, u.roots) {
		return false
	}
	process.add(u)
	return true
}

// leave removes a host: its requests are cancelled and its subscriptions end.
func (process *sharedProcess) leave(u *sharedUser) {
	process.mu.Lock()
	defer process.mu.Unlock()
	delete(process.users, u.number)
	unanswered := false
	for id, owner := range process.pending {
		if owner == u {
			process.giveUp(id)
			process.cancel(id)
			unanswered = true
		}
	}
	for key, open := range process.questions {
		if open.user == u {
			delete(process.questions, key)
			process.toServer(jsonrpc.AppendError(nil, open.id, jsonrpc.CodeInternal, "the client has disconnected"))
		}
	}
	for id, owner := range process.elicited {
		if owner == u {
			delete(process.elicited, id)
		}
	}
	for uri := range u.subscribed {
		if process.subscribersOf(uri) == nil {
			process.ask("resources/unsubscribe", map[string]string{"uri": uri})
		}
	}
	switch {
	case process.err != nil:
	case process.opening == u && !process.opened:
		process.failLocked(errIdle)
	case len(process.users) == 0 && (process.idle == 0 || process.retired):
		process.failLocked(errIdle)
	case len(process.users) == 0:
		process.idling = time.AfterFunc(process.idle, process.endIfIdle)
	}
	if unanswered && process.err == nil {
		go process.checkAlive()
	}
}

// retire makes all hosts move to another process, and lets no host in.
func (process *sharedProcess) retire() {
	process.mu.Lock()
	defer process.mu.Unlock()
	process.retired = true
	for _, u := range process.users {
		process.move(u)
	}
	if len(process.users) == 0 {
		process.failLocked(errIdle)
	}
}

// move tells a host to attach again. The caller holds process.mu.
func (process *sharedProcess) move(u *sharedUser) {
	if !u.moved {
		u.moved = true
		u.send(jsonrpc.AppendNotification(nil, methodMoved, nil))
	}
}

func (process *sharedProcess) endIfIdle() {
	process.mu.Lock()
	defer process.mu.Unlock()
	if len(process.users) == 0 {
		process.failLocked(errIdle)
	}
}

// cancel sends the cancellation of a request. The caller holds process.mu.
func (process *sharedProcess) cancel(id uint64) {
	params := append(strconv.AppendUint([]byte(`{"requestId":`), id, 10), `,"reason":"the client has disconnected"}`...)
	process.toServer(jsonrpc.AppendNotification(nil, "notifications/cancelled", params))
}

// ask sends a request of SharedServers itself, whose answer nobody needs. The caller
// holds process.mu.
func (process *sharedProcess) ask(method string, params any) {
	var raw json.RawMessage
	if params != nil {
		var err error
		if raw, err = jsonrpc.Marshal(params); err != nil {
			return
		}
	}
	process.ownID++
	process.toServer(jsonrpc.AppendRequest(nil, strconv.AppendUint(nil, process.ownID, 10), method, raw))
}

// toServer queues a message for the server and takes ownership of it.
func (process *sharedProcess) toServer(message []byte) {
	process.out.send(append(message, '\n')) //nolint:errcheck // the end of the process shows why
}

// subscribersOf returns the hosts that are subscribed to a resource. The caller holds
// process.mu.
func (process *sharedProcess) subscribersOf(uri string) (users []*sharedUser) {
	for _, u := range process.users {
		if u.subscribed[uri] {
			users = append(users, u)
		}
	}
	return users
}
