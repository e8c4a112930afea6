// Package servercheck looks at a program that says that it is an MCP server on
// standard input and output: does it shake hands in either era, are its tools'
// definitions ones that clients and models take, does it answer what is wrong
// as it should, and does it end when its input does. Each check says what it
// found in one line.
//
// The program is run several times, and every time ended. No tool is called
// with arguments that fit: one that needs some is called without any, which it
// must refuse.
//
// Sources: the MCP specification, versions 2025-11-25 and 2026-07-28
// ("Lifecycle", "Transports: stdio", "Tools"); JSON-RPC 2.0; JSON Schema
// 2020-12; the names that the models' APIs take.
package servercheck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// Config is the program.
type Config struct {
	Command  []string      // absolute, and its arguments
	Env      []string      // the whole environment
	Dir      string        // working directory; "": this one
	Start    time.Duration // until the first answer; 0: 60 s, since some are downloaded first
	Patience time.Duration // for every other answer; 0: 10 s
	BigLine  int           // bytes of the long message; 0: 4 MiB

	// Found, unless nil, is called with each check as soon as its level is known, in the
	// order in which Run returns them.
	Found func(Check)
}

// Validate names the field that is wrong.
func (c Config) Validate() error {
	if len(c.Command) == 0 || !filepath.IsAbs(c.Command[0]) {
		return errors.New("checkup: command is not an absolute path")
	}
	return nil
}

// Level is how a check came out.
type Level string

// The levels. Only Bad is a failure.
const (
	Good Level = "ok"
	Weak Level = "warn" // allowed, and in somebody's way
	Bad  Level = "fail"
)

// Check is one thing looked at.
type Check struct {
	Name   string `json:"check"`
	Level  Level  `json:"level"`
	Detail string `json:"detail"`
}

// report collects checks.
type report struct {
	checks []Check
	found  func(Check) // nil: nothing is called
	told   int         // checks that found was called with
	open   bool        // the level of the checks that were not told may change
}

func (r *report) add(level Level, name, format string, args ...any) {
	r.take(Check{name, level, fmt.Sprintf(format, args...)})
}

// take adds checks.
func (r *report) take(checks ...Check) {
	r.checks = append(r.checks, checks...)
	if !r.open {
		r.tell()
	}
}

// tell calls found with the checks that it was not called with.
func (r *report) tell() {
	r.open = false
	for ; r.told < len(r.checks); r.told++ {
		if r.found != nil {
			r.found(r.checks[r.told])
		}
	}
}

// Run carries out all checks, and returns them in their order. Once the
// handshake fails, there are no more.
func Run(ctx context.Context, cfg Config) ([]Check, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Start == 0 {
		cfg.Start = time.Minute
	}
	if cfg.Patience == 0 {
		cfg.Patience = 10 * time.Second
	}
	if cfg.BigLine == 0 {
		cfg.BigLine = 4 << 20
	}
	r := &report{found: cfg.Found, open: true}
	legacy := r.legacy(ctx, cfg)
	modern := ctx.Err() == nil && r.modern(ctx, cfg, legacy)
	if !legacy && modern { // which is enough
		r.checks[0].Level = Weak
	}
	r.tell()
	if ctx.Err() == nil && (legacy || modern) {
		r.ends(ctx, cfg)
	}
	return r.checks, ctx.Err()
}

// versions are the legacy versions of the protocol.
func versions() []string { return []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} }

const initialize = `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"mcp-host doctor","version":"1"}}`

// legacy is a session in the legacy era, and reports whether there was one.
func (r *report) legacy(ctx context.Context, cfg Config) bool {
	const name = "handshake, legacy"
	s, err := open(ctx, cfg, false)
	if err != nil {
		r.add(Bad, name, "it cannot be started: %v", err)
		return false
	}
	defer s.kill()
	begin := time.Now()
	m, err := s.answer(s.ask("initialize", initialize), cfg.Start)
	if err != nil {
		r.add(Bad, name, "initialize: %v", err)
		r.noise(s) // which may be why
		return false
	}
	if code, text := fault(m); code != 0 {
		r.add(Bad, name, "initialize was refused with %d: %s", code, text)
		return false
	}
	took := time.Since(begin)
	var result struct {
		Version      string                     `json:"protocolVersion"`
		Capabilities map[string]json.RawMessage `json:"capabilities"`
		Info         struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"serverInfo"`
	}
	switch err := json.Unmarshal(m.Result, &result); {
	case err != nil:
		r.add(Bad, name, "the answer to initialize is malformed: %v", err)
		return false
	case !slices.Contains(versions(), result.Version):
		r.add(Bad, name, "it answers with version %q, not one of %s", result.Version, strings.Join(versions(), ", "))
	case result.Info.Name == "" || result.Capabilities == nil:
		r.add(Bad, name, "the answer to initialize has no serverInfo.name or no capabilities")
	default:
		r.add(Good, name, "%s %s, version %s, after %d ms", excerpt(result.Info.Name), excerpt(result.Info.Version), result.Version, took.Milliseconds())
	}
	r.tell()
	s.notify("notifications/initialized", "")
	r.ping(s, "ping", "ping", "")
	if result.Capabilities["tools"] == nil {
		r.add(Weak, "tools/list", "it does not declare tools")
	} else {
		tools := r.list(s, "")
		r.definitions(tools)
		r.refusals(s, tools)
	}
	r.robust(s)
	r.clean(s)
	return true
}

// ping checks that a request is answered with a result.
func (r *report) ping(s *session, name, method, params string) bool {
	m, err := s.request(method, params)
	if err != nil {
		r.add(Bad, name, "%v", err)
		return false
	}
	if code, text := fault(m); code != 0 {
		r.add(Bad, name, "it was answered with error %d: %s", code, text)
		return false
	}
	r.add(Good, name, "answered")
	return true
}

// robust sends input that must not bring a server down.
func (r *report) robust(s *session) {
	m, err := s.request("no/such/method", "")
	switch code, _ := fault(m); {
	case err != nil:
		r.add(Bad, "unknown method", "%v", err)
	case code != jsonrpc.CodeMethodNotFound:
		r.add(Bad, "unknown method", "it should be refused with %d; it was answered with %s", jsonrpc.CodeMethodNotFound, said(m))
	default:
		r.add(Good, "unknown method", "refused with %d", code)
	}

	s.notify("notifications/cancelled", `{"requestId":987654,"reason":"nobody asked this"}`)
	id := s.ask("ping", "")
	s.notify("notifications/cancelled", `{"requestId":`+id+`}`)
	r.alive(s, "cancel", "an unknown request and a running request were cancelled")

	r.bigLine(s, s.cfg.BigLine)

	s.send([]byte(`{"jsonrpc":"2.0","id":`))
	r.open = true
	defer r.tell()
	if r.alive(s, "malformed line", "") {
		s.mu.Lock()
		m, told := s.answers["null"]
		s.mu.Unlock()
		last := &r.checks[len(r.checks)-1]
		if code, _ := fault(m); told && code == jsonrpc.CodeParse {
			last.Detail = fmt.Sprintf("refused with %d, and it goes on", code)
		} else {
			last.Level, last.Detail = Weak, fmt.Sprintf("it goes on, but does not say %d", jsonrpc.CodeParse)
		}
	}
}

// alive checks that the server still answers.
func (r *report) alive(s *session, name, detail string) bool {
	if m, err := s.request("ping", ""); err != nil {
		r.add(Bad, name, "after it a ping is unanswered: %v", err)
		return false
	} else if code, text := fault(m); code != 0 {
		r.add(Bad, name, "after it a ping is answered with error %d: %s", code, text)
		return false
	}
	r.add(Good, name, "%s; it goes on", detail)
	return true
}

func (r *report) bigLine(s *session, size int) {
	m, err := s.request("ping", `{"_meta":{"padding":"`+strings.Repeat("x", size)+`"}}`)
	switch code, text := fault(m); {
	case err != nil:
		r.add(Bad, "big line", "a ping of %d KiB: %v", size>>10, err)
	case code != 0:
		r.add(Weak, "big line", "a ping of %d KiB was refused with %d: %s", size>>10, code, text)
	default:
		r.add(Good, "big line", "a ping of %d KiB was answered", size>>10)
	}
}

// said is an answer in a few words.
func said(m jsonrpc.Message) string {
	if code, text := fault(m); code != 0 {
		return fmt.Sprintf("error %d: %s", code, text)
	}
	return "a result: " + excerpt(string(m.Result))
}

// noise tells of lines on standard output that were no messages, and reports
// whether there were any.
func (r *report) noise(s *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.noises > 0 {
		r.add(Bad, "standard output", "%d non-message lines: %s", s.noises, strings.Join(s.noise, " | "))
	}
	return s.noises > 0
}

// clean checks for other output than answers on standard output.
func (r *report) clean(s *session) {
	if r.noise(s) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case len(s.odd) > 0:
		r.add(Bad, "standard output", "%s", strings.Join(s.odd, "; "))
	default:
		r.add(Good, "standard output", "only messages, one answer per request")
	}
}
