package wire

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// outgoingRequests holds the requests sent to the client that await a response.
type outgoingRequests struct {
	mu      sync.Mutex
	last    int
	pending map[string]chan jsonrpc.Message // by id
	closed  bool                            // set once the input has ended: no response can arrive
}

// ask sends the client a request, waits for the response and decodes its result
// into result.
func (c *conn) ask(ctx context.Context, method string, params, result any) error {
	var raw json.RawMessage
	if params != nil {
		var err error
		if raw, err = jsonrpc.Marshal(params); err != nil {
			return err
		}
	}
	m, err := c.sendRequest(ctx, method, raw)
	if err != nil {
		return err
	}
	if m.Error != nil {
		return fmt.Errorf("the client refused %s: %s", method, m.Error)
	}
	return json.Unmarshal(m.Result, result)
}

// Ask sends a request to the client that made ctx's request, with params
// unchanged, and returns the response byte for byte: a result or an error
// object. It fails if ctx's request did not come over ServeStdio.
func Ask(ctx context.Context, method string, params json.RawMessage) (result, fault json.RawMessage, err error) {
	req := requestOf(ctx)
	if req == nil {
		return nil, nil, errNoAnswer
	}
	m, err := req.conn.sendRequest(ctx, method, params)
	return m.Result, m.Error, err
}

// sendRequest sends the client a request and waits for its response.
func (c *conn) sendRequest(ctx context.Context, method string, params json.RawMessage) (jsonrpc.Message, error) {
	q := &c.outgoing
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return jsonrpc.Message{}, errNoAnswer
	}
	q.last++
	id := `"toolroom:` + strconv.Itoa(q.last) + `"`
	answer := make(chan jsonrpc.Message, 1)
	if q.pending == nil {
		q.pending = make(map[string]chan jsonrpc.Message)
	}
	q.pending[id] = answer
	q.mu.Unlock()

	c.send(jsonrpc.AppendRequest(nil, json.RawMessage(id), method, params))
	select {
	case m, ok := <-answer:
		if !ok {
			return m, errNoAnswer
		}
		return m, nil
	case <-ctx.Done():
		q.mu.Lock()
		delete(q.pending, id)
		q.mu.Unlock()
		c.send(jsonrpc.AppendNotification(nil, string(mcp.MethodNotificationCancelled), CancelledParams(json.RawMessage(id))))
		return jsonrpc.Message{}, context.Cause(ctx)
	}
}

// CancelledParams returns the params of a notifications/cancelled for the
// request id: its answer is no longer needed, so the client's user need not
// decide on it.
func CancelledParams(id json.RawMessage) json.RawMessage {
	return append(append([]byte(`{"requestId":`), id...), `,"reason":"no longer needed"}`...)
}

// deliverResponse hands the client's response to the goroutine that waits for
// it. A response to no open request is dropped, as JSON-RPC asks.
func (c *conn) deliverResponse(m jsonrpc.Message) {
	key, err := jsonrpc.Key(m.ID)
	if err != nil {
		return
	}
	q := &c.outgoing
	q.mu.Lock()
	defer q.mu.Unlock()
	if answer, ok := q.pending[key]; ok {
		delete(q.pending, key)
		answer <- m
	}
}

// close fails all pending requests and every later request: the input has
// ended.
func (q *outgoingRequests) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for id, answer := range q.pending {
		delete(q.pending, id)
		close(answer)
	}
}

// rootsWait bounds how long a call waits for the client's roots.
const rootsWait = 5 * time.Second

// roots caches the client's roots.
type roots struct {
	mu           sync.Mutex
	changes      int           // list_changed notifications so far
	known        bool          // paths are current
	paths        []string      // nil: the client offers no roots
	pendingFetch chan struct{} // closed when the pending roots/list request has ended
}

// ClientRoots does what mcpkit.ClientRoots promises.
func ClientRoots(ctx context.Context) ([]string, error) {
	req := requestOf(ctx)
	if req == nil || req.isModern() || !req.conn.offersRoots() {
		return nil, nil
	}
	return req.conn.clientRoots(ctx)
}

// offersRoots reports whether the handshake is complete and named roots.
func (c *conn) offersRoots() bool {
	c.handshake.mu.Lock()
	defer c.handshake.mu.Unlock()
	return c.handshake.ready && c.handshake.caps.Roots != nil
}

func (c *conn) clientRoots(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, rootsWait+time.Second)
	defer cancel()
	r := &c.roots
	for {
		r.mu.Lock()
		if r.known {
			paths := slices.Clone(r.paths)
			r.mu.Unlock()
			return paths, nil
		}
		if r.pendingFetch == nil {
			r.pendingFetch = make(chan struct{})
			changes, waiting := r.changes, r.pendingFetch
			c.background.Go(func() { c.fetchRoots(changes, waiting) })
		}
		asking := r.pendingFetch
		r.mu.Unlock()
		select {
		case <-asking:
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the client's roots: %w", ctx.Err())
		}
	}
}

// fetchRoots asks the client once, for all calls that wait on asking. An answer
// that arrives after they stopped waiting is used for later calls.
func (c *conn) fetchRoots(changes int, asking chan struct{}) {
	r := &c.roots
	learn := func(paths []string, answered bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		waited := r.pendingFetch == asking
		if r.changes == changes && (answered || waited) {
			r.known, r.paths = true, paths
		}
		if waited {
			close(asking)
			r.pendingFetch = nil
		}
	}
	patience := time.AfterFunc(rootsWait, func() {
		c.logf("the client offers roots but has not listed them within %v; continuing without them until it does", rootsWait)
		learn(nil, false)
	})
	var list mcp.ListRootsResult
	err := c.ask(c.ctx, string(mcp.MethodListRoots), nil, &list)
	patience.Stop()
	if err != nil {
		c.logf("the client offers roots but listing them failed; continuing without them: %v", err)
	}
	learn(rootPaths(list.Roots), true)
}

// forgetRoots drops the cached roots, so that the next call asks the client
// again.
func (c *conn) forgetRoots() {
	r := &c.roots
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes++
	r.known, r.paths = false, nil
}

// rootPaths returns the local paths of the roots in list that are file URIs.
func rootPaths(list []mcp.Root) []string {
	var paths []string
	for _, root := range list {
		if path, ok := filePath(root.URI, runtime.GOOS == "windows"); ok {
			paths = append(paths, path)
		}
	}
	return paths
}

// filePath decodes a file URI (RFC 8089) to a local path: it handles
// percent-escapes, the host (this machine or, on Windows, a share's server)
// and, on Windows, the slash before a drive letter. It reports false for any
// other URI.
func filePath(uri string, windows bool) (string, bool) {
	u, err := url.Parse(uri)
	if err != nil || !strings.EqualFold(u.Scheme, "file") || u.Path == "" || strings.ContainsRune(u.Path, 0) {
		return "", false
	}
	local := u.Host == "" || strings.EqualFold(u.Host, "localhost")
	if !windows {
		return filepath.Clean(u.Path), local && strings.HasPrefix(u.Path, "/")
	}
	path := u.Path
	if !local {
		path = "//" + u.Host + path
	} else if len(path) >= 3 && path[0] == '/' && path[2] == ':' {
		path = path[1:]
		if len(path) == 2 {
			path += "/"
		}
	}
	return strings.ReplaceAll(path, "/", `\`), true
}
