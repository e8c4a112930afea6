// Package clients tests what a model receives through coding agents that other
// people wrote: Claude Code, Codex, opencode and Gemini CLI.
//
// Each agent runs with an empty home against a scripted model on this machine.
// The model calls every tool of this repository, first with a server
// configured for each binary, then through mcp-host. A recorder between
// agent and server writes down the messages of both. The tests compare them
// with the agent's requests to the model: the text of every result, the errors,
// the images, and the names and descriptions of the tools.
//
// The tests have the build tag "oracle", because the agents come from npm:
// `make oracles` installs them at pinned versions, `make test-all` runs the
// tests. A missing agent is a failure.
package clients
