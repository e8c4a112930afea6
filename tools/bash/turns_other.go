//go:build !unix

package main

// descriptorsAllowed is how many files this process may have open.
func descriptorsAllowed() uint64 { return 1024 }
