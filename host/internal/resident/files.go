package resident

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/control"
	"github.com/toolroom-mcp/toolroom/internal/filelock"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// Beside the socket NAME.sock are NAME.sock.lock, see lock, and NAME.sock.log, the standard
// error of the last process.
const (
	socketSuffix = ".sock"
	lockSuffix   = ".lock"
	logSuffix    = ".log"
)

// unusedFilesLifetime is the lifetime of the files of a version that does not run.
const unusedFilesLifetime = 24 * time.Hour

// lock takes the lock that a process holds while it starts or ends, and waits for it until
// ctx ends.
func lock(ctx context.Context, dir, name string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for {
		f, err := os.OpenFile(filepath.Join(dir, name+lockSuffix), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if _, err := filelock.Lock(ctx, f); err != nil {
			f.Close() //nolint:errcheck // only locked
			return nil, err
		}
		unlock = func() {
			filelock.Unlock(f)
			f.Close() //nolint:errcheck // only locked
		}
		if isAtItsName(f) {
			return unlock, nil
		}
		unlock() // removeUnused has removed it meanwhile
	}
}

// turnCheckInterval is the interval at which awaitTurn looks for another process.
const turnCheckInterval = 2 * time.Second

// awaitTurn waits until no process accepts connections at a socket, and returns while it
// holds the lock. It returns an error if ctx ends first.
func awaitTurn(ctx context.Context, dir, name string) (unlock func(), err error) {
	for {
		unlock, err := lock(ctx, dir, name)
		if err != nil {
			return nil, err
		}
		conn, err := control.Dial(ctx, filepath.Join(dir, name))
		switch {
		case err == nil:
			conn.Close() //nolint:errcheck // nothing was said
		case !mayReplaceListener(err):
			return unlock, nil
		}
		unlock()
		select {
		case <-time.After(turnCheckInterval):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// mayReplaceListener reports whether a process may listen at a socket that could not be connected: it
// accepts no connection in time, or this process has no free descriptor.
func mayReplaceListener(err error) bool {
	var fault net.Error
	return errors.As(err, &fault) && fault.Timeout() || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// isAtItsName reports whether the name of an open file still leads to it.
func isAtItsName(f *os.File) bool {
	opened, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(f.Name())
	return err == nil && os.SameFile(opened, named)
}

// replaceOlder tells the processes of other versions of the program that they end with
// their last host, and removes the files of versions that no longer run. name is the
// socket of this process.
func replaceOlder(ctx context.Context, dir, name, program string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	seen := map[string]bool{name: true}
	for _, entry := range entries {
		other := strings.TrimSuffix(strings.TrimSuffix(entry.Name(), lockSuffix), logSuffix)
		if seen[other] || filepath.Ext(other) != socketSuffix {
			continue
		}
		seen[other] = true
		if !requestDrain(ctx, filepath.Join(dir, other), program) {
			removeUnused(dir, other)
		}
	}
}

// drainTimeout is the longest time to wait for the answer of another process.
const drainTimeout = 2 * time.Second

// requestDrain sends methodDrain to a socket, and waits at most drainTimeout for the answer. It
// returns false if no process accepts connections.
func requestDrain(ctx context.Context, socket, program string) bool {
	conn, err := control.Dial(ctx, socket)
	if err != nil {
		return false
	}
	defer conn.Close()                                                           //nolint:errcheck // all is said
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })() //nolint:errcheck // the use tells
	params, err := jsonrpc.Marshal(map[string]string{"program": program})
	if err == nil && conn.SetDeadline(time.Now().Add(drainTimeout)) == nil {
		conn.Write(append(jsonrpc.AppendRequest(nil, []byte("1"), methodDrain, params), '\n')) //nolint:errcheck // then it ends later
		jsonrpc.NewReader(conn, 0).ReadLine()                                                  //nolint:errcheck // then it ends later
	}
	return true
}

// removeUnused removes the files of a socket that no process has used for unusedFilesLifetime and
// that no process is about to use.
func removeUnused(dir, name string) {
	path := filepath.Join(dir, name)
	for _, suffix := range []string{"", lockSuffix, logSuffix} {
		info, err := os.Stat(path + suffix)
		if err != nil && !errors.Is(err, fs.ErrNotExist) || err == nil && time.Since(info.ModTime()) < unusedFilesLifetime {
			return
		}
	}
	f, err := os.OpenFile(path+lockSuffix, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	defer f.Close() //nolint:errcheck // only locked
	if locked, err := filelock.TryLock(f); err != nil || !locked {
		return
	}
	defer filelock.Unlock(f)
	for _, suffix := range []string{"", logSuffix, lockSuffix} { // the lock last
		os.Remove(path + suffix) //nolint:errcheck // the next process tries again
	}
}
