//go:build unix

package lineedit

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// suspendProcess stops the process group, as Ctrl-Z does in a shell, and returns when it is
// continued, or at once if no shell controls it.
func suspendProcess() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	syscall.Kill(0, syscall.SIGTSTP) //nolint:errcheck // then it goes on
	select {
	case <-continued:
	case <-time.After(200 * time.Millisecond): // the time also passes while the process is stopped
	}
}
