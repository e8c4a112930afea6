// Package proc runs commands for the tool bash: it starts them, collects their
// output, ends them with all their descendants, and confines them by the
// kernel.
//
// The package starts the program that uses it a second time: as the supervisor
// of a command, which takes over before main (see package supervise), and as
// the confined command of the self-test. For the latter, call Init first in
// main, and in TestMain of a test program:
//
//	func main() {
//		proc.Init()
//		…
//	}
//
//	runner, err := proc.New(proc.Config{Level: proc.Highest})
//	p, err := runner.Start(ctx, proc.Command{Script: "make test", Dir: dir, Rules: fs})
//	result := p.Wait()
//
// # One command
//
// The supervisor is the parent of bash and a child of the program that uses
// this package, the caller. Orphans of bash are
// reparented to it (PR_SET_CHILD_SUBREAPER); at a level with a pid namespace
// it is that namespace's first process. It exits when no descendant is left,
// which the kernel reports by ECHILD. It kills all descendants when the caller
// asks for that or has ended. It detects the latter by the end of the socket
// between them, even after a kill -9.
//
// A command ends when bash exits, not when its output is closed. Processes
// that bash left running get Config.Linger to finish writing, and are then
// ended too: by TERM, and by KILL after Config.Grace.
//
// # Levels
//
// See Level and Report. The self-test tries what this machine enforces.
//
// # Files
//
//	start.go, spec.go, supervisor*.go   start one command
//	process.go, output.go, result.go    follow it, collect its output, end it
//	hidden*.go                          find the files that it must not read
//	writeguard.go                       revert what it must not write, see
//	                                    package writeguard
//	selftest*.go                        test what this machine enforces
package proc

import (
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// Level says how far a command is confined: Off not at all, L1 by Landlock and
// seccomp, L2 also by namespaces and mounts, Seatbelt by a profile of macOS.
// Restricted, on Windows, takes away privileges and ends all processes, but
// confines neither files nor the network; Highest never chooses it. See
// Report.Gaps for what each does not restrict.
type Level = supervise.Level

// The levels.
const (
	// Highest means the highest level whose self-test passes, at least L1 or
	// Seatbelt.
	Highest Level = ""
	L2            = supervise.L2
	L1            = supervise.L1
	// Seatbelt is macOS's level, Restricted that of Windows.
	Seatbelt   = supervise.Seatbelt
	Restricted = supervise.Restricted
	Off        = supervise.Off
)
