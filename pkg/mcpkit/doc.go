// Package mcpkit makes MCP tool servers: typed tools with their schema,
// validation and errors; the program around them; and the stdio wire.
//
// # A tool
//
// A tool is a Def and a function from an argument struct to a Result. NewTool
// makes its input schema from the struct's tags: json gives the member's name
// (without omitempty it is required), jsonschema (or desc, description) the
// text that the model reads; others are enum:"a,b", default:"10", min:"1",
// max:"20" and alias:"other_name". Arguments are checked before the function
// runs, and all faults are reported at once. An error that the function returns
// becomes a result with isError; give it a code with toolerr.New.
//
// The function's ctx carries the deadline and the client's cancellation. Budget
// returns the result's size limit, Progress reports on long work, Notef adds a
// note, and ClientRoots asks for the client's directories.
//
// # A program
//
// NewCommand and Command.Main make a program that serves its tools over stdin
// and stdout to MCP clients of both protocol eras, or makes one call and exits.
// The example shows a complete program.
//
// # The wire
//
// ServeStdio serves any mcp-go server over a pair of streams, with rules that
// mcp-go's own stdio server does not keep: every request read is answered
// before the end of input ends the server, a request's notifications are sent
// before its answer, a cancelled call is not answered, and a call cancelled in
// the queue never runs. Package jsonrpc splits and builds messages.
package mcpkit
