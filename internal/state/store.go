package state

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// maxRecord bounds a record in bytes: longer ones are neither written nor read.
const maxRecord = 1 << 20

// errDisabled is the error of opening a store for which state is disabled.
var errDisabled = errors.New("state is switched off")

// Store is a state directory, opened at first use. It is safe for concurrent
// use by several goroutines and processes. Its seen records belong to one
// client: see ForSession.
type Store struct {
	*sharedStore
	client string // hash of the client, for the names of its seen records
}

// sharedStore is the part of a Store that the stores of all sessions share.
type sharedStore struct {
	config Config
	open   func() (string, error)

	mu     sync.Mutex
	writes int
	queue  lockQueue
}

// New returns a store configured by c. It does not access the disk yet.
func New(c Config) *Store {
	if c.MaxBytes == 0 {
		c.MaxBytes = defaultMaxBytes
	}
	if c.MaxAge == 0 {
		c.MaxAge = defaultMaxAge
	}
	if c.UndoBytes == 0 {
		c.UndoBytes = defaultUndoBytes
	}
	if c.UndoAge == 0 {
		c.UndoAge = defaultUndoAge
	}
	if c.UndoContent == 0 {
		c.UndoContent = defaultUndoContent
	}
	if c.OutputBytes == 0 {
		c.OutputBytes = defaultOutputBytes
	}
	if c.OutputAge == 0 {
		c.OutputAge = defaultOutputAge
	}
	if c.LockWait == 0 {
		c.LockWait = defaultLockWait
	}
	if c.Client == "" {
		c.Client = parentIdentity()
	}
	shared := &sharedStore{config: c, open: sync.OnceValues(func() (string, error) { return makeStateDir(c) })}
	return &Store{sharedStore: shared, client: clientHash(c.Client, "")}
}

// Err opens the store and returns the reason why it cannot keep state. It
// returns nil if it can, and if state is disabled.
func (s *Store) Err() error {
	if _, err := s.open(); !errors.Is(err, errDisabled) {
		return err
	}
	return nil
}

// makeStateDir creates the state directory, accessible only to this user, and
// returns its path. It returns errDisabled if state is disabled.
func makeStateDir(c Config) (string, error) {
	if c.Disabled {
		return "", errDisabled
	}
	dir := c.Directory()
	if dir == "" {
		return "", errors.New("no state directory: neither --state nor a home directory")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return dir, nil
}

// makeSubdir creates a subdirectory with mode 0700, if it does not exist, and
// returns its path. It returns an error if the name belongs to another user or
// is not a directory.
func (s *Store) makeSubdir(name string) (string, error) {
	dir, err := s.open()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return "", err
	case !info.IsDir() || !isOwnedByUser(info):
		return "", fmt.Errorf("%s is not a directory owned by this user", dir)
	case info.Mode().Perm()&0o077 != 0 && hasPosixModes:
		return dir, os.Chmod(dir, 0o700)
	}
	return dir, nil
}

// readRecord returns the content of the record name in the subdirectory sub. It
// returns an error if the record is missing, larger than maxRecord, not a
// regular file, or in a directory of another user.
func (s *Store) readRecord(sub, name string) ([]byte, error) {
	dir, err := s.open()
	if err != nil {
		return nil, err
	}
	dir = filepath.Join(dir, sub)
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() || !isOwnedByUser(info) {
		return nil, fs.ErrNotExist
	}
	path := filepath.Join(dir, name)
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return nil, fs.ErrNotExist
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxRecord+1))
	if err == nil && len(data) > maxRecord {
		err = fs.ErrInvalid
	}
	return data, err
}

// writeRecord replaces the record name in the subdirectory sub atomically. It
// returns an error for more than maxRecord bytes.
func (s *Store) writeRecord(sub, name string, data []byte) error {
	if len(data) > maxRecord {
		return fmt.Errorf("a record of %d bytes is over the limit of %d", len(data), maxRecord)
	}
	dir, err := s.makeSubdir(sub)
	if err != nil {
		return err
	}
	if err := replaceAtomically(dir, name, data); err != nil {
		return err
	}
	return s.pruneIfDue(dir)
}
