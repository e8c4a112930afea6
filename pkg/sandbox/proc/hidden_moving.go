package proc

import (
	"os"
	"path/filepath"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// mostStarts bounds the attempts to start one command.
const mostStarts = 10

// mostPassed bounds the descriptors of moved files that are passed to the
// supervisor.
const mostPassed = 16

// moving records the hidden files that moved while a command was being
// started.
type moving struct {
	starts int
	files  map[fileID]bool
}

// moved records that path no longer led to its file when the supervisor was to
// mask it. It returns a CONFLICT error after mostStarts attempts.
func (m *moving) moved(s *spec, path string) error {
	if m.starts++; m.starts > mostStarts {
		return errMoving(path)
	}
	for _, p := range s.Pinned {
		if p.Path == path {
			if m.files == nil {
				m.files = map[fileID]bool{}
			}
			m.files[fileID{p.Dev, p.Ino}] = true
		}
	}
	return nil
}

// follow duplicates the descriptor of a hidden file that has moved before, so
// that the supervisor can find it under any name.
func (s *spec) follow(id fileID, k *known, m *moving) {
	if !m.files[id] || k.file == nil || s.followed[id] != nil || len(s.followed) >= mostPassed {
		return
	}
	if f := duplicate(k.file); f != nil {
		if s.followed == nil {
			s.followed = map[fileID]*os.File{}
		}
		s.followed[id] = f
	}
}

// withFollowed appends the duplicated descriptors to the supervisor's files.
func (s *spec) withFollowed(files []*os.File) []*os.File {
	for i := range s.Pinned {
		p := &s.Pinned[i]
		if f := s.followed[fileID{p.Dev, p.Ino}]; f != nil && len(files) < supervise.MaxFiles {
			files = append(files, f)
			s.Held++
			p.Held = s.Held
		}
	}
	return files
}

func errMoving(path string) error {
	return toolerr.New(toolerr.Conflict, "the command was not started: another program keeps moving what commands must not read, in %s: try again",
		pathname.Escape(filepath.Dir(path)))
}
