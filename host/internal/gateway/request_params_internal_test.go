package gateway

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What a server that reads names without regard to case would take for
// something else than policy has seen is refused.
func TestMembersInOtherCase(t *testing.T) {
	for _, params := range []string{
		`{"name":"x","arguments":{"a":1},"Arguments":{"force":true}}`, `{"Name":"x"}`, `{"name":"x","_Meta":{}}`, `{"name":"x","TASK":{}}`,
	} {
		_, err := parseParams("tools/call", []byte(params))
		require.ErrorContains(t, err, "must be spelled", params)
	}
	_, err := parseParams("tools/call", []byte(`{"name":"x","arguments":{"Arguments":1},"_meta":{},"other":1}`))
	require.NoError(t, err)
}
