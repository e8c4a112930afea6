package mcpkit_test

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// A program that consists of Main serves MCP, makes one call, and prints its
// manual.
func TestMainServes(t *testing.T) {
	bin := mcpkittest.Build(t, "./examples/wordcount")
	output := func(stdin string, args ...string) (stdout string, code int) {
		c := exec.Command(bin, args...)
		c.Stdin = strings.NewReader(stdin)
		var out, errs bytes.Buffer
		c.Stdout, c.Stderr = &out, &errs
		if err := c.Run(); err != nil {
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit, errs.String())
			code = exit.ExitCode()
		}
		return out.String(), code
	}
	out, code := output(`{"text":"a b c"}`, "--text")
	require.Equal(t, "3 words\n", out)
	require.Zero(t, code)

	out, code = output(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wordcount","arguments":{"text":"a b"}}}` + "\n")
	require.JSONEq(t, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"2 words"}]}}`, out)
	require.Zero(t, code)

	out, _ = output("", "--help")
	require.Contains(t, out, "\twordcount: Counts the words of a text.\n")

	_, code = output(`{}`, "--text")
	require.Equal(t, mcpkit.ExitFail, code)
}

// Must passes a tool on, and stops a program whose definition is wrong.
func TestMust(t *testing.T) {
	tool, err := mcpkit.NewTool(mcpkit.Def{Name: "a"}, nothing[struct{}])
	require.NoError(t, err)
	require.Same(t, tool, mcpkit.Must(tool, nil))
	require.PanicsWithError(t, "bad name", func() { mcpkit.Must(nil, errors.New("bad name")) })
}
