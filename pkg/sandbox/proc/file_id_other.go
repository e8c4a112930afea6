//go:build !linux

package proc

import (
	"os"
)

func idOf(os.FileInfo) (fileID, bool) { return fileID{}, false }

func holdFile(string, fileID) *os.File { return nil }

func pathOf(*os.File) (string, bool) { return "", false }

func duplicate(*os.File) *os.File { return nil }
