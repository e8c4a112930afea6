// Package wine tests the programs for Windows on Linux, under Wine.
//
// The tests have the build tag "wine". `make wine` installs Wine from Debian's packages,
// builds the programs for Windows and runs the tests. It takes minutes, so test-all
// does not include it.
package wine
