package core

import (
	"context"
	"crypto/rand"
	"sync"
	"sync/atomic"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// signIns holds the running sign-ins, at most one for each server. Calls of all clients
// wait for the same sign-in.
type signIns struct {
	mu        sync.Mutex
	running   map[string]*signIn
	completed map[string]int64 // value of count after the last successful sign-in, by server

	count atomic.Int64 // successful sign-ins to all servers
}

// signIn is a running sign-in to a server. It does not end with the call that began it: many
// clients give up a call after a minute, when the user may still be at the provider.
type signIn struct {
	id     string   // of its questions
	scopes []string // that it adds

	offered chan struct{} // closed when link, refuse and prolong are valid
	link    string        // address at the provider that the user opens
	refuse  func()        // ends the sign-in because the link is not opened
	prolong func()        // has the time of the sign-in begin again

	done chan struct{}
	err  error // valid after done is closed

	mu        sync.Mutex
	questions map[string]*linkQuestion // by client
	legacy    bool                     // a client whose protocol version has elicitationId was asked
	followed  bool                     // a user has opened the link, or may do so after the call has ended
}

// linkQuestion is the question of a client whether its user opens the link.
type linkQuestion struct {
	asker *call.Request // whose client it is
	ended chan struct{} // closed when the client has answered or cannot do so any more

	// Valid after ended is closed.
	answered bool // the client has answered
	refused  bool // the link is not opened
}

// joinOrBegin returns the running sign-in to a server, or a new one. first is true for a
// new one: the caller has to set its scopes, to run it and to call finish. It returns nil if
// a sign-in to the server was completed since count was before.
func (s *signIns) joinOrBegin(server string, before int64) (one *signIn, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.completed[server] > before {
		return nil, false
	}
	if one, ok := s.running[server]; ok {
		return one, false
	}
	if s.running == nil {
		s.running, s.completed = map[string]*signIn{}, map[string]int64{}
	}
	one = &signIn{id: rand.Text(), offered: make(chan struct{}), done: make(chan struct{}), questions: map[string]*linkQuestion{}}
	s.running[server] = one
	return one, true
}

// finish ends a sign-in and gives err, nil after success, to all calls that wait for it.
func (s *signIns) finish(server string, ended *signIn, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, server)
	if err == nil {
		s.completed[server] = s.count.Add(1)
	}
	ended.err = err
	close(ended.done)
}

// offer makes the link known to the calls that wait. refuse ends the sign-in; prolong has its
// time begin again, which happens whenever a client is asked.
func (one *signIn) offer(link string, refuse, prolong func()) {
	one.link, one.refuse, one.prolong = link, refuse, prolong
	close(one.offered)
}

// hasAskedLegacyClient reports whether a client whose protocol version has elicitationId was
// asked to open the link.
func (one *signIn) hasAskedLegacyClient() bool {
	one.mu.Lock()
	defer one.mu.Unlock()
	return one.legacy
}

// askClient has the client of a call open the link. A client is asked once, however many of
// its calls wait, and again after the call that asked it has ended. It returns false if the
// client has refused; then the sign-in ends, unless another user has opened the link or may
// still do so. It returns true if the link was opened, or the sign-in or ctx
// has ended.
func (one *signIn) askClient(ctx context.Context, req *call.Request, server string) bool {
	select {
	case <-one.offered:
	case <-one.done:
		return true
	case <-ctx.Done():
		return true
	}
	client := clientOf(req)
	for {
		question, first := one.question(client, req)
		if first {
			return one.ask(ctx, server, client, question)
		}
		select {
		case <-question.ended:
			if question.answered {
				return !question.refused
			}
		case <-one.done:
			return true
		case <-ctx.Done():
			return true
		}
	}
}

// clientOf returns a key for the client of a call.
func clientOf(req *call.Request) string { return req.Caller.EntryPoint + "\n" + req.Caller.ID }

// question returns the question of a client. first is true for a new one: the caller has to
// ask the client.
func (one *signIn) question(client string, req *call.Request) (question *linkQuestion, first bool) {
	one.mu.Lock()
	defer one.mu.Unlock()
	if question, ok := one.questions[client]; ok {
		return question, false
	}
	question = &linkQuestion{asker: req, ended: make(chan struct{})}
	one.questions[client] = question
	one.prolong()
	one.legacy = one.legacy || !req.Caller.Modern
	return question, true
}

// forgetQuestion has the next call of the client ask again, if req has asked and ends while the
// sign-in runs: the user may have closed the page of the provider.
func (one *signIn) forgetQuestion(req *call.Request) {
	one.mu.Lock()
	defer one.mu.Unlock()
	if question := one.questions[clientOf(req)]; question != nil && question.asker == req {
		delete(one.questions, clientOf(req))
	}
}

// ask asks a client whether its user opens the link. The end of the sign-in and of ctx end the
// question. See askClient for the result.
func (one *signIn) ask(ctx context.Context, server, client string, question *linkQuestion) bool {
	asking, end := context.WithCancel(call.WithHostQuestion(ctx))
	defer end()
	answered := make(chan bool, 1)
	go func() {
		req := question.asker
		answered <- acceptedLink(req.Ask(asking, "elicitation/create", signInQuestion(req, server, one.scopes, one.id, one.link)))
	}()
	var opened bool
	select {
	case opened = <-answered:
	case <-one.done:
		end()
		<-answered
		opened = true
	case <-ctx.Done():
		end()
		<-answered
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	defer close(question.ended)
	if !opened {
		delete(one.questions, client)
	}
	if !opened && ctx.Err() != nil {
		one.followed = true
		return true
	}
	question.answered, question.refused, one.followed = true, !opened, one.followed || opened
	if len(one.questions) == 0 && !one.followed {
		one.refuse()
	}
	return opened
}
