//go:build !linux && !darwin

package sandbox

import (
	"io/fs"
	"os"
)

// openRootObject opens the directory path as a root, with os.Root.
func openRootObject(path string) (object, error) { return openPortableRoot(path) }

// isPseudoRoot returns false: this system does not show the state of its kernel as
// files.
func isPseudoRoot(*os.Root, string, fs.FileInfo) bool { return false }

// isPseudoPath returns false: this system does not show the state of its kernel
// as files.
func isPseudoPath(string) bool { return false }
