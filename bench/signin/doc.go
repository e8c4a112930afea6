// Package signin signs the host in at an authorization server that other people
// wrote, the certified OpenID provider oidc-provider, by running the host's
// commands: login in a browser and on a device, calls, refreshes by many
// processes, logout. Users of `mcp-host serve` sign in with the OAuth clients of the
// TypeScript SDKs and of Claude Code, and have their own credentials for its servers.
//
// In most tests, the browser is an HTTP client with cookies that fills in the provider's
// forms. In chromium_test.go it is a headless Chromium.
//
// The tests stand behind the build tag "oracle": `make oracles` installs the
// provider at a pinned version, `make test-all` runs them.
package signin
