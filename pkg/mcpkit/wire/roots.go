package wire

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// rootsTimeout limits how long a call waits for the client's roots.
const rootsTimeout = 5 * time.Second

// rootsCache holds the client's roots between calls.
type rootsCache struct {
	mu           sync.Mutex
	changes      int           // number of list_changed notifications so far
	isCurrent    bool          // paths is the client's current list
	paths        []string      // local paths; nil: the client offers no roots
	pendingFetch chan struct{} // closed when the pending roots/list request has ended; nil: none is pending
}

// ClientRoots returns the directories that the client of ctx's request offers as roots,
// as local paths; nil if it offers none or speaks the modern protocol. The error says
// that ctx ended. See mcpkit.ClientRoots.
func ClientRoots(ctx context.Context) ([]string, error) {
	req := requestOf(ctx)
	if req == nil || req.isModern() || !req.conn.offersRoots() {
		return nil, nil
	}
	return req.conn.clientRoots(ctx)
}

// offersRoots reports whether the handshake is complete and the client offers
// roots.
func (c *conn) offersRoots() bool {
	c.handshake.mu.Lock()
	defer c.handshake.mu.Unlock()
	return c.handshake.ready && c.handshake.capabilities.Roots != nil
}

// clientRoots returns the client's roots, from the cache if that is current. All
// waiting calls share one request. If the client fails or does not answer within
// rootsTimeout, clientRoots returns nil without an error; later calls use a late
// answer. An error means that ctx ended, or that the list changed too often to
// get a current one within rootsTimeout and a second.
func (c *conn) clientRoots(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, rootsTimeout+time.Second)
	defer cancel()
	r := &c.roots
	for {
		r.mu.Lock()
		if r.isCurrent {
			paths := slices.Clone(r.paths)
			r.mu.Unlock()
			return paths, nil
		}
		if r.pendingFetch == nil {
			r.pendingFetch = make(chan struct{})
			changes, waiting := r.changes, r.pendingFetch
			c.background.Go(func() { c.fetchRoots(changes, waiting) })
		}
		fetched := r.pendingFetch
		r.mu.Unlock()
		select {
		case <-fetched:
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the client's roots: %w", ctx.Err())
		}
	}
}

// fetchRoots asks the client once, for all calls that wait on fetched, which it
// closes. An answer that arrives after they stopped waiting is used for later
// calls, unless changes is no longer the number of list changes.
func (c *conn) fetchRoots(changes int, fetched chan struct{}) {
	r := &c.roots
	store := func(paths []string, answered bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		waited := r.pendingFetch == fetched
		if r.changes == changes && (answered || waited) {
			r.isCurrent, r.paths = true, paths
		}
		if waited {
			close(fetched)
			r.pendingFetch = nil
		}
	}
	timeout := time.AfterFunc(rootsTimeout, func() {
		c.logf("the client offers roots but has not listed them within %v; continuing without them until it does", rootsTimeout)
		store(nil, false)
	})
	var list mcp.ListRootsResult
	err := c.ask(c.ctx, string(mcp.MethodListRoots), nil, &list)
	timeout.Stop()
	if err != nil {
		c.logf("the client offers roots but listing them failed; continuing without them: %v", err)
	}
	store(rootPaths(list.Roots), true)
}

// forgetRoots drops the cached roots, so that the next call asks the client
// again.
func (c *conn) forgetRoots() {
	r := &c.roots
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes++
	r.isCurrent, r.paths = false, nil
}

// rootPaths returns the local paths of the roots that are file URIs.
func rootPaths(list []mcp.Root) []string {
	var paths []string
	for _, root := range list {
		if path, ok := pathOfFileURI(root.URI, runtime.GOOS == "windows"); ok {
			paths = append(paths, path)
		}
	}
	return paths
}

// pathOfFileURI decodes a file URI (RFC 8089) to a local path: it handles
// percent-escapes, the host (this machine or, on Windows, a share's server) and, on
// Windows, the slash before a drive letter. ok is false for any other URI. windows says
// whether the path is for Windows.
func pathOfFileURI(uri string, windows bool) (path string, ok bool) {
	u, err := url.Parse(uri)
	if err != nil || !strings.EqualFold(u.Scheme, "file") || u.Path == "" || strings.ContainsRune(u.Path, 0) {
		return "", false
	}
	local := u.Host == "" || strings.EqualFold(u.Host, "localhost")
	if !windows {
		return filepath.Clean(u.Path), local && strings.HasPrefix(u.Path, "/")
	}
	path = u.Path
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
