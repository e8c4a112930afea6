//go:build !linux

package upstream

import "os"

// awaitEnd returns at once: here a thread has to wait for each child.
func awaitEnd(*os.Process) {}
