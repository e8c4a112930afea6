package proc

import (
	"os"
	"path/filepath"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/fileinfo"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// maxStartAttempts bounds the attempts to start one command.
const maxStartAttempts = 10

// maxPassedDescriptors bounds the descriptors of moved files that are passed to
// the supervisor.
const maxPassedDescriptors = 16

// movedFiles records the hidden files that moved while a command was being
// started.
type movedFiles struct {
	attempts int             // failed attempts to start the command
	ids      map[fileID]bool // the files that moved
	paths    map[string]bool // their paths: another file may be there at the next attempt
}

// add records that path, one of the paths in s.Pinned, no longer led to its
// file when the supervisor was to mask it. It returns a CONFLICT error after
// maxStartAttempts attempts.
func (m *movedFiles) add(s *spec, path string) error {
	if m.attempts++; m.attempts > maxStartAttempts {
		return errMovedTooFast(path)
	}
	if m.ids == nil {
		m.ids, m.paths = map[fileID]bool{}, map[string]bool{}
	}
	m.paths[path] = true
	for _, p := range s.Pinned {
		if p.Path == path {
			m.ids[fileID{p.Dev, p.Ino}] = true
		}
	}
	return nil
}

// passDescriptor adds a duplicate of the descriptor of a hidden file to
// s.movedFiles, if the file or its path is in m, so that the supervisor can find it
// under any name, or see that it was removed.
func (s *spec) passDescriptor(id fileID, k *hiddenFile, m *movedFiles) {
	if !m.ids[id] && !m.paths[k.path] || k.descriptor == nil || s.movedFiles[id] != nil || len(s.movedFiles) >= maxPassedDescriptors {
		return
	}
	if f := duplicateFile(k.descriptor); f != nil {
		if s.movedFiles == nil {
			s.movedFiles = map[fileID]*os.File{}
		}
		s.movedFiles[id] = f
	}
}

// recordLinkCount records how many hard links a hidden file has. If it is not at its path, and
// was not there at the last scan, it may have several.
func (s *spec) recordLinkCount(id fileID, k *hiddenFile) {
	if k.notFound {
		return
	}
	links := k.links
	if links == 0 {
		links = 2
	}
	if k.descriptor != nil {
		if info, err := k.descriptor.Stat(); err == nil {
			links = linksOf(info)
		}
	} else if info, err := os.Lstat(k.path); err == nil {
		if now, ok := fileIDOf(info); ok && now == id {
			links = linksOf(info)
		}
	}
	if links < 2 {
		return
	}
	if s.hiddenLinks == nil {
		s.hiddenLinks = map[fileID]int{}
	}
	s.hiddenLinks[id] = int(links)
}

// linksOf returns the number of hard links of a file; 1 for a directory.
func linksOf(info os.FileInfo) uint64 {
	if !info.Mode().IsRegular() {
		return 1
	}
	return fileinfo.Links(info)
}

// appendMoved appends the descriptors of s.movedFiles to files, and sets their
// numbers in s.Pinned. A descriptor leads to one name of a file only, so files with
// several hard links get none: they are looked up again.
func (s *spec) appendMoved(files []*os.File) []*os.File {
	for i := range s.Pinned {
		p := &s.Pinned[i]
		id := fileID{p.Dev, p.Ino}
		if f := s.movedFiles[id]; f != nil && s.severalLinks[id] < 2 && len(files) < supervise.MaxFiles {
			files = append(files, f)
			s.Held++
			p.Held = s.Held
		}
	}
	return files
}

// errMovedTooFast returns the CONFLICT error for a file that is moved too fast to be
// masked.
func errMovedTooFast(path string) error {
	return toolerr.New(toolerr.Conflict, "the command was not started: another program keeps moving files that commands must not read, in %s; try again",
		pathname.Escape(filepath.Dir(path)))
}
