package tree_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// What is small when it is written is not large when it is read: neither the stack
// nor the memory is exhausted by what somebody sends.
func TestBounds(t *testing.T) {
	_, err := tree.Parse([]byte("[" + strings.Repeat("0,", 1<<20-1) + "0]"))
	require.ErrorContains(t, err, "more than 1048576 values")
	_, err = tree.Parse([]byte(strings.Repeat("[", 302) + strings.Repeat("]", 302)))
	require.ErrorContains(t, err, "nested more than")
}
