package config

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/filelock"
)

// changeLockTimeout is the longest time to wait for another process that changes a file.
const changeLockTimeout = 10 * time.Second

// BeginChange excludes other processes of the host from changing a file until
// end is called, so that nothing is lost that one of them adds between reading and
// ReplaceFile. It creates the directory of the file, which it locks: no lock file is left. On
// a system or file system without such locks it excludes nobody. It returns an error if
// another process takes longer than changeLockTimeout.
func BeginChange(name string) (end func(), err error) {
	if real, err := filepath.EvalSymlinks(name); err == nil { // as ReplaceFile does
		name = real
	}
	dir := filepath.Dir(name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if !filelock.Advisory {
		return func() {}, nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), changeLockTimeout)
	defer cancel()
	if _, err := filelock.Lock(ctx, d); err != nil {
		d.Close() //nolint:errcheck // only locked
		return nil, fmt.Errorf("another process has been changing %s for %v; nothing was changed: try again", name, changeLockTimeout)
	}
	return func() {
		filelock.Unlock(d)
		d.Close() //nolint:errcheck // only locked
	}, nil
}
