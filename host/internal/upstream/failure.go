package upstream

import (
	"errors"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// The stages of a failure.
const (
	StageStart  = "start"
	StageRun    = "run"
	StageHealth = "health"
)

// Failure is the last failure of a server.
type Failure struct {
	Stage   string    `json:"stage"` // StageStart, StageRun or StageHealth
	Message string    `json:"message"`
	Time    time.Time `json:"time"`

	code   toolerr.Code
	auth   bool // of the Authorizer
	signIn bool // a sign-in resolves it
	err    error
}

// IsOfToken reports whether the server was not asked because it has no valid access token.
func (f *Failure) IsOfToken() bool { return f != nil && f.auth }

// newFailure returns the Failure for an error in a stage at the current time.
func newFailure(stage string, err error) *Failure {
	f := &Failure{Stage: stage, Message: err.Error(), Time: time.Now(), code: toolerr.CodeOf(err), err: err}
	var refused *authError
	if errors.As(err, &refused) {
		f.auth, f.signIn = true, refused.signIn
	}
	return f
}

// recordFailure records a failure and schedules the next start. It returns true if the
// server is now offline. The caller holds s.mu.
func (s *Server) recordFailure(stage string, err error) (offline bool) {
	s.last = newFailure(stage, err)
	if isHostLoop(err) {
		s.keepOffline(err)
		s.unreported = true
		return true
	}
	if s.conn != nil && s.conn.isAlive() {
		return false // it was to be replaced, and still runs
	}
	hasWorked := stage == StageRun && (s.conn.answeredCall.Load() || time.Since(s.conn.since) > settledAfter)
	s.unreported = !s.closed && (hasWorked || s.fails == 0)
	if hasWorked {
		s.fails = 0
		s.nextStart = time.Time{}
		s.scheduleStart(0)
		return false
	}
	s.fails++
	if s.fails >= maxTries {
		s.nextStart = time.Now().Add(callStartInterval)
		s.scheduleStart(s.cfg.RetryEvery)
		return s.fails == maxTries
	}
	backoff := firstBackoff << (s.fails - 1)
	s.nextStart = time.Now().Add(backoff)
	s.scheduleStart(backoff)
	return false
}

// reportFailure passes a failure that recordFailure marked to onFailure: the first of
// several in succession, because the next tries mostly fail for the same reason.
func (s *Server) reportFailure() {
	s.mu.Lock()
	failure, unreported := s.last, s.unreported
	s.unreported = false
	s.mu.Unlock()
	if unreported && s.onFailure != nil {
		s.onFailure(failure.Message)
	}
}
