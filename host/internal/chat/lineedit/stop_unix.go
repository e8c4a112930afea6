//go:build unix

package lineedit

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// stop stops the program and what runs with it, as the shell's job, and returns when
// it was continued, or where nobody stops programs.
func stop() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	syscall.Kill(0, syscall.SIGTSTP) //nolint:errcheck // then it goes on
	select {
	case <-continued:
	case <-time.After(200 * time.Millisecond): // which pass while it is stopped, too
	}
}
