// Package declared makes servable tools of declarations: their names, definitions and
// executors, and their traits for the pipeline. Each tool is a separate source for the
// catalog, and so a separate server for limits, circuit breakers and statistics: a
// tool that hangs does not affect others.
//
// A tool is served under its own name, a tool of a namespace as NAMESPACE__NAME,
// within the limits of package catalog for names. A name that a server or a bundled
// tool has, or that looks like the name of a server's tool, is an error when the
// configuration is read.
package declared

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/alias"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/chain"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/clientside"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/command"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/executor"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/httpcall"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/manifest"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/mock"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/retry"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// Deps are functions of the host that executors need.
type Deps struct {
	Call    chain.Call                  // makes a call that passes all stages
	Journal chain.Journal               // of pending calls; nil: none
	Forward alias.Forward               // makes a call of a server's tool
	Run     command.Run                 // runs a program
	Lookup  func(string) (string, bool) // returns an environment variable
	Retry   func() retry.Config
	Agent   string // User-Agent of HTTP requests
}

// Tool is a declared tool that can be called. It is a catalog.Source.
type Tool struct {
	Spec manifest.Tool

	name       string
	version    string
	definition json.RawMessage
	handler    call.Handler
}

// New returns the tool of a declaration that package manifest has checked. Its error is
// dialect.Problems that name the place in the manifest.
func New(spec manifest.Tool, deps Deps) (*Tool, error) {
	t := &Tool{Spec: spec, name: ServedName(spec)}
	shape := executor.Shape{Declared: spec.Output != nil, Wrapped: spec.Output != nil && !isObjectSchema(spec.Output)}
	t.definition = definition(t.name, spec, shape)
	sum := sha256.Sum256(t.definition)
	t.version = strings.TrimSpace(spec.Version + " " + hex.EncodeToString(sum[:8]))
	var err error
	switch spec.Mode {
	case manifest.Mock:
		t.handler, err = mock.New(*spec.Mock, shape)
	case manifest.HTTP:
		t.handler, err = httpcall.New(*spec.HTTP, shape, deps.Retry, deps.Agent)
	case manifest.Chain:
		t.handler, err = chain.New(*spec.Chain, shape, deps.Call, deps.Journal)
	case manifest.MCP:
		t.handler, err = alias.New(*spec.MCP, deps.Forward)
	case manifest.Exec:
		t.handler, err = command.New(*spec.Exec, shape, deps.Run, deps.Lookup)
	case manifest.Client:
		t.handler, err = clientside.New(*spec.Client, shape)
	default:
		err = fmt.Errorf("mode: unknown mode %s", spec.Mode)
	}
	if err != nil {
		problem := spec.Problem("", "%v", err)
		return nil, dialect.Problems{problem}
	}
	return t, nil
}

// ServedName returns the name under which a tool is served: NAMESPACE__NAME, or NAME
// without a namespace; see catalog.ServedName.
func ServedName(spec manifest.Tool) string {
	if spec.Namespace != "" {
		return catalog.ServedName(spec.Namespace, spec.Name, false)
	}
	return catalog.ServedName(spec.Name, spec.Name, true)
}

// Name returns the served name, which is also the name of the tool's server.
func (t *Tool) Name() string { return t.name }

// Version identifies the state of the declaration. A cached result of another version
// is not used.
func (t *Tool) Version() string { return t.version }

// List returns the tool's definition; nil for other kinds than tools. Its error is nil.
func (t *Tool) List(_ context.Context, kind call.ListKind) ([]json.RawMessage, error) {
	if kind != call.Tools {
		return nil, nil
	}
	return []json.RawMessage{t.definition}, nil
}

// Known returns the same as List, without a context.
func (t *Tool) Known(kind call.ListKind) []json.RawMessage {
	if kind != call.Tools {
		return nil
	}
	return []json.RawMessage{t.definition}
}

// SourceConfig returns the tool as a catalog entry.
func (t *Tool) SourceConfig() catalog.SourceConfig {
	return catalog.SourceConfig{Source: t, Plain: true}
}

// Handle runs the tool with its executor and returns the executor's result or error.
func (t *Tool) Handle(ctx context.Context, req *call.Request) (*call.Result, error) {
	return t.handler(ctx, req)
}

// Timeout returns the declared time limit of a call; 0: none.
func (t *Tool) Timeout() time.Duration { return t.Spec.Timeout }

// isObjectSchema reports whether the schema's type is object.
func isObjectSchema(schema json.RawMessage) bool {
	var s struct {
		Type any `json:"type"`
	}
	return json.Unmarshal(schema, &s) == nil && s.Type == "object"
}

// metaTool is the _meta member with properties that MCP has no member for.
const metaTool = "io.github.toolroom-mcp/tool"

// definition returns the tool's entry of tools/list.
func definition(name string, spec manifest.Tool, shape executor.Shape) json.RawMessage {
	d := []byte(`{`)
	add := func(member string, value json.RawMessage) {
		if len(value) == 0 {
			return
		}
		if len(d) > 1 {
			d = append(d, ',')
		}
		d = append(append(jsonrpc.AppendString(d, member), ':'), value...)
	}
	text := func(member, value string) {
		if value != "" {
			add(member, jsonrpc.AppendString(nil, value))
		}
	}
	text("name", name)
	text("title", spec.Title)
	text("description", spec.Description)
	add("inputSchema", objectSchema(spec.Input))
	output := spec.Output
	if shape.Wrapped {
		output = append(append([]byte(`{"type":"object","properties":{"result":`), spec.Output...), `},"required":["result"]}`...)
	}
	add("outputSchema", output)
	add("annotations", annotations(spec))
	add("_meta", metaMembers(spec))
	return append(d, '}')
}

// metaMembers returns the _meta of the definition: the version under metaTool, and properties
// for the pipeline; nil: none. Tools that call other tools have no limits of their own,
// because the called tools have them.
func metaMembers(spec manifest.Tool) json.RawMessage {
	var members []string
	if spec.Version != "" {
		members = append(members, `"`+metaTool+`":{"version":`+string(jsonrpc.AppendString(nil, spec.Version))+`}`)
	}
	switch {
	case spec.Mode == manifest.MCP:
		members = append(members, `"toolroom/call":{"timeoutMs":0,"control":true}`)
	case spec.Mode == manifest.Chain:
		members = append(members, `"toolroom/call":{"timeoutMs":0}`)
	}
	if len(members) == 0 {
		return nil
	}
	return json.RawMessage("{" + strings.Join(members, ",") + "}")
}

// objectSchema returns a schema of arguments with "type": "object", which MCP
// requires.
func objectSchema(schema json.RawMessage) json.RawMessage {
	if isObjectSchema(schema) {
		return schema
	}
	with, err := jsonrpc.SetMember(schema, "type", json.RawMessage(`"object"`))
	if err != nil {
		return schema
	}
	return with
}

// annotations returns the declared annotations, completed by hints; nil: none.
func annotations(spec manifest.Tool) json.RawMessage {
	out := spec.Annotations
	if out == nil {
		out = json.RawMessage(`{}`)
	}
	readOnly, idempotent := hints(spec)
	for _, hint := range []struct {
		name string
		said *bool
	}{{"readOnlyHint", readOnly}, {"idempotentHint", idempotent}} {
		if hint.said == nil {
			continue
		}
		if with, err := jsonrpc.SetMember(out, hint.name, fmt.Append(nil, *hint.said)); err == nil {
			out = with
		}
	}
	if string(out) == "{}" {
		return nil
	}
	return out
}

// hints returns whether a tool is read-only and idempotent. Fields of the manifest
// override its annotations. If they do not say, the values are true for the mode mock,
// follow from the method for http, and are nil for other modes.
func hints(spec manifest.Tool) (readOnly, idempotent *bool) {
	var said struct {
		ReadOnly   *bool `json:"readOnlyHint"`
		Idempotent *bool `json:"idempotentHint"`
	}
	if spec.Annotations != nil {
		json.Unmarshal(spec.Annotations, &said) //nolint:errcheck // the manifest reader checked it
	}
	readOnly, idempotent = said.ReadOnly, said.Idempotent
	if spec.ReadOnly != nil {
		readOnly = spec.ReadOnly
	}
	if spec.Idempotent != nil {
		idempotent = spec.Idempotent
	}
	var reads, repeats bool
	switch spec.Mode {
	case manifest.Mock:
		reads, repeats = true, true
	case manifest.HTTP:
		reads, repeats = spec.HTTP.Hints()
	default:
		return readOnly, idempotent
	}
	if readOnly == nil {
		readOnly = &reads
	}
	if idempotent == nil {
		idempotent = &repeats
	}
	return readOnly, idempotent
}
