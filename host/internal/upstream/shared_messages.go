package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// takeFromHost handles a line of a host. It returns false if the host must be
// disconnected.
func (process *sharedProcess) takeFromHost(u *attachedHost, line []byte) bool {
	m, err := jsonrpc.Split(line)
	if err != nil {
		return false
	}
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.err != nil { // methodEnded will tell the host why
		return true
	}
	switch m.Kind {
	case jsonrpc.Request:
		return process.handleHostRequest(u, line, m)
	case jsonrpc.Notification:
		process.handleHostNotification(u, line, m)
	case jsonrpc.Response:
		key, err := jsonrpc.Key(m.ID)
		if err == nil && process.questions[key].host == u {
			delete(process.questions, key)
			process.sendToServerAnyway(line)
		}
	}
	return true
}

// handleHostRequest handles a request of a host: it answers it itself or forwards it. It
// returns false if the host must be disconnected. The caller holds process.mu.
func (process *sharedProcess) handleHostRequest(u *attachedHost, line []byte, m jsonrpc.Message) bool {
	id, err := strconv.ParseUint(string(m.ID), 10, 64)
	if owner := process.ids.owner(id); err != nil || owner != nil && owner != u {
		return false
	}
	switch m.Method {
	case "initialize":
		if process.initResult != nil {
			u.send(jsonrpc.AppendResult(nil, m.ID, process.initResult))
			return true
		}
		process.initID = id
	case "server/discover":
		process.discoverID = id
		if process.initResult != nil { // the open session is a legacy one
			u.send(jsonrpc.AppendError(nil, m.ID, jsonrpc.CodeMethodNotFound, "Method not found"))
			return true
		}
	case "tools/list": // the host asks again after a change
		if process.tools != nil && jsonrpc.MemberOf(m.Params, "cursor") == nil {
			u.send(jsonrpc.AppendResult(nil, m.ID, process.tools))
			return true
		}
		if process.initResult != nil && jsonrpc.MemberOf(m.Params, "cursor") == nil {
			process.listID = id
		}
	case "logging/setLevel":
		json.Unmarshal(jsonrpc.MemberOf(m.Params, "level"), &u.level) //nolint:errcheck // then the server answers
		if level := process.lowestLevel(); level == process.level {
			u.send(jsonrpc.AppendResult(nil, m.ID, json.RawMessage(`{}`)))
			return true
		} else if process.level = level; level != u.level {
			line = jsonrpc.AppendRequest(nil, m.ID, m.Method, append(jsonrpc.AppendString([]byte(`{"level":`), level), '}'))
		}
	case "resources/subscribe", "resources/unsubscribe":
		if process.subscribe(u, m) {
			u.send(jsonrpc.AppendResult(nil, m.ID, json.RawMessage(`{}`)))
			return true
		}
	}
	ofClient := isOfClient(m.Method)
	if ofClient {
		process.recordCaller(u)
	}
	process.pending[id] = sharedRequest{u, ofClient}
	if !process.watched {
		process.watched = true
		process.work.Go(process.watchStopped)
	}
	// A process that ends tells its hosts.
	if err := process.out.send(append(line, '\n')); err != nil && !errors.Is(err, errNotSent) {
		delete(process.pending, id)
		u.send(jsonrpc.AppendError(nil, m.ID, jsonrpc.CodeInternal, err.Error()))
	}
	return true
}

// isOfClient reports whether a host sends requests with a method only for its client,
// whose user the server may then ask.
func isOfClient(method string) bool {
	switch method {
	case "initialize", "server/discover", "ping", "logging/setLevel", "subscriptions/listen":
		return false
	}
	return !strings.HasSuffix(method, "/list")
}

// subscribe records a host's resources/subscribe or unsubscribe. It returns true if the
// server need not get it, because another host is still subscribed. The caller holds
// process.mu.
func (process *sharedProcess) subscribe(u *attachedHost, m jsonrpc.Message) (answered bool) {
	var uri string
	if json.Unmarshal(jsonrpc.MemberOf(m.Params, "uri"), &uri) != nil {
		return false
	}
	if m.Method == "resources/subscribe" {
		if u.subscribed == nil {
			u.subscribed = map[string]bool{}
		}
		u.subscribed[uri] = true
		return false
	}
	delete(u.subscribed, uri)
	return process.subscribersOf(uri) != nil
}

// logLevels are the levels of log messages of the specification, "Logging", the lowest
// first.
var logLevels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// lowestLevel returns the lowest log level that a host wants; "": no host wants messages.
// The caller holds process.mu.
func (process *sharedProcess) lowestLevel() string {
	lowest := len(logLevels)
	for _, u := range process.hosts {
		if i := slices.Index(logLevels, u.level); i >= 0 {
			lowest = min(lowest, i)
		}
	}
	if lowest == len(logLevels) {
		return ""
	}
	return logLevels[lowest]
}

// handleHostNotification handles a notification of a host: it forwards it, or applies it
// to the process as a whole. The caller holds process.mu.
func (process *sharedProcess) handleHostNotification(u *attachedHost, line []byte, m jsonrpc.Message) {
	switch m.Method {
	case "notifications/initialized":
		if u == process.opening && !process.opened {
			process.sendToServer(line)
			process.openID = process.sendOwnRequest("ping", nil)
		}
	case "notifications/cancelled":
		id, err := strconv.ParseUint(string(jsonrpc.MemberOf(m.Params, "requestId")), 10, 64)
		if err == nil && process.ids.owner(id) == u {
			process.recordCancelled(id)
			process.sendToServer(line)
		}
	case methodIDs:
		process.grantIDs(u)
	case methodRoots:
		process.handleRoots(u, m.Params)
	case "notifications/roots/list_changed": // see methodRoots
	default:
		process.sendToServer(line)
	}
}

// grantIDs handles methodIDs: it sends the host another block of ids. The caller holds
// process.mu.
func (process *sharedProcess) grantIDs(u *attachedHost) {
	used := map[uint64]bool{}
	for id := range process.pending {
		used[id>>blockBits] = true
	}
	process.ids.release(u, false, func(block uint64) bool { return used[block] })
	block, err := process.ids.grant(u)
	if err != nil {
		u.conn.Close() //nolint:errcheck // it attaches again
		return
	}
	u.send(jsonrpc.AppendNotification(nil, methodIDs, append(strconv.AppendUint([]byte(`{"block":`), block, 10), '}')))
}

// handleRoots handles methodRoots: it records the host's roots and answers whether the
// host must move to another process. The caller holds process.mu.
func (process *sharedProcess) handleRoots(u *attachedHost, params json.RawMessage) {
	var p struct {
		Roots []string `json:"roots"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	u.roots = p.Roots
	move := process.rooted && !slices.Equal(process.roots, u.roots)
	if len(process.hosts) == 1 {
		move, process.roots = false, u.roots
		if process.initResult != nil {
			process.sendToServer(jsonrpc.AppendNotification(nil, "notifications/roots/list_changed", nil))
		}
	}
	u.send(jsonrpc.AppendNotification(nil, methodRoots, append(strconv.AppendBool([]byte(`{"move":`), move), '}')))
}

// handleNotification forwards a notification of the server to the hosts that it concerns.
// The caller holds process.mu.
func (process *sharedProcess) handleNotification(line []byte, m jsonrpc.Message) {
	if strings.HasPrefix(m.Method, "toolroom/") {
		return
	}
	if id, ok := subscriptionID(m.Params); ok { // of a modern server
		process.sendTo(process.ids.owner(id), line)
		return
	}
	switch m.Method {
	case "notifications/progress":
		id, err := strconv.ParseUint(string(jsonrpc.MemberOf(m.Params, "progressToken")), 10, 64)
		if err == nil {
			process.sendTo(process.ids.owner(id), line)
		}
	case "notifications/cancelled": // of a question
		if key, err := jsonrpc.Key(jsonrpc.MemberOf(m.Params, "requestId")); err == nil {
			process.sendTo(process.questions[key].host, line)
			delete(process.questions, key)
		}
	case "notifications/tools/list_changed", "notifications/resources/list_changed", "notifications/prompts/list_changed":
		if m.Method == "notifications/tools/list_changed" {
			process.tools, process.listID = nil, 0
		}
		for _, u := range process.hosts {
			u.send(bytes.Clone(line))
		}
	case "notifications/resources/updated":
		var uri string
		if json.Unmarshal(jsonrpc.MemberOf(m.Params, "uri"), &uri) == nil {
			for _, u := range process.subscribersOf(uri) {
				u.send(bytes.Clone(line))
			}
		}
	case "notifications/elicitation/complete":
		var id string
		if json.Unmarshal(jsonrpc.MemberOf(m.Params, "elicitationId"), &id) == nil {
			process.sendTo(process.elicited[id], line)
			delete(process.elicited, id)
		}
	default: // such as log messages, which do not say to which request they belong
		if len(process.hosts) == 1 {
			process.sendTo(process.busyHost(), line)
		}
	}
}

// sendTo sends a line to a host, unless it is nil.
func (process *sharedProcess) sendTo(u *attachedHost, line []byte) {
	if u != nil {
		u.send(line)
	}
}

// subscriptionID returns the id, from _meta, of the request that opened the modern stream
// of a notification; false if params have none.
func subscriptionID(params json.RawMessage) (uint64, bool) {
	if !bytes.Contains(params, []byte("subscriptionId")) {
		return 0, false
	}
	raw := jsonrpc.MemberOf(jsonrpc.MemberOf(params, "_meta"), "io.modelcontextprotocol/subscriptionId")
	id, err := strconv.ParseUint(string(bytes.Trim(raw, `"`)), 10, 64)
	return id, err == nil
}

// maxElicited bounds the recorded URL elicitations of a process.
const maxElicited = 1024

// recordElicitation records which host is asked by a URL elicitation, so that its
// completion reaches that host. It forgets another one if there are maxElicited: most
// servers do not say that one is complete. The caller holds process.mu.
func (process *sharedProcess) recordElicitation(u *attachedHost, params json.RawMessage) {
	var id string
	if json.Unmarshal(jsonrpc.MemberOf(params, "elicitationId"), &id) != nil || id == "" {
		return
	}
	for other := range process.elicited {
		if len(process.elicited) < maxElicited {
			break
		}
		delete(process.elicited, other)
	}
	process.elicited[id] = u
}

// recordElicitations does the same as recordElicitation for all elicitations of an error
// that requires them. The caller holds process.mu.
func (process *sharedProcess) recordElicitations(u *attachedHost, fault json.RawMessage) {
	if !bytes.Contains(fault, []byte("elicitationId")) {
		return
	}
	var e struct {
		Data struct {
			Elicitations []json.RawMessage `json:"elicitations"`
		} `json:"data"`
	}
	if json.Unmarshal(fault, &e) != nil {
		return
	}
	for _, one := range e.Data.Elicitations {
		process.recordElicitation(u, one)
	}
}
