package writeguard

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"github.com/toolroom-mcp/toolroom/internal/gitfile"
)

// maxIndexBytes bounds how much of a git index is read. The entries must be
// within it.
const maxIndexBytes = 256 << 20

// checkIndex removes a git index that cannot be parsed, or with entries that
// git would write into a repository's own directory. The user can rebuild the
// index with git reset.
func (rc *rootCheck) checkIndex(name string) {
	path := filepath.Join(rc.root, name)
	info, err := os.Lstat(path)
	if err != nil {
		return
	}
	now := stateWithoutContent(info, watchedFile{})
	for _, harmless := range []map[string]fileState{rc.harmlessIndexes, rc.runningIndexes} {
		if was, ok := harmless[name]; ok && rc.trustTimes && was.sameMetadata(&now) {
			return
		}
	}
	content, err := readRegularFile(path, maxIndexBytes)
	if err != nil && !errors.Is(err, syscall.EFBIG) {
		return
	}
	if escaping, ok := gitfile.IndexEscapes(content); escaping == "" && ok {
		if rc.runningIndexes != nil {
			rc.runningIndexes[name] = now
		} else {
			rc.harmlessIndexes[name] = now
		}
		return
	}
	rc.copies.store(path, content)
	rc.recordRevert(path, rc.withAccess(name, func() error { return rc.removeItem(name) }))
}
