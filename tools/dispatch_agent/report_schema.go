package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/schemacheck"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// maxSchemaBytes bounds a schema, which becomes part of the prompt.
const maxSchemaBytes = 64 << 10

// reportSchema is the schema that a report must match.
type reportSchema struct {
	text   string // as given, in JSON
	schema *schemacheck.Schema
}

// parseReportSchema compiles output_schema. It returns nil if the argument is missing.
// It returns INVALID_PARAMS if the schema is not valid.
func parseReportSchema(object map[string]any) (*reportSchema, error) {
	if object == nil {
		return nil, nil
	}
	raw, err := jsonrpc.Marshal(object)
	if err == nil && len(raw) > maxSchemaBytes {
		err = fmt.Errorf("%d bytes, more than %d", len(raw), maxSchemaBytes)
	}
	var schema *schemacheck.Schema
	if err == nil {
		schema, err = schemacheck.Compile(raw)
	}
	if err != nil {
		return nil, toolerr.New(toolerr.InvalidParams, "output_schema is not a usable JSON Schema: %w", err)
	}
	return &reportSchema{text: string(raw), schema: schema}, nil
}

// check returns the JSON value of a report, without a code fence around it, and
// why it does not match. misfit is "" if it matches; otherwise value is the
// unchanged report.
func (s *reportSchema) check(report string) (value, misfit string) {
	value = unfenced(report)
	if !json.Valid([]byte(value)) {
		return report, "not a single JSON value"
	}
	faults, err := s.schema.Check(json.RawMessage(value))
	switch {
	case err != nil:
		return report, "cannot be checked: " + err.Error()
	case faults != nil:
		return report, faults.Text
	}
	return value, ""
}

// unfenced returns the content of a code fence that encloses the whole text, or
// else the text.
func unfenced(text string) string {
	text = strings.TrimSpace(text)
	inner, ok := strings.CutPrefix(text, "```")
	if !ok {
		return text
	}
	inner, ok = strings.CutSuffix(inner, "```")
	head, rest, more := strings.Cut(inner, "\n")
	if !ok || !more || strings.ContainsAny(head, "{}[]\"") {
		return text
	}
	return strings.TrimSpace(rest)
}

// repairPrompt returns the prompt that asks an agent for a corrected report.
// misfit says why the last one does not match the schema.
func repairPrompt(misfit string) string {
	return "Your report does not fit the requested JSON Schema: " + misfit +
		"\nAnswer with only the corrected JSON value: no other text, no code fence, no tool call."
}
