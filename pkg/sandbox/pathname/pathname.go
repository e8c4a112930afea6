// Package pathname handles file names as text, without file access. It escapes
// names so that they are safe to show, reads them back, and compares them as
// file systems that ignore letter case do.
package pathname

import "os"

// Base returns the last component of a path, without allocating. Unlike
// filepath.Base it returns "" for a path that ends in a separator.
func Base(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if os.IsPathSeparator(path[i]) {
			return path[i+1:]
		}
	}
	return path
}
