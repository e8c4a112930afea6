//go:build !unix

package blobdir

import "os"

// MakePrivate creates a directory. Its location in the user's profile protects it.
func MakePrivate(dir string) error { return os.MkdirAll(dir, 0o700) }

// syncDir does nothing: this system does not sync directories.
func syncDir(string) error { return nil }
