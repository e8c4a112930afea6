// Package wire serves MCP over a pair of streams, and gives programs that forward
// messages access to their bytes.
//
// ServeStdio serves any mcp-go server, with rules that mcp-go's own stdio server
// does not keep: every request read is answered before the end of input ends the
// server, a request's notifications are sent before its answer, a cancelled call
// is not answered, and a call cancelled in the queue never runs.
package wire
