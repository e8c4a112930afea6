//go:build !linux && !darwin

package sandbox

import (
	"io/fs"
	"os"
)

// openFastest opens a root with os.Root.
func openFastest(path string) (object, error) { return openPortableRoot(path) }

// isPseudoRoot returns false: this system does not show the state of its kernel as
// files.
func isPseudoRoot(*os.Root, string, fs.FileInfo) bool { return false }

// isPseudoPath returns false: this system does not show the state of its kernel
// as files.
func isPseudoPath(string) bool { return false }
