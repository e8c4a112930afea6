//go:build !linux

package writeguard

import (
	"os"
	"time"
)

// commandLocks is empty: no level confines commands on this system.
type commandLocks struct{}

// openCommandLocks returns an empty value: no level confines commands on this
// system.
func openCommandLocks(string) *commandLocks { return &commandLocks{} }

// close does nothing.
func (p *commandLocks) close() {}

// acquire does nothing.
func (p *commandLocks) acquire() {}

// fileTimeNow returns the current time.
func fileTimeNow() time.Time { return time.Now() }

// release does nothing.
func (p *commandLocks) release() {}

// commandsOfOthers returns no commands.
func (p *commandLocks) commandsOfOthers() []runningCommand { return nil }

// dirHash returns 0.
func dirHash(os.FileInfo) uint32 { return 0 }

// pathsThroughMounts returns no paths.
func pathsThroughMounts(string) []string { return nil }

// foreignStateDirs returns no directories.
func foreignStateDirs() []string { return nil }
