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

func fileClock() time.Time { return time.Now() }

func (p *presence) withdraw() {}

func (p *presence) others() []doubt { return nil }

func nodeHash(os.FileInfo) uint32 { return 0 }

func otherPaths(string) []string { return nil }

func peerStates() []string { return nil }
