// Package mcpkit makes MCP tool servers: typed tools with their schema,
// validation and errors, and the program around them.
//
// # A tool
//
// A tool is a Def and a function from an argument struct to a Result. NewTool
// makes its input schema from the tags of the struct: json gives an argument's
// name (without omitempty it is required), jsonschema (or desc, description) the
// text that the model reads. Further tags are enum:"a,b", default:"10", min:"1",
// max:"20" and alias:"other_name"; see NewTool. Arguments are checked before the
// function runs, and all faults are reported at once. An error that the function
// returns becomes a result with isError; give it a code with toolerr.New.
//
// The function's ctx has the deadline and ends when the client cancels the call.
// Budget returns the result's size limit, Progress reports on long work, Notef
// adds a note to the result, and ClientRoots returns the client's directories.
//
// # A program
//
// Main makes a program that serves its tools over stdin and stdout to MCP clients
// of both protocol eras, or makes one call and exits. The repository's directory
// examples has a complete one. NewCommand adds flags, roots and instructions.
//
// # Other packages
//
// Package middleware has logging, metrics and retries for Command.Middleware and
// Tool.With. Package callerror has the error types of a call.
//
// Package wire serves tools over stdin and stdout, and gives routers access to
// the bytes of messages. Package jsonrpc splits and builds messages. A tool needs
// neither.
package mcpkit
