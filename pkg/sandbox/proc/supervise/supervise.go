// Package supervise is the supervisor process of a command. It runs between
// the server and the command: it confines the command by the kernel, adopts
// orphaned processes, and ends all of them.
//
// A program that imports the package becomes the supervisor if it is started
// with RoleArg and Role. That happens in the package's init: before main, and
// before most other packages are initialized. Go initializes a package after
// the packages that it imports, and this one imports few. A schema library
// alone takes 6 ms of processor time to initialize, three times as long as
// bash takes to run a command. Therefore this package imports no other package
// of this module, and not net, regexp or x/text; a test checks that.
package supervise
