// Package servercheck checks a program that should be an MCP server on standard input
// and output: the handshake in both protocol generations, the definitions of its
// tools, its answers to invalid input, and its end at the end of the input. Each check
// has a result of one line.
//
// The program is run several times, each time in a process group that is killed at the
// end.
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

// Config holds the program and the limits.
type Config struct {
	Command      []string      // absolute path, and arguments
	Env          []string      // complete environment
	Dir          string        // working directory; "": this process's
	StartTimeout time.Duration // time until the first answer; 0: 60 s, because some programs are downloaded first
	Timeout      time.Duration // time until any other answer; 0: 10 s
	LongLine     int           // length of the long message in bytes; 0: 4 MiB

	// OnCheck, unless nil, is called with each check as soon as its level is known, in the
	// order in which Run returns them.
	OnCheck func(Check)
}

// Validate returns an error if Command does not begin with an absolute path.
func (c Config) Validate() error {
	if len(c.Command) == 0 || !filepath.IsAbs(c.Command[0]) {
		return errors.New("the command of the server is not an absolute path")
	}
	return nil
}

// Level is the result of a check.
type Level string

// The levels. Only Bad is a failure.
const (
	Good Level = "ok"
	Weak Level = "warn" // permitted, but a problem for some clients or models
	Bad  Level = "fail"
)

// A Check is one check with its result.
type Check struct {
	Name   string `json:"check"`
	Level  Level  `json:"level"`
	Detail string `json:"detail"`
}

// A report collects the checks and passes them to the caller.
type report struct {
	checks   []Check
	found    func(Check) // nil: not called
	passedOn int         // number of checks that were passed to found
	held     bool        // checks are held back, because their level can still change
}

// add adds the result of a check.
func (r *report) add(level Level, name, format string, args ...any) {
	r.addChecks(Check{name, level, fmt.Sprintf(format, args...)})
}

// addChecks adds checks, and passes them on unless they are held back.
func (r *report) addChecks(checks ...Check) {
	r.checks = append(r.checks, checks...)
	if !r.held {
		r.flush()
	}
}

// flush passes the checks that are held back to found, and those that follow at once.
func (r *report) flush() {
	r.held = false
	for ; r.passedOn < len(r.checks); r.passedOn++ {
		if r.found != nil {
			r.found(r.checks[r.passedOn])
		}
	}
}

// Run makes all checks of the program and returns them in order. After a failed
// handshake there are no further checks. It fails if cfg is not valid or ctx has ended.
func Run(ctx context.Context, cfg Config) ([]Check, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.StartTimeout == 0 {
		cfg.StartTimeout = time.Minute
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 10 * time.Second
	}
	if cfg.LongLine == 0 {
		cfg.LongLine = 4 << 20
	}
	r := &report{found: cfg.OnCheck, held: true}
	legacy := r.checkLegacy(ctx, cfg)
	modern := ctx.Err() == nil && r.checkModern(ctx, cfg, legacy)
	if !legacy && modern { // one generation is enough
		r.checks[0].Level = Weak
	}
	r.flush()
	if ctx.Err() == nil && (legacy || modern) {
		r.checkExit(ctx, cfg)
	}
	return r.checks, ctx.Err()
}

// versions returns the protocol versions with the initialize handshake.
func versions() []string { return []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} }

// initializeParams is the params of the request initialize.
const initializeParams = `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"mcp-host doctor","version":"1"}}`

// checkLegacy checks a session with the initialize handshake. It returns false if the
// handshake failed.
func (r *report) checkLegacy(ctx context.Context, cfg Config) bool {
	const name = "handshake, legacy"
	s, err := startProgram(ctx, cfg, false)
	if err != nil {
		r.add(Bad, name, "it cannot be started: %v", err)
		return false
	}
	defer s.kill()
	begin := time.Now()
	m, err := s.waitForAnswer(s.sendRequest("initialize", initializeParams), cfg.StartTimeout)
	if err != nil {
		r.add(Bad, name, "initialize: %v", err)
		r.reportNoise(s) // this can be the reason
		return false
	}
	if code, text := errorOf(m); code != 0 {
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
	r.flush()
	s.notify("notifications/initialized", "")
	r.checkRequest(s, "ping", "ping", "")
	if result.Capabilities["tools"] == nil {
		r.add(Weak, "tools/list", "it does not declare tools")
	} else {
		tools := r.listTools(s, "")
		r.checkDefinitions(tools)
		r.checkRefusals(s, tools)
	}
	r.checkRobustness(s)
	r.checkOutput(s)
	return true
}

// checkRequest adds the check name: that a request is answered with a result. It
// reports whether it is.
func (r *report) checkRequest(s *session, name, method, params string) bool {
	m, err := s.request(method, params)
	if err != nil {
		r.add(Bad, name, "%v", err)
		return false
	}
	if code, text := errorOf(m); code != 0 {
		r.add(Bad, name, "it was answered with error %d: %s", code, text)
		return false
	}
	r.add(Good, name, "answered")
	return true
}

// checkRobustness sends input that must not end a server: an unknown method,
// cancellations, a long line and a malformed line.
func (r *report) checkRobustness(s *session) {
	m, err := s.request("no/such/method", "")
	switch code, _ := errorOf(m); {
	case err != nil:
		r.add(Bad, "unknown method", "%v", err)
	case code != jsonrpc.CodeMethodNotFound:
		r.add(Bad, "unknown method", "it should be refused with %d; it was answered with %s", jsonrpc.CodeMethodNotFound, summarize(m))
	default:
		r.add(Good, "unknown method", "refused with %d", code)
	}

	s.notify("notifications/cancelled", `{"requestId":987654,"reason":"nobody asked this"}`)
	id := s.sendRequest("ping", "")
	s.notify("notifications/cancelled", `{"requestId":`+id+`}`)
	r.checkAlive(s, "cancel", "an unknown request and a running request were cancelled")

	r.checkLongLine(s, s.cfg.LongLine)

	s.send([]byte(`{"jsonrpc":"2.0","id":`))
	r.held = true
	defer r.flush()
	if r.checkAlive(s, "malformed line", "") {
		s.mu.Lock()
		m, told := s.answers["null"]
		s.mu.Unlock()
		last := &r.checks[len(r.checks)-1]
		if code, _ := errorOf(m); told && code == jsonrpc.CodeParse {
			last.Detail = fmt.Sprintf("refused with %d, and the server keeps answering", code)
		} else {
			last.Level, last.Detail = Weak, fmt.Sprintf("the server keeps answering, but does not return %d", jsonrpc.CodeParse)
		}
	}
}

// checkAlive adds the check name: that the server still answers a ping. It reports
// whether it does.
func (r *report) checkAlive(s *session, name, detail string) bool {
	if m, err := s.request("ping", ""); err != nil {
		r.add(Bad, name, "a ping afterwards got no answer: %v", err)
		return false
	} else if code, text := errorOf(m); code != 0 {
		r.add(Bad, name, "a ping afterwards got error %d: %s", code, text)
		return false
	}
	r.add(Good, name, "%s; the server keeps answering", detail)
	return true
}

// checkLongLine checks that the server answers a ping of size bytes. For an error
// answer the level is Weak.
func (r *report) checkLongLine(s *session, size int) {
	m, err := s.request("ping", `{"_meta":{"padding":"`+strings.Repeat("x", size)+`"}}`)
	switch code, text := errorOf(m); {
	case err != nil:
		r.add(Bad, "long line", "a ping of %d KiB: %v", size>>10, err)
	case code != 0:
		r.add(Weak, "long line", "a ping of %d KiB was refused with %d: %s", size>>10, code, text)
	default:
		r.add(Good, "long line", "a ping of %d KiB was answered", size>>10)
	}
}

// summarize returns a short description of an answer.
func summarize(m jsonrpc.Message) string {
	if code, text := errorOf(m); code != 0 {
		return fmt.Sprintf("error %d: %s", code, text)
	}
	return "a result: " + excerpt(string(m.Result))
}

// reportNoise adds a failed check if there were lines on standard output that are not
// messages. It reports whether there were any.
func (r *report) reportNoise(s *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.noiseCount > 0 {
		r.add(Bad, "standard output", "%d non-message lines: %s", s.noiseCount, strings.Join(s.noise, " | "))
	}
	return s.noiseCount > 0
}

// checkOutput checks that standard output has nothing but messages, and one answer for
// each request.
func (r *report) checkOutput(s *session) {
	if r.reportNoise(s) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case len(s.unexpected) > 0:
		r.add(Bad, "standard output", "%s", strings.Join(s.unexpected, "; "))
	default:
		r.add(Good, "standard output", "only messages, one answer per request")
	}
}
