package changes

import "github.com/toolroom-mcp/toolroom/pkg/sandbox"

// Abandon frees the layer's lock, as the end of its process does.
func (l *Layer) Abandon() {
	sandbox.Unlock(l.lock)
	l.lock.Close() //nolint:errcheck // the lock is free
}
