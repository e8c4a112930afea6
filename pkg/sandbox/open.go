package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"runtime"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/secret"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// File is a regular file open for reading.
type File struct {
	*os.File
	Stat   Stat   // of the open file itself
	Path   string // absolute, links resolved
	Root   Root   // the innermost root that contains it
	Masked bool   // its values must not be shown: by one of its names, see FS.Masked and FS.MaskedFile
	asked  string
}

// Name returns the file's real path, for messages.
func (f *File) Name() string { return f.Path }

// Open opens a regular file for reading. It never blocks: for fifos, sockets and
// devices it returns SPECIAL_FILE without opening them. It returns IS_A_DIRECTORY for
// a directory, DENIED_PATH for another name of a secret, and the errors of the
// resolution. The caller closes the file, and must bound its reads, since the file may
// grow after Stat was taken.
func (f *FS) Open(name string) (*File, error) {
	defer runtime.KeepAlive(f)
	for range maxOpenTries {
		o, err := f.resolve(name, forContent)
		if err != nil {
			return nil, err
		}
		file, err := f.openResolved(name, o)
		o.close()
		if !errors.Is(err, errChanged) {
			return file, err
		}
	}
	return nil, f.explainReadError(name, errChanged)
}

// openResolved opens the resolved object if it is a regular file and not a private key.
// It returns IS_A_DIRECTORY, SPECIAL_FILE or DENIED_PATH for other objects, and
// errChanged if the object was replaced meanwhile.
func (f *FS) openResolved(name string, o *resolved) (*File, error) {
	switch mode := o.stat().Mode; {
	case mode.IsRegular():
	case mode.IsDir():
		return nil, toolerr.New(toolerr.IsADirectory, "%s is a directory, not a file: use ls on it, or name a file in it", pathname.Escape(name))
	default:
		return nil, errSpecial(name, mode)
	}
	opened, st, err := o.openFile()
	if errors.Is(err, errChanged) || errors.Is(err, fs.ErrNotExist) {
		return nil, errChanged
	}
	if err != nil {
		return nil, f.explainReadError(name, err)
	}
	file := &File{
		File: opened, Stat: st, Path: o.path, Root: o.root.Root, asked: o.asked,
		Masked: f.Masked(o.asked) || f.Masked(o.path) || f.MaskedFile(o.path, st) || o.masked,
	}
	if f.containsPrivateKey(file) || f.isDeniedFile(file) {
		opened.Close()
		return nil, f.explainReadError(name, errDenied)
	}
	return file, nil
}

// containsPrivateKey reports whether the content is a private key that the user did
// not allow.
func (f *FS) containsPrivateKey(file *File) bool {
	isKey, err := secret.ReadPrivateKey(file)
	return err == nil /* the reader will see it, too */ && isKey && !f.isAllowed(file.Path) && !f.isAllowed(file.asked)
}

// isDeniedFile reports whether an open file is a secret by another hard link.
func (f *FS) isDeniedFile(file *File) bool {
	denied, ok := f.linked.lookupObject(file.Stat)
	return ok && denied && !f.isAllowed(file.Path) && !f.isAllowed(file.asked)
}

// OpenDir opens a directory. It returns NOT_A_DIRECTORY for a file, and the errors of
// the resolution. The caller closes it.
func (f *FS) OpenDir(name string) (*Dir, error) {
	defer runtime.KeepAlive(f)
	o, err := f.resolve(name, forContent)
	if err != nil {
		return nil, err
	}
	defer o.close()
	if mode := o.stat().Mode; !mode.IsDir() {
		return nil, toolerr.New(toolerr.NotADirectory, "%s is a %s, not a directory: name the directory it is in", pathname.Escape(name), typeNameOf(mode))
	}
	dir, err := o.openDir(o.path)
	if err != nil {
		return nil, f.explainReadError(name, err)
	}
	dir.linked = f.linked
	return dir, nil
}

// Stat returns the metadata of the object at a path, following links. It works for
// secrets in directories that may be listed.
func (f *FS) Stat(name string) (Stat, error) {
	defer runtime.KeepAlive(f)
	o, err := f.resolve(name, forMetadata)
	if err != nil {
		return Stat{}, err
	}
	defer o.close()
	return o.stat(), nil
}
