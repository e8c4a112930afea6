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

// Open returns errors.ErrUnsupported.
func Open(string) (*Tree, error) { return nil, errors.ErrUnsupported }

// The methods return errors.ErrUnsupported.

func (t *Tree) Close() error                                 { return errors.ErrUnsupported }
func (t *Tree) Lstat(string) (fs.FileInfo, error)            { return nil, errors.ErrUnsupported }
func (t *Tree) Readlink(string) (string, error)              { return "", errors.ErrUnsupported }
func (t *Tree) Names(string) ([]string, error)               { return nil, errors.ErrUnsupported }
func (t *Tree) OpenFile(string) (*os.File, error)            { return nil, errors.ErrUnsupported }
func (t *Tree) Create(string, fs.FileMode) (*os.File, error) { return nil, errors.ErrUnsupported }
func (t *Tree) Mkdir(string, fs.FileMode) error              { return errors.ErrUnsupported }
func (t *Tree) Mkfifo(string, fs.FileMode) error             { return errors.ErrUnsupported }
func (t *Tree) Symlink(string, string) error                 { return errors.ErrUnsupported }
func (t *Tree) Link(string, string) error                    { return errors.ErrUnsupported }
func (t *Tree) Rename(string, string) error                  { return errors.ErrUnsupported }
func (t *Tree) MoveIn(string, string) error                  { return errors.ErrUnsupported }
func (t *Tree) Remove(string) error                          { return errors.ErrUnsupported }
func (t *Tree) RemoveAll(string) error                       { return errors.ErrUnsupported }
func (t *Tree) Chmod(string, fs.FileMode) error              { return errors.ErrUnsupported }
func (t *Tree) Chtimes(string, time.Time) error              { return errors.ErrUnsupported }
