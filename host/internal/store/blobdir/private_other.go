//go:build !unix

package blobdir

import "os"

// Private makes a directory. Its place in the user's profile protects it.
func Private(dir string) error { return os.MkdirAll(dir, 0o700) }

// syncDir has nothing to do where directories are not synced.
func syncDir(string) error { return nil }
