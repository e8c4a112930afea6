package gateway

import (
	"crypto/rand"
	"encoding/json"
	"sync"

	"github.com/mark3labs/mcp-go/server"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
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

	ended func(id string)

	mu   sync.Mutex
	open map[string]bool
}

func newSessions(ended func(id string)) *sessions {
	return &sessions{ended: ended, open: map[string]bool{}}
}

// Generate opens a session.
func (s *sessions) Generate() string {
	id := s.ids.Generate()
	s.mu.Lock()
	var evicted string
	if len(s.open) >= maxSessions {
		for some := range s.open {
			delete(s.open, some)
			evicted = some
			break
		}
	}
	s.open[id] = true
	s.mu.Unlock()
	if evicted != "" {
		s.ended(evicted)
	}
	return id
}

// Validate reports whether a session has ended.
func (s *sessions) Validate(id string) (terminated bool, err error) {
	return id != "" && s.over(id), nil
}

// over reports whether a session is not open: it has ended, or is of another run.
func (s *sessions) over(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.open[id]
}

// Terminate ends a session.
func (s *sessions) Terminate(id string) (notAllowed bool, err error) {
	s.mu.Lock()
	delete(s.open, id)
	s.mu.Unlock()
	s.ended(id)
	return false, nil
}

// questions are the requests sent to clients over HTTP that wait for answers.
type questions struct {
	mu   sync.Mutex
	byID map[string]waiting
}

type waiting struct {
	client string
	answer chan jsonrpc.Message // holds one
}

// open makes room for an answer of a client's. The id cannot be guessed.
func (q *questions) open(client string) (id string, answer <-chan jsonrpc.Message, forget func()) {
	id = "toolroom:" + rand.Text()
	w := waiting{client, make(chan jsonrpc.Message, 1)}
	q.mu.Lock()
	if q.byID == nil {
		q.byID = map[string]waiting{}
	}
	q.byID[id] = w
	q.mu.Unlock()
	return id, w.answer, func() {
		q.mu.Lock()
		delete(q.byID, id)
		q.mu.Unlock()
	}
}

// answer hands an answer to who waits for it, if it is from who was asked.
func (q *questions) answer(client string, m jsonrpc.Message) bool {
	var id string
	if json.Unmarshal(m.ID, &id) != nil {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	w, ok := q.byID[id]
	if !ok || w.client != client {
		return false
	}
	delete(q.byID, id)
	w.answer <- m
	return true
}
