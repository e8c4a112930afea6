// Package blobdir stores blobs as files of one directory (mode 0600 in 0700) that all
// hosts of a machine share. A blob is written to a temporary file, synced, and linked
// to its name, which fails if the name exists. So a reader finds either the whole blob
// or nothing, and of two writers only one succeeds.
package blobdir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/store"
)

const (
	// blobPrefix keeps an id from being the name of a device on Windows, such as con.
	blobPrefix = "b_"
	// tempPrefix is the prefix of the names of unfinished files.
	tempPrefix = "aside-"
	// abandonedAge is the age from which an unfinished file is removed.
	abandonedAge = time.Hour
)

// Config describes a directory. Dir must be set.
type Config struct {
	Dir    string
	Quota  store.Quota
	NoSync bool             // a power cut can lose the last written blobs
	Now    func() time.Time // nil: time.Now
}

// New returns the blobs in a directory, which the first Create creates.
func New(c Config) store.Blobs {
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Quota = c.Quota.WithDefaults()
	return &dir{c}
}

// A dir is a directory with one file for each blob.
type dir struct{ Config }

// path returns the path of a blob's file.
func (d *dir) path(id string) string { return filepath.Join(d.Dir, blobPrefix+id) }

// Create implements store.Blobs. The blobs together never exceed the quota, even with
// concurrent writers: each also counts the unfinished files of the others. After an error
// no blob is left.
func (d *dir) Create(ctx context.Context, id string, r io.Reader) (store.Blob, error) {
	if err := ctx.Err(); err != nil {
		return store.Blob{}, err
	}
	if err := MakePrivate(d.Dir); err != nil {
		return store.Blob{}, err
	}
	if _, err := os.Lstat(d.path(id)); err == nil {
		return store.Blob{}, store.ExistsError(id)
	}
	// CreateTemp makes files 0600.
	f, err := os.CreateTemp(d.Dir, tempPrefix+"*")
	if err != nil {
		return store.Blob{}, err
	}
	b, err := d.write(ctx, f, id, r)
	if err == nil {
		err = d.linkToName(f.Name(), id)
	}
	return b, errors.Join(err, os.Remove(f.Name()))
}

// write writes the content of r to the temporary file f, closes f, and returns the
// blob's description. It returns TOO_LARGE or LIMIT_REACHED above the quota.
func (d *dir) write(ctx context.Context, f *os.File, id string, r io.Reader) (b store.Blob, err error) {
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	size, err := io.Copy(f, d.Quota.CapReader(cancelReader{ctx, r}))
	if err != nil {
		return b, err
	}
	if !d.NoSync {
		if err := f.Sync(); err != nil {
			return b, err
		}
	}
	// Trim and Stat use the modification time of the file.
	b = store.Blob{ID: id, Size: size, Created: d.Now().Truncate(time.Millisecond)}
	if err := os.Chtimes(f.Name(), b.Created, b.Created); err != nil {
		return b, err
	}
	total := int64(0)
	err = d.visitFiles(func(_ string, info fs.FileInfo) { total += info.Size() })
	if err == nil && total > d.Quota.Total {
		err = d.Quota.ExceededError()
	}
	return b, err
}

// linkToName links the written file from to the name of the blob. It returns EXISTS if
// there is such a blob.
func (d *dir) linkToName(from, id string) error {
	err := os.Link(from, d.path(id))
	switch {
	case err == nil:
	case errors.Is(err, fs.ErrExist):
		return store.ExistsError(id)
	default: // a file system without links: the later of two concurrent writers wins
		if _, e := os.Lstat(d.path(id)); e == nil {
			return store.ExistsError(id)
		}
		data, e := os.ReadFile(from)
		if e == nil {
			e = os.WriteFile(from+"-", data, 0o600)
		}
		if e == nil {
			e = os.Rename(from+"-", d.path(id))
		}
		if e != nil {
			return errors.Join(err, e)
		}
	}
	if d.NoSync {
		return nil
	}
	return syncDir(d.Dir)
}

// Open implements store.Blobs.
func (d *dir) Open(ctx context.Context, id string) (io.ReadCloser, store.Blob, error) {
	if err := ctx.Err(); err != nil {
		return nil, store.Blob{}, err
	}
	f, err := os.Open(d.path(id))
	if err != nil {
		return nil, store.Blob{}, notFoundIfMissing(err, id)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("blob %s is not a file", id)
	}
	if err != nil {
		return nil, store.Blob{}, errors.Join(err, f.Close())
	}
	return f, blobOf(id, info), nil
}

// Stat implements store.Blobs.
func (d *dir) Stat(ctx context.Context, id string) (store.Blob, error) {
	if err := ctx.Err(); err != nil {
		return store.Blob{}, err
	}
	info, err := os.Lstat(d.path(id))
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("blob %s is not a file", id)
	}
	if err != nil {
		return store.Blob{}, notFoundIfMissing(err, id)
	}
	return blobOf(id, info), nil
}

// Delete implements store.Blobs.
func (d *dir) Delete(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return notFoundIfMissing(os.Remove(d.path(id)), id)
}

// Trim implements store.Blobs.
func (d *dir) Trim(ctx context.Context, keep store.Retention) (int, error) {
	var all []store.Blob
	var left []string
	err := d.visitFiles(func(name string, info fs.FileInfo) {
		if id, ok := strings.CutPrefix(name, blobPrefix); ok {
			all = append(all, blobOf(id, info))
		} else if time.Since(info.ModTime()) > abandonedAge { // the system's clock set that time
			left = append(left, name)
		}
	})
	for _, name := range left {
		err = errors.Join(err, ignoreRemoved(os.Remove(filepath.Join(d.Dir, name))))
	}
	removed := 0
	for _, b := range keep.BlobsToRemove(all, d.Now()) {
		if e := cmp.Or(ctx.Err(), ignoreRemoved(os.Remove(d.path(b.ID)))); e != nil {
			return removed, errors.Join(err, e)
		}
		removed++
	}
	return removed, err
}

// visitFiles calls f for every file of the store, also for temporary ones.
func (d *dir) visitFiles(f func(name string, info fs.FileInfo)) error {
	entries, err := os.ReadDir(d.Dir)
	if err != nil {
		return ignoreRemoved(err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), blobPrefix) && !strings.HasPrefix(e.Name(), tempPrefix) {
			continue
		}
		info, err := e.Info()
		if ignoreRemoved(err) != nil {
			return err
		}
		if err == nil && info.Mode().IsRegular() {
			f(e.Name(), info)
		}
	}
	return nil
}

// blobOf returns the description of the blob id in the file info.
func blobOf(id string, info fs.FileInfo) store.Blob {
	return store.Blob{ID: id, Size: info.Size(), Created: info.ModTime()}
}

// ignoreRemoved returns err, or nil if another process has removed the file.
func ignoreRemoved(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// notFoundIfMissing returns NOT_FOUND for an error that says that the file of the blob
// id does not exist; other errors unchanged.
func notFoundIfMissing(err error, id string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return store.NotFoundError("blob " + id)
	}
	return err
}

// A cancelReader is a reader that fails when its context has ended.
type cancelReader struct {
	ctx context.Context
	r   io.Reader
}

// Read reads until the context ends, and then returns its error.
func (w cancelReader) Read(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.r.Read(p)
}
