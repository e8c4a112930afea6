package upstream

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// This file has the methods of receiver: a sharedProcess handles what its server sends.

// fail ends the process because of err. Only the first error counts.
func (process *sharedProcess) fail(err error) {
	process.mu.Lock()
	defer process.mu.Unlock()
	process.failLocked(err)
}

// failLocked does the same as fail. The caller holds process.mu.
func (process *sharedProcess) failLocked(err error) {
	if process.err != nil {
		return
	}
	process.err = err
	close(process.ended)
	process.closeSettled()
	if process.idling != nil {
		process.idling.Stop()
	}
	if process.unopened != nil {
		process.unopened.Stop()
	}
	if process.out != nil {
		process.out.close() // so that nothing is sent while runReceiver waits for the writer
	}
}

// done returns a channel that is closed when the process ends.
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
	for id, request := range process.pending {
		if head != nil && string(head) != strconv.FormatUint(id, 10) {
			continue
		}
		delete(process.pending, id)
		request.host.send(jsonrpc.AppendNotification(nil, methodTooLong, append(strconv.AppendUint([]byte(`{"id":`), id, 10), '}')))
	}
}

// maxUnsentRefusals limits the refusals that wait for a host.
const maxUnsentRefusals = 100

// notifyRefusal sends all hosts what the sandbox refused. A server can ask for something
// before the host that has started it is added: the first host gets it then.
func (process *sharedProcess) notifyRefusal(text string) {
	process.mu.Lock()
	defer process.mu.Unlock()
	if len(process.hosts) == 0 && len(process.refusals) < maxUnsentRefusals {
		process.refusals = append(process.refusals, text)
	}
	process.notifyAllLocked(methodRefused, refusedParams(text))
}

// refusedParams returns the params of methodRefused.
func refusedParams(text string) map[string]string { return map[string]string{"text": text} }

// notifyAll sends a notification of SharedServers to all hosts.
func (process *sharedProcess) notifyAll(method string, params any) {
	process.mu.Lock()
	defer process.mu.Unlock()
	process.notifyAllLocked(method, params)
}

// notifyAllLocked does the same as notifyAll. After notifyEnd it sends nothing. The caller
// holds process.mu.
func (process *sharedProcess) notifyAllLocked(method string, params any) {
	raw, err := jsonrpc.Marshal(params)
	if err != nil || process.endNotified {
		return
	}
	for _, u := range process.hosts {
		u.send(jsonrpc.AppendNotification(nil, method, raw))
	}
}

// notifyEnd sends the hosts the reason why the process ended, as the last message, and
// disconnects them.
func (process *sharedProcess) notifyEnd() {
	process.mu.Lock()
	process.notifyAllLocked(methodEnded, endedParams(process.err))
	process.endNotified = true // no further write begins, so that Wait below is allowed
	users := slices.Collect(maps.Values(process.hosts))
	process.mu.Unlock()
	for _, u := range users {
		process.work.Go(func() {
			u.out.work.Wait()
			u.conn.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // it may be closed
		})
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
		Name: process.cfg.Name, Command: process.cfg.shownCommand(), PID: process.out.proc.pid(), Since: process.since,
		Hosts: len(process.hosts), Sandbox: process.out.describe().sandbox,
	}, true
}

// handleLine handles a line of the server: a message or a batch.
func (process *sharedProcess) handleLine(line []byte) {
	if !isBatch(line) {
		process.handleMessage(line)
		return
	}
	items, err := jsonrpc.Items(line)
	if err != nil || len(items) > maxBatch {
		process.countStray(line)
		return
	}
	for _, item := range items {
		process.handleMessage(slices.Clone(item))
	}
}

// handleMessage handles one message of the server. A malformed one goes to the host whose
// request it answers, or during the handshake to the host that makes it; others are
// dropped.
func (process *sharedProcess) handleMessage(line []byte) {
	m, err := decodeMessage(line)
	process.mu.Lock()
	defer process.mu.Unlock()
	if err != nil {
		if id := answeredID(line, err); id != nil {
			process.forwardAnswer(id, oneLine(line), jsonrpc.Message{})
			return
		}
		if process.opening != nil && !process.opened && !isControl(line) {
			process.opening.send(line)
		}
		return
	}
	process.heard++
	switch m.Kind {
	case jsonrpc.Response:
		process.forwardAnswer(m.ID, line, m)
	case jsonrpc.Request:
		process.forwardQuestion(line, m)
	case jsonrpc.Notification:
		process.handleNotification(line, m)
	}
}

// forwardAnswer sends an answer to the host that waits for it, and records what the
// process needs of it. The caller holds process.mu.
func (process *sharedProcess) forwardAnswer(rawID json.RawMessage, line []byte, m jsonrpc.Message) {
	id, err := strconv.ParseUint(string(bytes.Trim(rawID, `"`)), 10, 64)
	if err != nil {
		return
	}
	delete(process.cancelled, id)
	if id != 0 && id == process.openID {
		process.admitWaitingHosts()
		return
	}
	request, waits := process.pending[id]
	if !waits {
		return
	}
	u := request.host
	delete(process.pending, id)
	// A modern server sends no requests, so its answer to a list or a discovery of its
	// version opens the session.
	if id != process.initID && (id != process.discoverID || bytes.Contains(m.Result, []byte(`"`+modernVersion+`"`))) {
		process.admitWaitingHosts()
	}
	if id == process.initID && m.Result != nil {
		process.initResult = bytes.Clone(m.Result)
	}
	if id == process.listID {
		process.tools = bytes.Clone(m.Result)
	}
	process.recordElicitations(u, m.Error)
	u.send(line)
}
