//go:build !linux

package wire

import "io"

// PollableReader returns in: on this system, no way of waiting leaves other
// processes that share the file unaffected.
func PollableReader(in io.Reader) io.Reader { return in }
