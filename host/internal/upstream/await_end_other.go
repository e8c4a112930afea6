//go:build !linux

package upstream

import "os"

// awaitEnd returns at once: this system needs a thread that waits for each child.
func awaitEnd(*os.Process) {}
