//go:build !linux

package nofollow

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

// Tree is an open directory. It is implemented only on Linux.
type Tree struct{}

// Open returns errors.ErrUnsupported, and so do all methods of Tree: only Linux
// has the calls that they need.
func Open(string) (*Tree, error) { return nil, errors.ErrUnsupported }

// The methods return errors.ErrUnsupported.

// Close returns errors.ErrUnsupported.
func (t *Tree) Close() error { return errors.ErrUnsupported }

// Lstat returns errors.ErrUnsupported.
func (t *Tree) Lstat(string) (fs.FileInfo, error) { return nil, errors.ErrUnsupported }

// Readlink returns errors.ErrUnsupported.
func (t *Tree) Readlink(string) (string, error) { return "", errors.ErrUnsupported }

// Names returns errors.ErrUnsupported.
func (t *Tree) Names(string) ([]string, error) { return nil, errors.ErrUnsupported }

// OpenFile returns errors.ErrUnsupported.
func (t *Tree) OpenFile(string) (*os.File, error) { return nil, errors.ErrUnsupported }

// Create returns errors.ErrUnsupported.
func (t *Tree) Create(string, fs.FileMode) (*os.File, error) { return nil, errors.ErrUnsupported }

// Mkdir returns errors.ErrUnsupported.
func (t *Tree) Mkdir(string, fs.FileMode) error { return errors.ErrUnsupported }

// Mkfifo returns errors.ErrUnsupported.
func (t *Tree) Mkfifo(string, fs.FileMode) error { return errors.ErrUnsupported }

// Symlink returns errors.ErrUnsupported.
func (t *Tree) Symlink(string, string) error { return errors.ErrUnsupported }

// Link returns errors.ErrUnsupported.
func (t *Tree) Link(string, string) error { return errors.ErrUnsupported }

// Rename returns errors.ErrUnsupported.
func (t *Tree) Rename(string, string) error { return errors.ErrUnsupported }

// MoveIn returns errors.ErrUnsupported.
func (t *Tree) MoveIn(string, string) error { return errors.ErrUnsupported }

// Remove returns errors.ErrUnsupported.
func (t *Tree) Remove(string) error { return errors.ErrUnsupported }

// RemoveAll returns errors.ErrUnsupported.
func (t *Tree) RemoveAll(string) error { return errors.ErrUnsupported }

// RemoveKnown returns errors.ErrUnsupported.
func (t *Tree) RemoveKnown(string, func(string, fs.FileInfo) bool) (string, error) {
	return "", errors.ErrUnsupported
}

// Chmod returns errors.ErrUnsupported.
func (t *Tree) Chmod(string, fs.FileMode) error { return errors.ErrUnsupported }

// Chtimes returns errors.ErrUnsupported.
func (t *Tree) Chtimes(string, time.Time) error { return errors.ErrUnsupported }
