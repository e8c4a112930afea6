package sandbox

import (
	"errors"
	"io/fs"
	"os"
)

// object is a file system object that was found without following a link. It stays
// open, so its name no longer matters. There are two implementations, openat2 (Linux)
// and os.Root (everywhere), which pass the same tests.
type object interface {
	// stat returns the metadata at the time when the object was found.
	stat() Stat
	// isSameFile reports whether info, the result of an Lstat, describes this object.
	isSameFile(info fs.FileInfo) bool
	// isPseudo reports whether the object is on a file system that shows the state of
	// the kernel or opens devices, such as proc, sysfs and devtmpfs.
	isPseudo() bool
	// openChild opens an entry of a directory; for a link, the link itself.
	openChild(name string) (object, error)
	// openDeep opens an entry several levels down in one step. rel is clean and has
	// slashes. It returns errNeedsWalk if the entry has to be opened component by
	// component.
	openDeep(rel string) (object, error)
	// readlink returns the target of a link.
	readlink() (string, error)
	// openFile opens a regular file for reading. It never blocks.
	openFile() (*os.File, Stat, error)
	// openDir opens a directory; path is its absolute path without links.
	openDir(path string) (*Dir, error)
	// writableDir opens the object itself, a directory, for writing its entries. It
	// returns errNotDirectory for other objects.
	writableDir() (*writableDir, error)
	// readNames returns up to limit names of the directory's entries.
	readNames(limit int) []string
	close()
}

// rootOpener opens the directory at path, an absolute path without links, as a
// root.
type rootOpener func(path string) (object, error)

var (
	// errNeedsWalk means that openDeep cannot open a path in one step: it
	// contains a link, or the system has no openat2.
	errNeedsWalk = errors.New("sandbox: resolve step by step")
	// errChanged means that the object was replaced while it was being opened.
	errChanged = errors.New("changed while it was being opened")
)

// maxOpenTries bounds the attempts to open an object that other programs keep
// replacing.
const maxOpenTries = 16
