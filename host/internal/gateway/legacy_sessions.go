package gateway

import (
	"crypto/rand"
	"encoding/json"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/server"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// maxSessions bounds the stored legacy sessions. Beyond it the host drops some, whose
// clients then open new ones.
const maxSessions = 10_000

// sessionIdleTimeout is the time after which an unused legacy session ends.
const sessionIdleTimeout = 30 * time.Minute

// sessions holds the ids of the open legacy sessions. No other state depends on them,
// so requests without an id are answered too: simple clients skip initialize. A
// session that has ended, or that belongs to an earlier run of the host, gets status
// 404, after which clients open a new session.
type sessions struct {
	ids server.StatelessGeneratingSessionIdManager

	onEnd func(id string)

	mu   sync.Mutex
	open map[string]bool
}

// newSessions returns an empty set of sessions. onEnd is called with the id of each
// session that ends.
func newSessions(ended func(id string)) *sessions {
	return &sessions{onEnd: ended, open: map[string]bool{}}
}

// Generate opens a session and returns its id. At maxSessions it first ends another one.
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
		s.onEnd(evicted)
	}
	return id
}

// Validate reports whether the session with an id has ended or belongs to an earlier run.
// An empty id is valid. See server.SessionIdManager.
func (s *sessions) Validate(id string) (terminated bool, err error) {
	return id != "" && s.isClosed(id), nil
}

// isClosed reports whether a session is not open: it has ended or belongs to an
// earlier run.
func (s *sessions) isClosed(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.open[id]
}

// Terminate ends a session. It always permits that: notAllowed is false.
func (s *sessions) Terminate(id string) (notAllowed bool, err error) {
	s.mu.Lock()
	delete(s.open, id)
	s.mu.Unlock()
	s.onEnd(id)
	return false, nil
}

// clientRequests holds the requests to clients over HTTP that wait for answers.
type clientRequests struct {
	mu   sync.Mutex
	byID map[string]openRequest
}

// openRequest is a request of the host to a client that was not answered yet.
type openRequest struct {
	client string
	answer chan jsonrpc.Message // has room for one answer
}

// open registers a request to a client. It returns an unpredictable id and the channel for
// the answer. forget removes the request.
func (q *clientRequests) open(client string) (id string, answer <-chan jsonrpc.Message, forget func()) {
	id = "toolroom:" + rand.Text()
	w := openRequest{client, make(chan jsonrpc.Message, 1)}
	q.mu.Lock()
	if q.byID == nil {
		q.byID = map[string]openRequest{}
	}
	q.byID[id] = w
	q.mu.Unlock()
	return id, w.answer, func() {
		q.mu.Lock()
		delete(q.byID, id)
		q.mu.Unlock()
	}
}

// answer delivers an answer to the waiting request, if it comes from the client that
// was asked. It returns false otherwise.
func (q *clientRequests) answer(client string, m jsonrpc.Message) bool {
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
