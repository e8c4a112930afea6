// Mcp-dispatch_agent is an MCP server with one tool, dispatch_agent, that runs a
// sub-agent with its own context and returns its report.
//
//	mcp-dispatch_agent [DIR…] [flags]
//
// It serves the Model Context Protocol on standard input and output. Without
// a DIR or --root the roots come from MCP_ROOT, CLAUDE_PROJECT_DIR, the
// client, or the working directory. To try it:
//
//	echo '{"prompt":"Where is the retry delay set?"}' | mcp-dispatch_agent
//
// The sub-agent is mcp-host agent, with the tools in the directory of this
// binary. Under mcp-host it uses that host's tools, with the policy, limits and
// audit log of the caller. Its model comes from the configuration of mcp-host or
// from --model.
//
// --tools (or MCP_AGENT_TOOLS) limits the tools of all agents: readonly (ls, glob,
// grep, view; the default), edit (also edit and replace), all, or a list of names.
// If the list allows it, an agent can dispatch agents; these cannot dispatch more.
//
// More kinds of agents are files NAME.md in --agents DIR (default:
// toolroom/agents in the user's configuration directory): front matter with
// description, tools and model between two lines of ---, then the instructions.
package main

import (
	_ "embed"
	"os"
)

//go:embed main.go
var source string

func main() { os.Exit(run()) }
