// Package gosdk tests the host's API with the vendors' Go SDKs; the tests of
// host/internal/cli do the same with the JavaScript SDKs. It is a separate module
// because compiling the SDKs takes minutes: only `make gosdk` runs it.
package gosdk
