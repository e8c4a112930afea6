package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/policy"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

func TestDescriptionOfAnotherShell(t *testing.T) {
	text := strings.TrimSpace(description)
	require.Equal(t, text, shellDescription(text, "bash", "linux", proc.Off))
	for _, c := range []struct{ shell, title string }{{"pwsh", "PowerShell"}, {"powershell", "Windows PowerShell"}, {"cmd", "cmd.exe"}} {
		other := shellDescription(text, c.shell, "windows", proc.Restricted)
		require.Contains(t, other, "Runs a command in "+c.title)
		require.NotContains(t, other, "Runs a bash command")
		require.Contains(t, other, "variables do not persist")
		require.NotContains(t, other, "persist between calls")
		require.Contains(t, other, "- Not sandboxed")
		require.NotContains(t, other, "writes only in the allowed directories")
		require.Equal(t, strings.Count(text, "\n"), strings.Count(other, "\n"))
	}
	require.Contains(t, shellDescription(text, "bash", "windows", proc.Off), "Runs a bash command")
	require.Contains(t, shellDescription(text, "cmd", "windows", proc.Highest), "- Sandboxed:")
}

// Rules are never ignored: where commands are not parsed, the server refuses them.
func TestRulesNeedBash(t *testing.T) {
	for _, rules := range []policy.Config{{Mode: policy.AllowList}, {Allow: []string{"ls"}}, {Deny: []string{"rm *"}}, {Ask: []string{"git push *"}}} {
		require.ErrorContains(t, checkShellRules("powershell", rules), "need bash")
		require.NoError(t, checkShellRules("bash", rules))
	}
	require.NoError(t, checkShellRules("cmd", policy.Config{Mode: policy.BanList}))
	s := &bashTool{shellName: "cmd"}
	verdict := s.check("del x")
	require.Equal(t, policy.Undecided, verdict.Decision)
	require.NoError(t, verdict.Err())
	require.Equal(t, "commands of cmd are not parsed", verdict.Doubts[0].Reason)
}
