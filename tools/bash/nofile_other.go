//go:build !unix

package main

// descriptorsAllowed returns the assumed limit of open files of this process.
func descriptorsAllowed() uint64 { return 1024 }
