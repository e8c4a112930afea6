//go:build !linux

package writeguard

import (
	"os"
	"time"
)

// commandLocks is empty: no level confines commands on this system.
type commandLocks struct{}

func openCommandLocks(string) *commandLocks { return &commandLocks{} }

func (p *commandLocks) close() {}

func (p *commandLocks) take() {}

func fileTimeNow() time.Time { return time.Now() }

func (p *commandLocks) release() {}

func (p *commandLocks) commandsOfOthers() []runningCommand { return nil }

func dirHash(os.FileInfo) uint32 { return 0 }

func pathsThroughMounts(string) []string { return nil }

func foreignStateDirs() []string { return nil }
