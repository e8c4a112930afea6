package proc

import (
	"os"
	"syscall"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/fileinfo"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/secret"
)

// cachedKeyCheck is the cached answer to the question whether a file begins as a
// private key.
type cachedKeyCheck struct {
	id      fileID
	changed time.Time // the file's time of change
	size    int64
	secret  bool // it begins as a private key
}

// uncheckedKey returns a cachedKeyCheck with the identity, time of change and size of
// a file. secret is false, because it reads no content.
func uncheckedKey(info os.FileInfo) cachedKeyCheck {
	id, _ := fileIDOf(info)
	return cachedKeyCheck{id: id, changed: fileinfo.ChangeTime(info), size: info.Size()}
}

// isPrivateKeyFile reports whether the file at path begins as a private key
// (isKey), and returns that file's info. For an unchanged file it takes the
// result from earlier instead of reading it, and stores the result in checks.
// An error means that the file is gone.
func isPrivateKeyFile(path string, earlier, checks map[string]cachedKeyCheck) (info os.FileInfo, isKey bool, err error) {
	info, err = os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return info, false, err
	}
	now, had := uncheckedKey(info), earlier[path]
	now.secret = had.secret
	if now != had || time.Since(now.changed) <= supervise.SettledAfter {
		if info, isKey, err = beginsAsKey(path); err != nil {
			return info, false, err
		}
		now = uncheckedKey(info) // perhaps another file than before
		now.secret = isKey
	}
	checks[path] = now
	return info, now.secret, nil
}

// beginsAsKey reports whether the file at path begins as a private key (isKey),
// and returns that file's info. An error means that the file is gone. A file
// that cannot be opened counts as a key: a command might be able to open it,
// after a chmod for example.
func beginsAsKey(path string) (info os.FileInfo, isKey bool, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		if isGone(err) {
			return nil, false, err
		}
		info, err = os.Lstat(path)
		return info, err == nil && info.Mode().IsRegular(), err
	}
	defer f.Close()
	info, err = f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return info, false, err
	}
	isKey, err = secret.ReadPrivateKey(f)
	return info, isKey || err != nil, nil
}
