// Package mcpkittest tests MCP servers from the outside: it builds and starts
// the binary, speaks JSON-RPC over its standard input and output, compares
// its definitions with a committed snapshot, and runs scripts. It needs Go
// and nothing else: no shell, no git.
//
//	func TestTool(t *testing.T) {
//		bin := mcpkittest.Build(t, "./tools/ls")
//		mcpkittest.Snapshot(t, bin, "testdata/tool.json")
//		mcpkittest.RunScripts(t, bin, "testdata/script")
//	}
//
// With -update, snapshots and the expected text of scripts are rewritten
// (go test ./tools/ls -update).
//
// For tests of clients and hosts, Mock is a server whose answers and faults the
// test sets.
//
// # Scripts
//
// A script is a txtar archive. Its comment says what the script tests, and which
// bugs it keeps fixed. Sections with the names below control the run; every other
// section is a file in the root directory, which is the server's working
// directory.
//
//	A missing path names what is near. Keeps fixed: an absolute
//	path in the answer.
//
//	-- src/main.go --
//	package main
//	-- setup --
//	symlink src/link main.go
//	-- args --
//	--root $ROOT
//	-- in --
//	ls {"path":"src"}
//	ls {"path":"scr"}
//	{"jsonrpc":"2.0","id":"x","method":"no/such"}
//	{broken
//	-- out --
//	1 ok
//	| src  [..] entries
//	| ...
//	2 error NOT_FOUND
//	~ did you mean
//	!~ $ROOT
//	x rpc -32601
//	null rpc -32700
//	-- in.oneshot --
//	{"path":"nowhere"}
//	-- out.oneshot --
//	error NOT_FOUND
//	~ nowhere
//
// The sections. A script needs in or in.oneshot; all others are optional:
//
//	setup       commands that make other files, one a line:
//	            mkdir DIR; symlink NAME TARGET; hardlink NAME OLD;
//	            chmod OCTAL NAME; mtime NAME RFC3339; base64 NAME DATA;
//	            size NAME BYTES (sparse); repeat NAME COUNT TEXT;
//	            crlf NAME
//	args        command line, one or more words a line
//	env         NAME=VALUE a line, added to a small fixed environment
//	era         legacy (default: initialize comes first), modern (each call
//	            carries its _meta), or none (nothing is added)
//	roots       the roots that the client offers, a directory a line
//	in          the lines to send. NAME {ARGUMENTS} calls a tool, METHOD/NAME
//	            {PARAMS} sends a request. These are numbered from 1, and the
//	            next line is sent after the answer, unless the line begins
//	            with &. "wait ID" waits for an answer. "eof" ends the input
//	            without waiting. Any other line is sent unchanged. A line that
//	            begins with white space continues the line before it; #
//	            begins a comment.
//	out         the answers, in any order: ID ok, ID error CODE (a result
//	            with isError) or ID rpc NUMBER (a JSON-RPC error), each with
//	            conditions. "notify METHOD" expects a notification, and
//	            "exit N" the exit status (default 0). All answers except that
//	            to initialize must be listed.
//	stderr      lines that standard error contains
//	in.oneshot  standard input of a second run, without a protocol
//	args.oneshot, env    its command line (default: args) and environment
//	out.oneshot its answers in order: ok, or error CODE; the exit status is
//	            1 if there is an error
//
// Conditions on an answer:
//
//	| TEXT      all lines of the text, in order; [..] in a line is any text,
//	            a line ... is any number of lines
//	~ TEXT      the text contains it
//	!~ TEXT     the text does not contain it
//	meta JSON   _meta["toolroom/result"] has these members; "*" is any value
//	json JSON   the whole result (or error, or the notification's params)
//	            has these members
//	image MIME  an image of the answer has that type
//
// $ROOT is the root directory, $STATE an empty directory for state
// ($XDG_STATE_HOME points to it). Files get fixed modification times, one
// second apart in the order of the archive.
package mcpkittest
