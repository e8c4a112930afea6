//go:build !linux

package changes

import (
	"errors"
	"io/fs"
	"os"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/nofollow"
)

// Without overlayfs no set is ever created.

// readFlags opens a file for reading.
const readFlags = os.O_RDONLY

// errNoLayers is the error of everything that needs overlayfs on a system other
// than Linux.
var errNoLayers = errors.New("changes apart from the roots need Linux")

// isWhiteout returns false: only Linux has layers.
func isWhiteout(fs.FileInfo) bool { return false }

// isOpaque returns false: only Linux has layers.
func isOpaque(string) bool { return false }

// removeOpaque returns errNoLayers.
func removeOpaque(string) error { return errNoLayers }

// makeWhiteout returns errNoLayers.
func makeWhiteout(string) error { return errNoLayers }

// makeOpaque returns errNoLayers.
func makeOpaque(string) error { return errNoLayers }

// removeOverlayAttributes does nothing: only overlayfs sets such attributes.
func removeOverlayAttributes(string) error { return nil }

// inodeAndChangeTime returns 0, 0: this system is not asked for them.
func inodeAndChangeTime(fs.FileInfo) (ino uint64, at int64) { return 0, 0 }

// copyModTime returns errNoLayers.
func copyModTime(string, fs.FileInfo) error { return errNoLayers }

// waitForLock returns errNoLayers.
func waitForLock(*os.File) error { return errNoLayers }

// isCrossDevice returns false: no layers are applied on this system.
func isCrossDevice(error) bool { return false }

// linkCount returns 0: the number is not known.
func linkCount(fs.FileInfo) uint64 { return 0 }

// copyAttributes returns errNoLayers.
func copyAttributes(*os.File, *os.File) error { return errNoLayers }

// matchAttributes returns errNoLayers.
func matchAttributes(*nofollow.Tree, string, string, baseState) error { return errNoLayers }

// attributesAndHashes returns nil: only Linux has layers.
func attributesAndHashes(*nofollow.Tree, string) (names, hashes []string) { return nil, nil }

// attributesAndHashesOf returns nil: only Linux has layers.
func attributesAndHashesOf(string) (names, hashes []string) { return nil, nil }

// copyDirMeta returns errNoLayers.
func copyDirMeta(string, string) error { return errNoLayers }

// nextData returns size, size: no data is left.
func nextData(_ *os.File, _, size int64) (begin, end int64) { return size, size }
