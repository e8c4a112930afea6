// Package gosdk has the vendors' Go SDKs as clients of the host's API, as
// the tests of host/internal/cli have those for JavaScript. It is a module of its own, since to
// compile the two takes minutes: `make gosdk` runs it, and no other target does.
package gosdk
