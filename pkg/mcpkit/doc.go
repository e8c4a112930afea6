// Package mcpkit makes MCP tool servers: typed tools with their schema,
// validation and errors; the program around them; and the stdio wire.
//
// # A tool
//
// A tool is a Def and a function from an argument struct to a Result. NewTool
// makes its input schema from the struct: the member's name from json (one
// without omitempty is required), jsonschema (or desc, description) the text
// that the model reads, enum:"a,b", default:"10", min:"1", max:"20",
// alias:"other_name". Arguments are checked before the function runs, and all
// faults are named at once. An error that the function returns becomes a
// result with isError; give it a code with toolerr.New.
//
// In the function, ctx carries the deadline and the client's cancel; Budget
// says how long the result may be, Progress reports on long work, Notef adds
// a note, ClientRoots asks for the client's directories.
//
// # A program
//
// NewCommand and Command.Main make a program that serves its tools over
// stdin and stdout to MCP clients of both protocol eras, or makes one call
// and exits. The example shows all of one.
//
// # The wire
//
// ServeStdio serves any mcp-go server over a pair of streams, with rules that
// hold where mcp-go's own stdio server's do not: every request read is
// answered before the end of input ends the server, a request's notifications
// come before its answer, a cancelled call is not answered, and one that
// waits never runs. Package jsonrpc below it splits and builds messages.
package mcpkit
