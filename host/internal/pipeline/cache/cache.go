// Package cache is the stage that answers a call from an earlier one with the
// same arguments. It is off unless tools are named, and only for tools that
// say that they change nothing (readOnlyHint); whether their answers stay true
// for the time they are kept is for who names them to know.
//
// The same call is: the same tool with the same definition, of a server of the
// same version (so configured, and so named by itself), with the same arguments,
// whatever their order, white space and escapes; for clients of the same protocol
// era, signed-in user and profile. Kept are results that are
// complete and none of failure, for 5 minutes, in 64 MiB, those used longest
// ago going first.
//
// What is one caller's alone is not kept: an answer that was made with what this
// caller's client was asked (elicitation, sampling, roots), nor those of a server that
// each caller has for itself.
//
// A call that is made of calls of others (of a chain, or another name of a tool)
// is always made: each of those is the policy's to allow to this caller. They are
// answered from the cache, if they are named.
//
// A call passes by with _meta {"toolroom/cache": "bypass"}; with "refresh" it
// is made, and its result kept.
//
// It is own code rather than a library: 60 lines of a list and a map, bounded
// at every moment, without goroutines.
package cache

import (
	"bytes"
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// Config holds the cached tools and the limits. Zero values mean the defaults.
type Config struct {
	Tools    []string      // served names, or prefixes with a * at the end; none: the cache is off
	TTL      time.Duration // 5 min
	MaxBytes int64         // of all results together; 64 MiB
	MaxEntry int           // of one result in bytes; 1 MiB

	// Version, unless nil, returns the version of a server. Results of another version
	// are not used.
	Version func(server string) string

	// MakesCalls, unless nil, reports whether a server's tools call other tools.
	MakesCalls func(server string) bool

	// IsPerCaller, unless nil, reports whether each caller has its own instance of the
	// server.
	IsPerCaller func(server string) bool
}

// Validate returns an error that names the wrong field.
func (c Config) Validate() error {
	for _, pattern := range c.Tools {
		if strings.Contains(strings.TrimSuffix(pattern, "*"), "*") {
			return fmt.Errorf("cache: tools: %s matches no tool: * is only allowed at the end", pattern)
		}
	}
	switch {
	case c.TTL < 0:
		return fmt.Errorf("cache: ttl must not be negative, got %v", c.TTL)
	case c.MaxBytes < 0:
		return fmt.Errorf("cache: max_bytes must not be negative, got %d", c.MaxBytes)
	case c.MaxEntry < 0:
		return fmt.Errorf("cache: max_entry must not be negative, got %d", c.MaxEntry)
	}
	return nil
}

// entryOverhead is the approximate size of an entry without its result.
const entryOverhead = 256

// A Cache holds results. It is safe for concurrent use.
type Cache struct {
	cfg Config

	mu      sync.Mutex
	entries map[key]*list.Element
	order   *list.List // of *entry, the last used first
	bytes   int64
}

// key identifies a call: it is a hash of the tool, its version and the arguments.
type key [sha256.Size]byte

// entry is a cached result.
type entry struct {
	key     key
	raw     json.RawMessage
	expires time.Time
}

// size returns the bytes that an entry takes.
func (e *entry) size() int64 { return int64(len(e.raw)) + entryOverhead }

// New returns an empty cache. The zero values of c mean 5 minutes, 64 MiB, and 1 MiB for a
// result.
func New(c Config) *Cache {
	if c.TTL == 0 {
		c.TTL = 5 * time.Minute
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = 64 << 20
	}
	if c.MaxEntry == 0 {
		c.MaxEntry = 1 << 20
	}
	return &Cache{cfg: c, entries: map[key]*list.Element{}, order: list.New()}
}

// Stage returns a handler that answers a call with the cached result of an equal call, if
// there is one, and otherwise makes the call and caches its result. It caches only
// read-only tools that Config.Tools names, and only complete results without an error
// during which the client was asked nothing. Tools of servers that make calls, or that
// answer each caller differently, are not cached.
func (c *Cache) Stage(next call.Handler) call.Handler {
	if len(c.cfg.Tools) == 0 {
		return next
	}
	return func(ctx context.Context, req *call.Request) (*call.Result, error) {
		of := func(is func(server string) bool) bool { return is != nil && is(req.Tool.Server) }
		if !req.Tool.ReadOnly || !c.isNamed(req.Tool.Name) || of(c.cfg.MakesCalls) || of(c.cfg.IsPerCaller) {
			return next(ctx, req)
		}
		k, directive, ok := c.keyOf(req)
		if !ok || directive == "bypass" || ctx.Err() != nil {
			return next(ctx, req)
		}
		if directive != "refresh" {
			if raw := c.get(k); raw != nil {
				return &call.Result{Raw: raw}, nil
			}
		}
		watched, asked := watchQuestions(req)
		res, err := next(ctx, watched)
		if err == nil && !asked.Load() && isCacheable(res) {
			c.put(k, res.Raw)
		}
		return res, err
	}
}

// watchQuestions returns a copy of the request, and a flag that becomes true when the
// caller's client is asked a question.
func watchQuestions(req *call.Request) (*call.Request, *atomic.Bool) {
	asked := new(atomic.Bool)
	if req.Ask == nil {
		return req, asked
	}
	watched := *req
	watched.Ask = func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		asked.Store(true)
		return req.Ask(ctx, method, params)
	}
	return &watched, asked
}

// isNamed reports whether Config.Tools contains a tool's name or a matching prefix.
func (c *Cache) isNamed(tool string) bool {
	for _, pattern := range c.cfg.Tools {
		if prefix, ok := strings.CutSuffix(pattern, "*"); pattern == tool || ok && strings.HasPrefix(tool, prefix) {
			return true
		}
	}
	return false
}

// isCacheable reports whether a result is complete and has no error.
func isCacheable(res *call.Result) bool {
	if res.IsError() {
		return false
	}
	if !res.Names.MayBeIncomplete() {
		return true
	}
	members, err := jsonrpc.Members(res.Raw)
	if err != nil {
		return false
	}
	for _, m := range members {
		if m.Name == "resultType" {
			return string(m.Value) == `"complete"`
		}
	}
	return true
}

// keyOf returns the key of a call, and its caching directive. ok is false if the call must
// not be cached.
func (c *Cache) keyOf(req *call.Request) (k key, directive string, ok bool) {
	buf := make([]byte, 0, 512)
	if c.cfg.Version != nil {
		buf = jsonrpc.AppendString(buf, c.cfg.Version(req.Tool.Server))
	}
	buf = jsonrpc.AppendString(buf, req.Tool.Server)
	buf = append(buf, req.Tool.Definition...)
	if req.Caller.Modern {
		buf = append(buf, " modern"...)
	}
	buf = jsonrpc.AppendString(buf, req.Caller.User)
	buf = jsonrpc.AppendString(buf, req.Caller.Subject)
	buf = jsonrpc.AppendString(buf, req.Caller.Profile)
	if len(req.Params) > 0 {
		members, err := jsonrpc.Members(req.Params)
		if err != nil {
			return k, "", false
		}
		for _, m := range members {
			switch m.Name {
			case "name", "arguments":
			case "_meta":
				directive = cacheDirective(m.Value)
			default: // an answer to a question, or a task
				return k, "", false
			}
		}
	}
	arguments, err := req.Arguments()
	if err != nil {
		return k, "", false
	}
	if buf, ok = jsonrpc.Canonical(append(buf, ' '), arguments); !ok {
		return k, "", false
	}
	return sha256.Sum256(buf), directive, true
}

// cacheDirective returns the text of the member toolroom/cache of _meta: bypass, refresh, ""
// for none, or another text, which counts as none. A member that is no text counts as bypass.
func cacheDirective(meta json.RawMessage) string {
	if !bytes.Contains(meta, []byte("toolroom/cache")) {
		return ""
	}
	var m struct {
		Directive string `json:"toolroom/cache"`
	}
	if json.Unmarshal(meta, &m) != nil {
		return "bypass"
	}
	return m.Directive
}

// get returns a cached result that has not expired, or nil.
func (c *Cache) get(k key) json.RawMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	el := c.entries[k]
	if el == nil {
		return nil
	}
	e := el.Value.(*entry) //nolint:errcheck // the list holds nothing else
	if !time.Now().Before(e.expires) {
		c.drop(el)
		return nil
	}
	c.order.MoveToFront(el)
	return e.raw
}

// put caches a copy of a result for TTL and replaces an earlier one. It drops the results
// used least recently if there is no room. A result of more than MaxEntry bytes is not
// cached.
func (c *Cache) put(k key, raw json.RawMessage) {
	e := &entry{k, bytes.Clone(raw), time.Now().Add(c.cfg.TTL)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if el := c.entries[k]; el != nil {
		c.drop(el)
	}
	if len(raw) > c.cfg.MaxEntry || e.size() > c.cfg.MaxBytes {
		return
	}
	for c.bytes+e.size() > c.cfg.MaxBytes {
		c.drop(c.order.Back())
	}
	c.entries[k] = c.order.PushFront(e)
	c.bytes += e.size()
}

// drop removes an entry. c.mu is held.
func (c *Cache) drop(el *list.Element) {
	e := c.order.Remove(el).(*entry) //nolint:errcheck // the list holds nothing else
	delete(c.entries, e.key)
	c.bytes -= e.size()
}

// Size returns the number of cached results, and their bytes.
func (c *Cache) Size() (results int, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.entries), c.bytes
}
