// Package conformance runs third-party clients against every binary of this
// repository: the MCP inspector, the TypeScript SDKs 1 and 2, the official Go SDK, and
// the official conformance suites. Each uses both protocol eras if it can.
//
// It also runs the host in front of third-party servers: those of the suites for
// clients, with command driver as the host's own client, and real servers, whose
// answers must be the same as without the host.
//
// The tests have the build tag "oracle", because the clients come from npm: `make
// oracles` installs them at pinned versions, `make test-all` runs the tests.
package conformance
