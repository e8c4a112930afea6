// Package conformance runs clients that other people wrote against every
// binary of this repository: the MCP inspector, the TypeScript SDKs 1 and 2,
// the official Go SDK, and the official conformance suites. Each speaks both
// protocol eras where it can.
//
// It runs the host before servers that other people wrote, too: those of the
// suites for clients, with command driver as the host's own client, and real
// ones, with which all has to be as it is without the host.
//
// The tests stand behind the build tag "oracle", since the clients come from
// npm: `make oracles` installs them at pinned versions, `make test-all` runs
// them.
package conformance
