package core

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/agent"
	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// agentLogPrefix is the prefix of the journals of agents in the store.
const agentLogPrefix = "agents/"

// NewAgentID returns a new random id for an agent.
func NewAgentID() string { return "a" + strings.ToLower(rand.Text()[:9]) }

// IsAgentID reports whether id has the form of an agent's id.
func IsAgentID(id string) bool {
	return id != "" && len(id) <= 64 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}

// Journal returns the journal of the agent with an id. It returns NOT_FOUND without a
// store, and INVALID_PARAMS for a malformed id.
func (a *App) Journal(id string) (agent.Journal, error) {
	switch {
	case a.store == nil:
		return nil, toolerr.New(toolerr.NotFound, "no state directory, so no agent can be resumed; give --state")
	case !IsAgentID(id):
		return nil, toolerr.New(toolerr.InvalidParams, "%q is not a valid agent id", id)
	}
	return agentLog{a, agentLogPrefix + id}, nil
}

// claimTimeout is the time to wait for another process to release a claim.
const claimTimeout = 500 * time.Millisecond

// ClaimAgent locks an agent for this process until release is called or the process ends.
// It returns CONFLICT if another process on this machine runs the agent: two processes with
// one journal would corrupt it and make calls twice.
func (a *App) ClaimAgent(ctx context.Context, id string) (release func(), err error) {
	if release, err = a.claim(ctx, agentLogPrefix+id); toolerr.Is(err, toolerr.Locked) {
		return nil, toolerr.New(toolerr.Conflict, "another process runs agent %s; it can be resumed when that process has ended", id)
	}
	return release, err
}

// claim locks a name in the store for this machine, and waits at most claimTimeout for the
// lock. The lock ends with release or with this process. claim returns LOCKED if another
// process holds the lock.
func (a *App) claim(ctx context.Context, name string) (release func(), err error) {
	if a.store == nil || a.Config.State == "" {
		return func() {}, nil
	}
	locks := state.New(state.Config{Dir: a.Config.State, LockWait: claimTimeout})
	return locks.LockPath(ctx, filepath.Join(a.Config.State, name))
}

// agentStartPrefix is the prefix under which the store has the start parameters of agents,
// for as long as their journals.
const agentStartPrefix = "agent/"

// SaveAgentStart stores the start parameters of an agent, JSON of its caller, as long as
// its journal is kept. It returns NOT_FOUND without a store or for a malformed id.
func (a *App) SaveAgentStart(ctx context.Context, id string, parameters json.RawMessage) error {
	if a.store == nil || !IsAgentID(id) {
		return toolerr.New(toolerr.NotFound, "no saved agent %q", id)
	}
	logs, _ := retention()
	a.storeUsed.Store(true)
	_, err := a.store.Keys.Put(ctx, agentStartPrefix+id, parameters, store.Any, time.Now().Add(logs.Age))
	return err
}

// AgentStart returns the start parameters of an agent, or NOT_FOUND.
func (a *App) AgentStart(ctx context.Context, id string) (json.RawMessage, error) {
	if a.store == nil || !IsAgentID(id) {
		return nil, toolerr.New(toolerr.NotFound, "no saved agent %q", id)
	}
	e, err := a.store.Keys.Get(ctx, agentStartPrefix+id)
	return e.Value, err
}

// agentLog is a log whose entries may be longer than a record of the store: the first
// byte of each record gives its position in the entry. Read drops an incomplete entry
// of a host that was killed.
type agentLog struct {
	app  *App
	name string
}

const (
	wholeEntryMark = 'w'
	firstPieceMark = 'f'
	nextPieceMark  = 'n'
	lastPieceMark  = 'l'

	pieceSize = store.MaxBatchBytes - 1<<10
)

// Append writes an entry as one or more records, in one batch if it is short enough. After
// an error, the entry counts as not written.
func (j agentLog) Append(ctx context.Context, entry json.RawMessage) error {
	j.app.storeUsed.Store(true)
	if len(entry) <= pieceSize {
		_, err := j.app.store.Log.Append(ctx, j.name, append([]byte{wholeEntryMark}, entry...))
		return err
	}
	kind := byte(firstPieceMark)
	for rest := []byte(entry); ; kind = nextPieceMark {
		piece := rest[:min(len(rest), pieceSize)]
		if rest = rest[len(piece):]; len(rest) == 0 {
			kind = lastPieceMark
		}
		if _, err := j.app.store.Log.Append(ctx, j.name, append([]byte{kind}, piece...)); err != nil {
			return err
		}
		if kind == lastPieceMark {
			return nil
		}
	}
}

// Read returns all complete entries, the oldest first.
func (j agentLog) Read(ctx context.Context) ([]json.RawMessage, error) {
	var all []json.RawMessage
	var open []byte // nil: between two entries
	after := store.Cursor(0)
	for {
		page, err := j.app.store.Log.Read(ctx, j.name, after, store.MaxPageEntries)
		if err != nil || len(page) == 0 {
			return all, err
		}
		for _, r := range page {
			after = r.Cursor
			if len(r.Data) == 0 {
				continue
			}
			switch kind, data := r.Data[0], r.Data[1:]; {
			case kind == wholeEntryMark:
				open, all = nil, append(all, bytes.Clone(data))
			case kind == firstPieceMark:
				open = append([]byte{}, data...)
			case kind == nextPieceMark && open != nil:
				open = append(open, data...)
			case kind == lastPieceMark && open != nil:
				all, open = append(all, append(open, data...)), nil
			}
		}
	}
}
