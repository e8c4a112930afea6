package sandbox

import (
	"errors"
	"io/fs"
	"os"
)

// object is one file system object, found without following a link and held
// so that its name no longer matters. There are two implementations: openat2
// (Linux) and os.Root (everywhere). Both are run through the same tests.
type object interface {
	// stat returns what the object was when it was found.
	stat() Stat
	// isSameFile reports whether info, of an Lstat, is of this very object.
	isSameFile(info fs.FileInfo) bool
	// isPseudo reports whether it is on a file system that shows the state of
	// the kernel or opens devices (proc, sysfs, devtmpfs and their like).
	isPseudo() bool
	// child finds an entry of a directory: a link is found itself.
	openChild(name string) (object, error)
	// openDeep finds an entry several levels down, given clean and with slashes,
	// in one step; errSlow where that needs child by child.
	openDeep(rel string) (object, error)
	// readlink returns the target of a link.
	readlink() (string, error)
	// openFile opens a regular file for reading; never blocks.
	openFile() (*os.File, Stat, error)
	// openDir opens a directory; path is its absolute real path.
	openDir(path string) (*Dir, error)
	// parentDir opens a directory for writing entries in it.
	parentDir() (*parentDir, error)
	// readNames returns up to limit names of a directory's entries.
	readNames(limit int) []string
	close()
}

// rootOpener opens the directory at path, an absolute path without links, as a
// root.
type rootOpener func(path string) (object, error)

var (
	// errSlow: a link is in the way, or the shortcut does not exist here.
	errSlow = errors.New("sandbox: resolve step by step")
	// errChanged: the object was replaced while it was being opened.
	errChanged = errors.New("changed while it was being opened")
)

// maxOpenTries bounds how often an object that is replaced under our hands is
// looked for again.
const maxOpenTries = 16
