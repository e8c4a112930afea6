// Mcp-dispatch_agent is an MCP server with one tool, dispatch_agent: a
// sub-agent with a conversation of its own looks into something, or does it,
// and answers with a report.
//
//	mcp-dispatch_agent [DIR…] [flags]
//
// It serves the Model Context Protocol on standard input and output. Without
// a DIR or --root the roots come from MCP_ROOT, CLAUDE_PROJECT_DIR, the
// client, or the working directory. To try it:
//
//	echo '{"prompt":"Where is the retry delay set?"}' | mcp-dispatch_agent
//
// The sub-agent is mcp-host agent, with the tools beside this binary; under
// mcp-host its tools are that host's, with the policy, limits and audit of who
// called. Which model it asks is the configuration of mcp-host, or --model.
// --tools, or MCP_AGENT_TOOLS, says what it may use at most: readonly (ls, glob,
// grep, view) unless given, edit (edit and replace, too), all, or names. An agent
// may dispatch agents if that lets it, and these may not.
//
// Further kinds of agents are files NAME.md in --agents DIR (else
// toolroom/agents in the user's configuration): a head with description, tools
// and model between two lines of ---, then the instructions.
package main

import (
	_ "embed"
	"os"
)

//go:embed main.go
var source string

func main() { os.Exit(run()) }
