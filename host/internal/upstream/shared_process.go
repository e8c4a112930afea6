package upstream

import (
	"bytes"
	"encoding/json"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
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
	pending    map[uint64]*sharedUser
	cancelled  map[uint64]time.Time     // of the requests that were cancelled and not answered
	own        map[uint64]chan struct{} // pings of SharedServers
	ownID      uint64
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
		users: map[uint64]*sharedUser{}, pending: map[uint64]*sharedUser{}, cancelled: map[uint64]time.Time{}, own: map[uint64]chan struct{}{},
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

// ask sends a request of SharedServers itself and returns a channel that is closed
// with its answer. The caller holds process.mu.
func (process *sharedProcess) ask(method string, params any) <-chan struct{} {
	var raw json.RawMessage
	if params != nil {
		var err error
		if raw, err = jsonrpc.Marshal(params); err != nil {
			return nil
		}
	}
	process.ownID++
	answered := make(chan struct{})
	process.own[process.ownID] = answered
	process.toServer(jsonrpc.AppendRequest(nil, strconv.AppendUint(nil, process.ownID, 10), method, raw))
	return answered
}

// toServer queues a message for the server and takes ownership of it.
func (process *sharedProcess) toServer(message []byte) {
	process.out.send(append(message, '\n')) //nolint:errcheck // the end of the process shows why
}

// checkAlive ends the process if it sends nothing for QuietTime, also when pinged. It
// is called when a host has given up a request, for example because it found the
// server silent.
func (process *sharedProcess) checkAlive() {
	process.mu.Lock()
	before := process.heard
	if process.initResult != nil {
		process.ask("ping", nil)
	}
	process.mu.Unlock()
	late := time.NewTimer(process.cfg.QuietTime)
	defer late.Stop()
	select {
	case <-process.ended:
		return
	case <-late.C:
	}
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.heard == before && process.initResult != nil {
		process.failLocked(toolerr.New(toolerr.ServerOffline, "the server has been silent for %v, also when pinged, and was stopped", process.cfg.QuietTime))
	}
}

// watchStopped ends a process that is stopped (SIGSTOP) while hosts wait for answers.
func (process *sharedProcess) watchStopped() {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var heard uint64
	for stops := 0; ; {
		select {
		case <-look.C:
		case <-process.ended:
			return
		}
		stopped := isStopped(process.out.proc.pid())
		process.mu.Lock()
		if len(process.pending) == 0 {
			process.watched = false
			process.mu.Unlock()
			return
		}
		if stopped && process.heard == heard {
			stops++
		} else {
			stops, heard = 0, process.heard
		}
		if stops == mostStops {
			process.failLocked(toolerr.New(toolerr.ServerOffline, "the server's process was stopped (SIGSTOP or similar) and was killed"))
		}
		process.mu.Unlock()
	}
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

// Methods of receiver.

func (process *sharedProcess) fail(err error) {
	process.mu.Lock()
	defer process.mu.Unlock()
	process.failLocked(err)
}

// failLocked is fail for a caller that holds process.mu.
func (process *sharedProcess) failLocked(err error) {
	if process.err != nil {
		return
	}
	process.err = err
	close(process.ended)
	process.settle()
	if process.idling != nil {
		process.idling.Stop()
	}
	if process.out != nil {
		go process.out.close()
	}
}

func (process *sharedProcess) done() <-chan struct{} { return process.ended }

// countStray forwards a line that is not a message to the host that opens the session,
// which explains a failure with it.
func (process *sharedProcess) countStray(line []byte) {
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.opening != nil && !process.opened && !isControl(line) {
		process.opening.send(slices.Clone(line))
	}
}

// failTooLong answers the request whose answer was too long, or all waiting ones if it
// is unknown.
func (process *sharedProcess) failTooLong(err error) {
	head, isCall := longHead(err)
	if isCall {
		return
	}
	process.mu.Lock()
	defer process.mu.Unlock()
	for id, u := range process.pending {
		if head != nil && string(head) != strconv.FormatUint(id, 10) {
			continue
		}
		delete(process.pending, id)
		u.send(jsonrpc.AppendNotification(nil, methodTooLong, append(strconv.AppendUint([]byte(`{"id":`), id, 10), '}')))
	}
}

// refused tells all hosts what the sandbox refused.
func (process *sharedProcess) refused(text string) {
	process.notifyAll(methodRefused, map[string]string{"text": text})
}

// notifyAll sends a notification of SharedServers to all hosts.
func (process *sharedProcess) notifyAll(method string, params any) {
	raw, err := jsonrpc.Marshal(params)
	if err != nil {
		return
	}
	process.mu.Lock()
	defer process.mu.Unlock()
	for _, u := range process.users {
		u.send(jsonrpc.AppendNotification(nil, method, raw))
	}
}

// tellEnd tells the hosts why the process ended, and disconnects them.
func (process *sharedProcess) tellEnd() {
	process.mu.Lock()
	err := process.err
	users := make([]*sharedUser, 0, len(process.users))
	for _, u := range process.users {
		users = append(users, u)
	}
	process.mu.Unlock()
	process.notifyAll(methodEnded, endOf(err))
	for _, u := range users {
		go func() {
			u.out.work.Wait()
			u.conn.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // it may be closed
		}()
	}
}

// status describes the process. ok is false if it has not started or has ended.
func (process *sharedProcess) status() (s SharedStatus, ok bool) {
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.out == nil || process.err != nil {
		return SharedStatus{}, false
	}
	return SharedStatus{
		Name: process.cfg.Name, Command: process.cfg.Command, PID: process.out.proc.pid(), Since: process.since,
		Hosts: len(process.users), Sandbox: process.out.describe().sandbox,
	}, true
}

// take handles a line of the server.
func (process *sharedProcess) take(line []byte) {
	if !isBatch(line) {
		process.takeOne(line)
		return
	}
	items, err := jsonrpc.Items(line)
	if err != nil || len(items) > maxBatch {
		process.countStray(line)
		return
	}
	for _, item := range items {
		process.takeOne(slices.Clone(item))
	}
}

func (process *sharedProcess) takeOne(line []byte) {
	m, err := decodeMessage(line)
	process.mu.Lock()
	defer process.mu.Unlock()
	if err != nil {
		if id := answeredID(line, err); id != nil {
			process.answered(id, oneLine(line), jsonrpc.Message{})
			return
		}
		if process.opening != nil && !process.opened {
			process.opening.send(line)
		}
		return
	}
	process.heard++
	switch m.Kind {
	case jsonrpc.Response:
		process.answered(m.ID, line, m)
	case jsonrpc.Request:
		process.question(line, m)
	case jsonrpc.Notification:
		process.notified(line, m)
	}
}

// answered forwards an answer. The caller holds process.mu.
func (process *sharedProcess) answered(rawID json.RawMessage, line []byte, m jsonrpc.Message) {
	id, err := strconv.ParseUint(string(bytes.Trim(rawID, `"`)), 10, 64)
	if err != nil {
		return
	}
	if done, ok := process.own[id]; ok {
		delete(process.own, id)
		close(done)
		return
	}
	delete(process.cancelled, id)
	u := process.pending[id]
	if u == nil {
		return
	}
	delete(process.pending, id)
	if id == process.initID && m.Result != nil {
		process.initResult = bytes.Clone(m.Result)
	}
	process.recordElicitations(u, m.Error)
	u.send(line)
}
