package proc

import (
	"os"
	"syscall"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// Init must be called at the beginning of main, before flags are parsed. In the
// process that the self-test starts, it runs the probe and does not return. In
// other processes it does nothing.
func Init() {
	if len(os.Args) >= 3 && os.Args[1] == supervise.RoleArg {
		// os.Exit sleeps one second in a program built with -race.
		syscall.Exit(runProbeRole(os.Args[2]))
	}
}
