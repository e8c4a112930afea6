package upstream

import (
	"cmp"
	"encoding/json"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// SharedConfig configures SharedServers.
type SharedConfig struct {
	// Guard is a program with arguments that calls RunGuard; nil for none.
	Guard []string
	// Idle is the time after which a process ends that no host uses; 0: at once.
	Idle time.Duration
	// Confine returns Config.Confine for the value of Share.Confined. It calls
	// onRefused with each refusal of the sandbox.
	Confine func(settings json.RawMessage, onRefused func(string)) (func(ConfinedProgram) (ConfinedProcess, error), error)
}

// SharedServers runs the programs of MCP servers for several hosts of one user. Hosts
// whose command, environment, working directory and so on are equal (sharedSpec) use
// one process. A process that asks for roots serves only hosts with the same roots.
//
// Each host speaks to the process as if it were alone: it opens the session, and gets
// the answers to its own requests and the notifications that belong to them. A message
// that could belong to several hosts reaches none, except those about the server as a
// whole, such as changes of its lists. It is safe for concurrent use.
type SharedServers struct {
	cfg     SharedConfig
	spawner *Spawner
	work    sync.WaitGroup // of connections and processes

	mu     sync.Mutex
	closed bool
	byKey  map[string][]*sharedProcess
	apart  map[string]bool  // keys of servers that have a process for each host
	conns  map[net.Conn]int // process id of the host
}

// NewSharedServers returns SharedServers without any process. The caller closes them.
func NewSharedServers(cfg SharedConfig) *SharedServers {
	return &SharedServers{cfg: cfg, spawner: NewSpawner(cfg.Guard), byKey: map[string][]*sharedProcess{}, apart: map[string]bool{}, conns: map[net.Conn]int{}}
}

// Serve serves the connection of a host until either side ends. first is its first
// line, a request of MethodAttach, and rest what was read after it.
func (p *SharedServers) Serve(conn net.Conn, first jsonrpc.Message, rest *jsonrpc.Reader) {
	defer conn.Close() //nolint:errcheck // all is said
	var request attachRequest
	if err := json.Unmarshal(first.Params, &request); err != nil {
		writeAttachError(conn, first.ID, toolerr.New(toolerr.InvalidParams, "%s: %w", MethodAttach, err))
		return
	}
	if !p.addConn(conn, request.Host) {
		return
	}
	defer p.closeConn(conn)
	if writeLine(conn, jsonrpc.AppendNotification(nil, methodWaiting, nil)) != nil {
		return
	}
	u := &attachedHost{conn: conn, roots: request.Roots, requestID: first.ID, pid: request.Host, instance: request.Instance}
	u.out = newWriter(conn, cmp.Or(request.WriteTime, 10*time.Second))
	u.out.onFail = func() { conn.Close() } //nolint:errcheck // it does not read
	process, err := p.attach(u, request)
	if err != nil {
		writeAttachError(conn, first.ID, err)
		return
	}
	for {
		line, err := rest.ReadLine()
		if err != nil {
			break
		}
		if !process.takeFromHost(u, line) {
			break
		}
	}
	process.leave(u)
	u.out.close()
	conn.Close() //nolint:errcheck // so that a running write ends
	u.out.awaitIdle()
}

// addConn registers the connection of a host. It returns false after Close; otherwise the
// caller calls closeConn.
func (p *SharedServers) addConn(conn net.Conn, host int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.conns[conn] = host
	p.work.Add(1)
	return true
}

// closeConn forgets a connection that open has registered. It does not close it.
func (p *SharedServers) closeConn(conn net.Conn) {
	p.mu.Lock()
	delete(p.conns, conn)
	p.mu.Unlock()
	p.work.Done()
}

// writeAttachError answers an attachRequest with an error.
func writeAttachError(conn net.Conn, id json.RawMessage, err error) {
	object, fault := jsonrpc.Marshal(map[string]any{
		"code": jsonrpc.CodeInternal, "message": err.Error(), "data": endedParams(err),
	})
	if fault == nil {
		writeLine(conn, jsonrpc.AppendErrorObject(nil, id, object)) //nolint:errcheck // the host is gone
	}
}

// writeLine writes a message to a host, and returns an error if the host does not take it
// within ten seconds.
func writeLine(conn net.Conn, message []byte) error {
	if err := conn.SetWriteDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	if _, err := conn.Write(append(message, '\n')); err != nil {
		return err
	}
	return conn.SetWriteDeadline(time.Time{})
}

// endedParams returns the params of methodEnded for an error.
func endedParams(err error) map[string]string {
	return map[string]string{"code": string(toolerr.CodeOf(err)), "message": err.Error()}
}

// attach returns the process for a host, which it starts if necessary, and adds u to its
// hosts. While another host opens the session of the process, it waits. It returns an error
// if the program does not start, or errClosed.
func (p *SharedServers) attach(u *attachedHost, request attachRequest) (*sharedProcess, error) {
	key, err := request.Spec.key()
	if err != nil {
		return nil, err
	}
	for {
		process, created, err := p.findOrCreate(key, u, request)
		if err != nil {
			return nil, err
		}
		if created {
			if err := process.start(p, request, u); err != nil {
				p.remove(process)
				return nil, err
			}
			return process, nil
		}
		<-process.settled
		if process.joinIfUsable(u) {
			return process, nil
		}
	}
}

// findOrCreate returns a process that u can use now or after its start. Otherwise it registers a
// new one, which is not started, and created is true. After Close it returns errClosed.
func (p *SharedServers) findOrCreate(key string, u *attachedHost, request attachRequest) (process *sharedProcess, created bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, false, errClosed
	}
	var replaced *sharedProcess
	only := ""
	if p.apart[key] {
		only = u.instance
	}
	for _, process := range p.byKey[key] {
		if process.canReplace(request.Replaces, u) {
			replaced = process
		} else if process.canUse(u) {
			return process, false, nil
		}
	}
	process = newSharedProcess(key, request.config(), &p.work)
	process.replaced, process.only = replaced, only
	process.onQuestion = func() { p.work.Go(func() { p.separateHosts(process) }) }
	p.byKey[key] = append(p.byKey[key], process)
	return process, true, nil
}

// separateHosts gives each host its own process of a server that asks the users of its clients
// without saying for which call: the hosts of process move to others.
func (p *SharedServers) separateHosts(process *sharedProcess) {
	p.mu.Lock()
	p.apart[process.key] = true
	p.mu.Unlock()
	process.retire()
}

// remove removes a process that has ended, and lets hosts that wait for its session
// continue.
func (p *SharedServers) remove(process *sharedProcess) {
	process.closeSettled()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byKey[process.key] = slices.DeleteFunc(p.byKey[process.key], func(other *sharedProcess) bool { return other == process })
	if len(p.byKey[process.key]) == 0 {
		delete(p.byKey, process.key)
	}
}

// start starts the program, with u as its first host. It returns SANDBOX_UNAVAILABLE if the
// program must be confined and cannot, and an error if it does not start.
func (process *sharedProcess) start(p *SharedServers, request attachRequest, u *attachedHost) error {
	cfg := process.cfg
	if request.Spec.Confined != nil {
		if p.cfg.Confine == nil {
			return toolerr.New(toolerr.SandboxUnavailable, "servers in a sandbox cannot be shared here")
		}
		var err error
		if cfg.Confine, err = p.cfg.Confine(request.Spec.Confined, process.notifyRefusal); err != nil {
			return err
		}
	}
	if err := cfg.Validate(); err != nil {
		return err
	}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return errClosed
	}
	p.work.Add(1)
	p.mu.Unlock()
	out, err := startStdio(cfg, p.spawner)
	if err != nil {
		p.work.Done()
		return err
	}
	process.addFirst(out, u, p.cfg.Idle)
	go func() {
		defer p.work.Done()
		err := out.runReceiver(process)
		process.fail(err)
		p.remove(process)
		process.notifyEnd()
	}()
	p.work.Go(process.showStderr)
	return nil
}

// SharedStatus describes a shared process.
type SharedStatus struct {
	Name    string    `json:"name"`    // in the configuration of the host that started it
	Command []string  `json:"command"` // without credentials
	PID     int       `json:"pid"`
	Since   time.Time `json:"since"`
	Hosts   int       `json:"hosts"` // that use it now
	Sandbox string    `json:"sandbox,omitempty"`
}

// Status returns the running processes, the oldest first.
func (p *SharedServers) Status() []SharedStatus {
	p.mu.Lock()
	var all []*sharedProcess
	for _, some := range p.byKey {
		all = append(all, some...)
	}
	p.mu.Unlock()
	list := []SharedStatus{}
	for _, process := range all {
		if status, ok := process.status(); ok {
			list = append(list, status)
		}
	}
	slices.SortFunc(list, func(a, b SharedStatus) int { return cmp.Or(a.Since.Compare(b.Since), a.PID-b.PID) })
	return list
}

// Hosts returns the process ids of the connected hosts, sorted.
func (p *SharedServers) Hosts() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	pids := []int{}
	for _, pid := range p.conns {
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

// Close ends all processes and connections, and waits for them.
func (p *SharedServers) Close() {
	p.mu.Lock()
	p.closed = true
	var all []*sharedProcess
	for _, some := range p.byKey {
		all = append(all, some...)
	}
	p.mu.Unlock()
	for _, process := range all {
		process.fail(errClosed)
	}
	p.mu.Lock()
	for conn := range p.conns {
		conn.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // it may be closed
	}
	p.mu.Unlock()
	p.work.Wait()
	p.spawner.Close()
}

// showStderr sends the first host the program's standard error while it opens the
// session, so that a failure can be explained.
func (process *sharedProcess) showStderr() {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	var shown string
	for {
		select {
		case <-tick.C:
		case <-process.settled:
			return
		}
		if text := process.out.describe().stderr; text != shown {
			shown = text
			process.notifyAll(methodStderr, map[string]string{"text": text})
		}
	}
}

// errIdle is the reason for the end of a process without hosts.
var errIdle = errors.New("no host uses the server any more")
