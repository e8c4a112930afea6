//go:build !linux

package changes

import (
	"errors"
	"io/fs"
	"os"
)

// Without overlayfs no set is ever created.

const readFlags = os.O_RDONLY

var errNoLayers = errors.New("changes apart from the roots need Linux")

func isWhiteout(fs.FileInfo) bool                           { return false }
func isOpaque(string) bool                                  { return false }
func removeOpaque(string) error                             { return errNoLayers }
func makeWhiteout(string) error                             { return errNoLayers }
func makeOpaque(string) error                               { return errNoLayers }
func removeOverlayAttributes(string) error                  { return nil }
func inodeAndChangeTime(fs.FileInfo) (ino uint64, at int64) { return 0, 0 }
func copyTimes(string, fs.FileInfo) error                   { return errNoLayers }
func waitForLock(*os.File) error                            { return errNoLayers }
func crossesDevice(error) bool                              { return false }
func linkCount(fs.FileInfo) uint64                          { return 0 }
func copyAttributes(*os.File, *os.File) error               { return errNoLayers }
func nextData(_ *os.File, _, size int64) (begin, end int64) { return size, size }
