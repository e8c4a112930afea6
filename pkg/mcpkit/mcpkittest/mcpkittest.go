// Package mcpkittest tests MCP servers from the outside: it builds and starts
// the binary, speaks JSON-RPC over its standard input and output, compares
// its definitions with a committed snapshot, and runs txtar scripts.
package mcpkittest

import "testing"

// Build compiles the package at dir (relative to the module's root, like
// "./tools/ls") once per test process and returns the binary's path.
func Build(t testing.TB, dir string) string { t.Helper(); return "" }

// Snapshot compares the server's tools/list answer with the file.
func Snapshot(t *testing.T, bin, file string, args ...string) { t.Helper() }

// RunScripts runs every *.txtar of dir against the server.
func RunScripts(t *testing.T, bin, dir string) { t.Helper() }
