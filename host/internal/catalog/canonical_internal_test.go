package catalog

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// TestStoredFormIsThatOfEncodingJSON compares with encoding/json, which has written the
// pins of older versions: another form would make every pinned tool a changed one.
func TestStoredFormIsThatOfEncodingJSON(t *testing.T) {
	for _, definition := range []string{
		`{"name":"t","inputSchema":{"type":"object","properties":{"b":{"minimum":1.50},"a":{"enum":[1e3,-0,"x",null,true]}}}}`,
		` { "name" : "t\u00e9\/\u003c" , "description":"<a> & \u2028 é 漢 🎉 \ud83c\udf89 \ud800 \t\u0007", "Z": [ ], "_meta": { } } `,
		`{"n":123456789012345678901234567890,"\u0061b":[[{"z":1,"é":2,"e":3}]]}`,
	} {
		decoder := json.NewDecoder(strings.NewReader(definition))
		decoder.UseNumber()
		var value any
		require.NoError(t, decoder.Decode(&value))
		want, err := jsonrpc.Marshal(value)
		require.NoError(t, err)
		got, err := canonical(json.RawMessage(definition))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
	}
	_, err := canonical(json.RawMessage(`{"name":"t","a":{"b":1,"b":2}}`))
	require.ErrorContains(t, err, "duplicate member")
}
