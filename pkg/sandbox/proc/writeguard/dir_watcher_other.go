//go:build !linux

package writeguard

// dirWatcher is unused: no level confines commands on this system.
type dirWatcher struct{ events chan struct{} }

func watchDirs([]string, func(string) bool) *dirWatcher { return nil }

func (n *dirWatcher) close() {}
