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

// mostRecorded bounds the hidden files of one root that later servers are told of.
const mostRecorded = 4000

// recordPath is the file in Config.RecordDir for a root, "" without that.
func (r *Runner) recordPath(root string) string {
	if r.config.RecordDir == "" {
		return ""
	}
	return filepath.Join(r.config.RecordDir, fmt.Sprintf("hidden-%x", sha256.Sum256([]byte(root)))[:40])
}

// load adds the hidden files that earlier servers found in the root, so that one that
// was moved since is looked for. The record has no contents: a line is device, inode,
// whether a link led there, the day and the quoted path.
func (s *search) load(path string) {
	if s.loaded = true; path == "" {
		return
	}
	s.saved, _ = s.merge(path, s.hidden)
}

// merge adds to files those of the record that are not among them.
func (s *search) merge(path string, files map[fileID]*known) (text string, err error) {
	all, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	for lines := bufio.NewScanner(strings.NewReader(string(all))); lines.Scan(); {
		var id fileID
		k := &known{}
		if n, _ := fmt.Sscanf(lines.Text(), "%d %d %t %d %q", &id.dev, &id.ino, &k.linked, &k.seen, &k.path); n != 5 {
			continue
		}
		if files[id] == nil && supervise.Beneath(s.root, k.path) && today()-k.seen < forgetDays && len(files) < mostRecorded {
			files[id] = k
		}
	}
	return string(all), nil
}

// save records the hidden files if they are not the recorded ones. Entries of other
// servers stay. It fails silently: later servers only find fewer moved files.
func (s *search) save(path string) {
	if path == "" || s.record(s.hidden) == s.saved {
		return
	}
	all := make(map[fileID]*known, len(s.hidden))
	for id, k := range s.hidden {
		all[id] = k
	}
	if _, err := s.merge(path, all); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return
	}
	text := s.record(all)
	temp, err := os.CreateTemp(filepath.Dir(path), "new-*")
	if err != nil {
		return
	}
	_, err = temp.WriteString(text)
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		os.Remove(temp.Name()) //nolint:errcheck // there is nothing more to do
		return
	}
	s.saved = s.record(s.hidden)
}

// record is the text of a record.
func (s *search) record(files map[fileID]*known) string {
	lines := make([]string, 0, len(files))
	for id, k := range files {
		lines = append(lines, fmt.Sprintf("%d %d %t %d %q\n", id.dev, id.ino, k.linked, k.seen, k.path))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// today counts days since 1970.
func today() int64 { return time.Now().Unix() / (24 * 60 * 60) }
