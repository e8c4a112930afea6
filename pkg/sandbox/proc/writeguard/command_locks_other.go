//go:build !linux

package writeguard

import (
	"os"
	"time"
)

// presence is empty: no level confines commands on this system.
type presence struct{}

func openPresence(string) *presence { return &presence{} }

func (p *presence) close() {}

func (p *presence) publish() {}

func fileTimeNow() time.Time { return time.Now() }

func (p *presence) withdraw() {}

func (p *presence) commandsOfOthers() []runningCommand { return nil }

func dirHash(os.FileInfo) uint32 { return 0 }

func pathsThroughMounts(string) []string { return nil }

func foreignStateDirs() []string { return nil }
