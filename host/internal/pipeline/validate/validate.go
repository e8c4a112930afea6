// Package validate has the two stages that check calls against the tools' schemas: Arguments
// checks a call's arguments against the tool's inputSchema before the call, Results checks a
// result's structuredContent against its outputSchema after it.
//
// Schemas are JSON Schema 2020-12, or the version of their $schema. References to other
// documents are not followed. A schema of more than 256 KiB is not used, and neither is one
// that needs more than about 20 000 steps for a small value, as nested alternatives can. A
// schema that cannot be used refuses nothing: the mistake is the server's, which checks the
// arguments itself. Values that are too large to check are not refused either: more than 1
// MiB, 400 000 steps, or numbers of more than 64 digits.
//
// Tools that declare that they check their arguments are not checked: their errors are better.
// Their results are also trusted. A result without structuredContent passes, and so does a
// result with isError.
package validate

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/internal/schemacheck"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Config switches the checks. The zero value checks both.
type Config struct {
	ArgumentsOff bool
	ResultsOff   bool

	// OnUnusable is called once for a tool with a schema that cannot be used, with the
	// reason. It may be nil.
	OnUnusable func(tool *call.Tool, err error)
}

// Validate returns nil: all values are valid.
func (c Config) Validate() error { return nil }

const (
	// maxCheckedBytes bounds the values that are checked.
	maxCheckedBytes = 1 << 20
	// maxTools bounds the tools whose compiled schemas are kept.
	maxTools = 10_000
)

// A Validator keeps compiled schemas. It is safe for concurrent use.
type Validator struct {
	cfg Config

	mu    sync.Mutex
	tools map[string]*schemas // by served name
}

// schemas holds the compiled schemas of one tool.
type schemas struct {
	tool *call.Tool
	*compiledSchemas
}

// compiledSchemas holds the compiled schemas; nil if none exists or it cannot be used. The
// first caller compiles them; calls of other tools do not wait for it.
type compiledSchemas struct {
	once          sync.Once
	input, output *schemacheck.Schema
}

// New returns a validator; schemas are compiled at the first use.
func New(c Config) *Validator { return &Validator{cfg: c, tools: map[string]*schemas{}} }

// Arguments returns a handler that makes calls with next whose arguments match the tool's
// input schema, and returns INVALID_PARAMS for others.
func (v *Validator) Arguments(next call.Handler) call.Handler {
	if v.cfg.ArgumentsOff {
		return next
	}
	return func(ctx context.Context, req *call.Request) (*call.Result, error) {
		t := req.Tool
		if t.Validates || len(t.Input) == 0 {
			return next(ctx, req)
		}
		arguments, err := req.Arguments()
		if err != nil {
			return nil, err
		}
		if s := v.schemasOf(t).input; s != nil && len(arguments) <= maxCheckedBytes {
			if f := v.check(t, s, arguments); f != nil {
				return nil, argumentsError(f, t)
			}
		}
		return next(ctx, req)
	}
}

// Results returns a handler that returns the results of next that match the tool's output
// schema, and RESULT_INVALID for others.
func (v *Validator) Results(next call.Handler) call.Handler {
	if v.cfg.ResultsOff {
		return next
	}
	return func(ctx context.Context, req *call.Request) (*call.Result, error) {
		res, err := next(ctx, req)
		t := req.Tool
		if err != nil || t.Validates || len(t.Output) == 0 {
			return res, err
		}
		content := structuredContent(res)
		if content == nil || len(content) > maxCheckedBytes {
			return res, nil
		}
		if s := v.schemasOf(t).output; s != nil {
			if f := v.check(t, s, content); f != nil {
				return nil, resultError(f, t)
			}
		}
		return res, nil
	}
}

// structuredContent returns the structuredContent of a complete result without isError, or
// nil.
func structuredContent(res *call.Result) json.RawMessage {
	if !res.Names.MayHave("structuredContent") || !bytes.Contains(res.Raw, []byte(`"structuredContent"`)) {
		return nil
	}
	members, err := jsonrpc.Members(res.Raw)
	if err != nil {
		return nil
	}
	var content json.RawMessage
	for _, m := range members {
		switch {
		case m.Name == "structuredContent" && string(m.Value) != "null":
			content = m.Value
		case m.Name == "isError" && string(m.Value) == "true", m.Name == "resultType" && string(m.Value) != `"complete"`:
			return nil
		}
	}
	return content
}

// schemasOf returns a tool's schemas, compiled at the first use.
func (v *Validator) schemasOf(t *call.Tool) *compiledSchemas {
	r := v.find(t)
	r.once.Do(func() {
		if !v.cfg.ArgumentsOff {
			r.input = v.compile(t, "inputSchema", t.Input)
		}
		if !v.cfg.ResultsOff {
			r.output = v.compile(t, "outputSchema", t.Output)
		}
	})
	return r
}

// find returns the entry for the compiled schemas of a tool, a new one if its schemas have
// changed. The schemas in it are compiled by schemasOf.
func (v *Validator) find(t *call.Tool) *compiledSchemas {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.tools[t.Name]
	if s != nil && s.tool == t {
		return s.compiledSchemas
	}
	if len(v.tools) >= maxTools {
		clear(v.tools)
	}
	if s != nil && bytes.Equal(s.tool.Input, t.Input) && bytes.Equal(s.tool.Output, t.Output) {
		s = &schemas{t, s.compiledSchemas} // the tool was listed again with the same schemas
	} else {
		s = &schemas{t, &compiledSchemas{}}
	}
	v.tools[t.Name] = s
	return s.compiledSchemas
}

// compile returns a compiled schema; nil for an empty text and for an unusable schema,
// which it reports.
func (v *Validator) compile(t *call.Tool, name string, text json.RawMessage) *schemacheck.Schema {
	if len(text) == 0 {
		return nil
	}
	s, err := schemacheck.Compile(text)
	if err != nil {
		v.reportUnusable(t, fmt.Errorf("%s: %w", name, err))
		return nil
	}
	return s
}

// check returns the violations of a schema; nil: there are none, or the value cannot be
// checked.
func (v *Validator) check(t *call.Tool, s *schemacheck.Schema, value json.RawMessage) *schemacheck.Faults {
	f, err := s.Check(value)
	if err != nil {
		v.reportUnusable(t, err)
		return nil
	}
	return f
}

// reportUnusable reports a schema that cannot be used to Config.OnUnusable.
func (v *Validator) reportUnusable(t *call.Tool, err error) {
	if v.cfg.OnUnusable != nil {
		v.cfg.OnUnusable(t, err)
	}
}

// argumentsError returns the error for a call whose arguments the schema refuses: a
// *call.ValidationError with INVALID_PARAMS, or MISSING_PARAMETER if only parameters are
// missing.
func argumentsError(f *schemacheck.Faults, t *call.Tool) error {
	e := &call.ValidationError{
		Type: call.ArgsInvalid, Tool: t.Name, Path: f.Path,
		Detail: f.Text + "; correct the arguments and call again",
	}
	if f.OnlyMissing {
		e.Cause = toolerr.New(toolerr.MissingParameter, "%s", e.Detail)
	}
	return e
}

// resultError returns the error for a refused result.
func resultError(f *schemacheck.Faults, t *call.Tool) error {
	return &call.ValidationError{
		Type: call.ResultInvalid, Tool: t.Name, Path: f.Path,
		Detail: "the server's result does not fit its outputSchema: " + f.Text + "; the call was executed, but its result is unreliable",
	}
}
