package docs_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// tools/README.md lists the error codes, in their order, and no other.
func TestErrorCodesAreListed(t *testing.T) {
	var listed []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\| \\S").FindAllStringSubmatch(read(t, "tools/README.md"), -1) {
		listed = append(listed, m[1])
	}
	var codes []string
	for _, code := range toolerr.Codes() {
		codes = append(codes, string(code))
	}
	require.Equal(t, codes, listed)
}
