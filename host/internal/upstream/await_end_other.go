//go:build !linux

package upstream

import "os"

// waitWithoutThread returns at once: this system needs a thread that waits for each child.
func waitWithoutThread(*os.Process) {}
