package proc

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// maxRecorded bounds the hidden files of one root in a record.
const maxRecorded = 4000

// recordPath returns the path of a root's record in Config.RecordDir, "" if
// that is not set.
func (r *Runner) recordPath(root string) string {
	if r.config.RecordDir == "" {
		return ""
	}
	return filepath.Join(r.config.RecordDir, fmt.Sprintf("hidden-%x", sha256.Sum256([]byte(root)))[:40])
}

// loadRecord adds the hidden files that earlier servers found in the root, so
// that files moved since then are searched for. A line of the record has
// device, inode, whether a link led to the file, the day when it was last
// found, and the quoted path. It holds no contents.
func (s *secretScan) loadRecord(path string) {
	if s.recordLoaded = true; path == "" {
		return
	}
	s.savedRecord, _ = s.mergeRecord(path, s.hidden)
}

// mergeRecord adds to files the files of the record at path that are missing there,
// except forgotten ones. It returns the record's text. The error is that of reading the
// record; malformed lines are skipped.
func (s *secretScan) mergeRecord(path string, files map[fileID]*hiddenFile) (text string, err error) {
	record, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	for lines := bufio.NewScanner(strings.NewReader(string(record))); lines.Scan(); {
		var id fileID
		k := &hiddenFile{}
		if n, _ := fmt.Sscanf(lines.Text(), "%d %d %t %d %q", &id.dev, &id.ino, &k.viaLink, &k.lastSeenDay, &k.path); n != 5 {
			continue
		}
		if files[id] == nil && supervise.IsBeneath(s.root, k.path) && daysSince1970()-k.lastSeenDay < forgetDays && len(files) < maxRecorded {
			files[id] = k
		}
	}
	return string(record), nil
}

// saveRecord writes the hidden files to the record if they have changed. It
// keeps the entries of other servers. It ignores errors: later servers then
// only find fewer moved files.
func (s *secretScan) saveRecord(path string) {
	if path == "" || s.recordText(s.hidden) == s.savedRecord {
		return
	}
	all := make(map[fileID]*hiddenFile, len(s.hidden))
	for id, k := range s.hidden {
		all[id] = k
	}
	if _, err := s.mergeRecord(path, all); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return
	}
	text := s.recordText(all)
	temp, err := os.CreateTemp(filepath.Dir(path), "new-*")
	if err != nil {
		return
	}
	_, err = temp.WriteString(text)
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		os.Remove(temp.Name()) //nolint:errcheck // nothing else can be done
		return
	}
	s.savedRecord = s.recordText(s.hidden)
}

// recordText returns the text of a record with files: a sorted line for each,
// as loadRecord reads them.
func (s *secretScan) recordText(files map[fileID]*hiddenFile) string {
	lines := make([]string, 0, len(files))
	for id, k := range files {
		lines = append(lines, fmt.Sprintf("%d %d %t %d %q\n", id.dev, id.ino, k.viaLink, k.lastSeenDay, k.path))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// daysSince1970 returns the number of whole days since 1-1-1970 UTC.
func daysSince1970() int64 { return time.Now().Unix() / (24 * 60 * 60) }
