//go:build unix && !linux

package sandbox_test

import "testing"

// theirs would run f as another user: only Linux has that for one thread.
func theirs(*testing.T, func()) {}
