package jsonrpc_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

func TestALineThatIsTooLongLeavesItsHead(t *testing.T) {
	for _, size := range []int{11, 300, 40_000, 200_000} {
		line := `{"id":7,"pad":"` + strings.Repeat("x", size) + `"}`
		in := jsonrpc.NewReader(strings.NewReader("{}\n"+line+"\n[]"), 20)
		got, err := in.ReadLine()
		require.NoError(t, err)
		require.Equal(t, "{}", string(got))
		_, err = in.ReadLine()
		require.ErrorIs(t, err, jsonrpc.ErrTooLong)
		var long *jsonrpc.TooLongError
		require.ErrorAs(t, err, &long)
		require.Equal(t, line[:min(len(line), 256)], string(long.Head))
		got, err = in.ReadLine()
		require.NoError(t, err)
		require.Equal(t, "[]", string(got))
	}
}
