//go:build !linux

package proc

import (
	"os"
)

func fileIDOf(os.FileInfo) (fileID, bool) { return fileID{}, false }

func openIdentified(string, fileID) *os.File { return nil }

func currentPath(*os.File) (string, bool) { return "", false }

func duplicateFile(*os.File) *os.File { return nil }
