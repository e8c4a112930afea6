//go:build !linux

package mcpkit

import "io"

// Awaited returns in: on this system, no way of waiting leaves other processes
// that share the file unaffected.
func Awaited(in io.Reader) io.Reader { return in }
