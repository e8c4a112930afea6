package catalog_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
)

type fixed []json.RawMessage

func (fixed) Name() string { return "s" }
func (f fixed) List(context.Context, call.ListKind) ([]json.RawMessage, error) {
	return f, nil
}

func TestTraitsAreReadFromTheDefinition(t *testing.T) {
	object := json.RawMessage(`{"type":"object"}`)
	for _, c := range []struct {
		definition string
		want       call.Traits
	}{
		{`{"name":"t"}`, call.Traits{Input: object}},
		{`{"name":"t","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}`, call.Traits{Input: object, Output: object}},
		{`{"name":"t","outputSchema":null,"annotations":{"readOnlyHint":true,"idempotentHint":true}}`, call.Traits{Input: object, ReadOnly: true, Idempotent: true}},
		{`{"name":"t","annotations":{"readOnlyHint":"yes"},"_meta":{"toolroom/call":7}}`, call.Traits{Input: object}},
		{`{"name":"t","_meta":{"toolroom/call":{"validates":true,"timeoutMs":0,"concurrency":8,"control":true}}}`,
			call.Traits{Input: object, Validates: true, OwnsDeadline: true, MaxConcurrent: 8, Control: true}},
		{`{"name":"t","_meta":{"toolroom/call":{"timeoutMs":1500,"concurrency":-1}}}`, call.Traits{Input: object, Timeout: 1500 * time.Millisecond}},
	} {
		cat := catalog.New([]catalog.SourceConfig{{Source: fixed{json.RawMessage(c.definition)}, Plain: true}}, nil, nil)
		tool, ok := cat.Lookup(t.Context(), "t")
		require.True(t, ok, c.definition)
		require.Equal(t, c.want, tool.Traits, c.definition)
		cat.Close()
	}
}
