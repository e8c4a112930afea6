//go:build !linux && !darwin

package proc

import (
	"os"
)

// fileIDOf returns false: only Linux confines commands.
func fileIDOf(os.FileInfo) (fileID, bool) { return fileID{}, false }

// openIdentified returns nil: only Linux confines commands.
func openIdentified(string, fileID) *os.File { return nil }

// currentPath always returns "" and false: only Linux confines commands.
func currentPath(*os.File) (string, bool) { return "", false }

// duplicateFile returns nil: only Linux confines commands.
func duplicateFile(*os.File) *os.File { return nil }
