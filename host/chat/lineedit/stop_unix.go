//go:build unix

package lineedit

import "syscall"

// stop stops the program and what runs with it, as the shell's job, until it is
// continued.
func stop() {
	syscall.Kill(0, syscall.SIGTSTP) //nolint:errcheck // then it goes on
}
