package gateway

import (
	"sync"

	"github.com/mark3labs/mcp-go/server"
)

// maxSessions bounds the legacy sessions that are remembered; beyond it the
// host forgets some, whose clients open new ones.
const maxSessions = 10_000

// sessions are the ids of the legacy sessions that are open. Nothing else
// depends on one, so a request without an id is answered, too: simple clients
// skip initialize. One that was ended, or is of another run of the host, is
// refused with 404, at which clients open a new one.
type sessions struct {
	ids server.StatelessGeneratingSessionIdManager

	mu   sync.Mutex
	open map[string]bool
}

func newSessions() *sessions { return &sessions{open: map[string]bool{}} }

// Generate opens a session.
func (s *sessions) Generate() string {
	id := s.ids.Generate()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) >= maxSessions {
		for some := range s.open {
			delete(s.open, some)
			break
		}
	}
	s.open[id] = true
	return id
}

// Validate reports whether a session has ended.
func (s *sessions) Validate(id string) (terminated bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return id != "" && !s.open[id], nil
}

// Terminate ends a session.
func (s *sessions) Terminate(id string) (notAllowed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, id)
	return false, nil
}
