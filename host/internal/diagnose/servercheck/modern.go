package servercheck

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
)

// modernVersion is the protocol version without an initialize handshake.
const modernVersion = "2026-07-28"

// modernMeta is the member of params that requests of protocol version 2026-07-28 contain.
const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"mcp-host doctor","version":"1"}}`

// checkModern checks a session of protocol version 2026-07-28. legacy says that the
// other handshake works; then an unsupported version is no failure. It returns false if
// the server does not support the version.
func (r *report) checkModern(ctx context.Context, cfg Config, legacy bool) bool {
	const name = "handshake, modern"
	s, err := startProgram(ctx, cfg, false)
	if err != nil {
		r.add(Bad, name, "it cannot be started again: %v", err)
		return false
	}
	defer s.kill()
	without := Good
	if !legacy {
		without = Bad
	}
	m, err := s.waitForAnswer(s.sendRequest("server/discover", "{"+modernMeta+"}"), cfg.Timeout)
	if err != nil {
		level := without
		if legacy {
			level = Weak
		}
		if errors.Is(err, errGone) {
			r.add(Bad, name, "server/discover: %v", err)
			return false
		}
		r.add(level, name, "server/discover: %v; clients that try this era first wait for it", err)
		return false
	}
	if code, _ := errorOf(m); code != 0 {
		r.add(without, name, "not supported: refused with %d", code)
		return false
	}
	var result struct {
		Versions     []string        `json:"supportedVersions"`
		Capabilities json.RawMessage `json:"capabilities"`
	}
	if err := json.Unmarshal(m.Result, &result); err != nil || result.Capabilities == nil || !slices.Contains(result.Versions, modernVersion) {
		r.add(Bad, name, "the answer to server/discover does not name version %s, or no capabilities: %s", modernVersion, summarize(m))
		return false
	}
	r.add(Good, name, "version %s", modernVersion)
	var tools, quiet report
	listed := quiet.listTools(s, modernMeta)
	for _, c := range quiet.checks {
		c.Name += ", modern"
		r.addChecks(c)
	}
	if legacy {
		return true
	}
	tools.checkDefinitions(listed)
	r.addChecks(tools.checks...)
	return true
}

// checkExit checks that the program ends at the end of its input, after its answers, and
// also if there is no input. It starts the program twice.
func (r *report) checkExit(ctx context.Context, cfg Config) {
	s, err := startProgram(ctx, cfg, false)
	if err != nil {
		r.add(Bad, "end of input", "it cannot be started again: %v", err)
		return
	}
	s.waitForAnswer(s.sendRequest("initialize", initializeParams), cfg.StartTimeout) //nolint:errcheck // checked before
	s.notify("notifications/initialized", "")
	id := s.sendRequest("tools/list", "")
	status, ended := s.closeInput(cfg.Timeout)
	_, err = s.waitForAnswer(id, cfg.Timeout)
	switch {
	case !ended:
		r.add(Bad, "end of input", "it still runs %v after its input ended, and was killed", cfg.Timeout)
	case err != nil:
		r.add(Weak, "end of input", "it exits with status %d before it answers all requests", status)
	case status != 0:
		r.add(Weak, "end of input", "it answers all requests and exits with status %d", status)
	default:
		r.add(Good, "end of input", "it answers all requests and exits")
	}

	if s, err = startProgram(ctx, cfg, true); err != nil {
		r.add(Bad, "no input", "it cannot be started again: %v", err)
		return
	}
	if status, ended = s.closeInput(cfg.Timeout); !ended {
		r.add(Bad, "no input", "started without input, it still runs after %v, and was killed", cfg.Timeout)
		return
	}
	r.add(Good, "no input", "started without input, it exits with status %d", status)
}
