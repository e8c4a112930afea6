// Package supervise is the second self of a program that runs commands: a
// process that stands between the server and one command, confines it by the
// kernel, adopts what it leaves behind and ends all of it.
//
// A program that imports the package turns into it when it is started with
// RoleArg and Role, and does so in the package's init: before main, and before
// most of the other packages are initialized, since a package is initialized
// once those it imports are, and this one imports little. A schema library
// alone takes 6 ms of the processor for that, three times what bash takes to
// run a command. So it imports nothing of this module and nothing of net,
// regexp or x/text, which a test holds it to.
package supervise
