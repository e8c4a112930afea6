//go:build !linux

package writeguard

// dirWatcher is unused: no level confines commands on this system.
type dirWatcher struct{ events chan struct{} }

// watchDirs returns nil: nothing is watched.
func watchDirs([]string, func(string) bool) *dirWatcher { return nil }

// close does nothing.
func (n *dirWatcher) close() {}
