package writeguard

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/toolroom-mcp/toolroom/internal/gitfile"
)

// maxIndexBytes bounds how much of a git index is read. The entries must be
// within it.
const maxIndexBytes = 256 << 20

// checkIndex removes a git index that cannot be parsed, or with entries that
// git would write into a repository's own directory, and the indexes that refer
// to it. The user can rebuild the index with git reset.
func (rc *rootCheck) checkIndex(name string) {
	path := filepath.Join(rc.root, name)
	info, err := os.Lstat(path)
	if err != nil {
		return
	}
	now := stateWithoutContent(info, watchedFile{})
	for _, harmless := range []map[string]fileState{rc.harmlessIndexes, rc.runningIndexes} {
		if was, ok := harmless[name]; ok && rc.trustTimes && was.hasSameMetadata(&now) {
			return
		}
	}
	content, err := readRegularFile(path, maxIndexBytes)
	if err != nil && !errors.Is(err, syscall.EFBIG) {
		return
	}
	if escaping, ok := gitfile.EscapingIndexPath(content); escaping == "" && ok {
		if rc.runningIndexes != nil {
			rc.runningIndexes[name] = now
		} else {
			rc.harmlessIndexes[name] = now
		}
		return
	}
	rc.removeIndex(name, content)
	hash, ok := strings.CutPrefix(filepath.Base(name), "sharedindex.")
	shared, err := hex.DecodeString(hash)
	if !ok || err != nil || len(shared) == 0 {
		return
	}
	for _, other := range rc.found.indexes { // git fails with an index whose shared index is gone
		if other == name || filepath.Dir(other) != filepath.Dir(name) {
			continue
		}
		content, err := readRegularFile(filepath.Join(rc.root, other), maxIndexBytes)
		if (err == nil || errors.Is(err, syscall.EFBIG)) && bytes.Contains(content, shared) {
			rc.removeIndex(other, content)
		}
	}
}

// removeIndex removes the index name, and stores content, its content, for the
// user.
func (rc *rootCheck) removeIndex(name string, content []byte) {
	path := filepath.Join(rc.root, name)
	rc.copies.store(path, content)
	rc.recordRevert(path, rc.withAccess(name, func() error { return rc.removeItem(name) }))
}
