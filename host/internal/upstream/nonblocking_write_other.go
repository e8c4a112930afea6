//go:build !unix

package upstream

// nonBlockingWrite returns nil: this system has no write that never blocks.
func nonBlockingWrite(pipe) func(data []byte) (int, error) { return nil }
