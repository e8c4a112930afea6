//go:build !unix

package main

// openFilesLimit returns the limit of open files of this process.
func openFilesLimit() uint64 { return 1024 }
