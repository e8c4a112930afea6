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

// agentLogs is where the journals of agents are in the store.
const agentLogs = "agents/"

// NewAgentID makes a name for an agent's journal.
func NewAgentID() string { return "a" + strings.ToLower(rand.Text()[:9]) }

// IsAgentID reports whether a name can be that of an agent's journal.
func IsAgentID(id string) bool {
	return id != "" && len(id) <= 64 && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789_-") == ""
}

// Journal is the journal of an agent, in the store.
func (a *App) Journal(id string) (agent.Journal, error) {
	switch {
	case a.store == nil:
		return nil, toolerr.New(toolerr.NotFound, "no state directory, so no agent can be resumed; give --state")
	case !IsAgentID(id):
		return nil, toolerr.New(toolerr.InvalidParams, "%q is not a valid agent id", id)
	}
	return agentLog{a, agentLogs + id}, nil
}

// claimTime is how long it is waited for another process to let go.
const claimTime = 500 * time.Millisecond

// ClaimAgent keeps others on this machine from working on an agent, until release is
// called or this process is gone: two that write one journal make no sense of it, and
// would make calls twice.
func (a *App) ClaimAgent(ctx context.Context, id string) (release func(), err error) {
	if release, err = a.claim(ctx, agentLogs+id); toolerr.Is(err, toolerr.Locked) {
		return nil, toolerr.New(toolerr.Conflict, "another process runs agent %s; it can be resumed when that process has ended", id)
	}
	return release, err
}

// claim keeps others on this machine from what has a name in the store, until
// release is called or this process is gone. LOCKED if one has it.
func (a *App) claim(ctx context.Context, name string) (release func(), err error) {
	if a.store == nil || a.Config.State == "" {
		return func() {}, nil
	}
	locks := state.New(state.Config{Dir: a.Config.State, LockWait: claimTime})
	return locks.LockPath(ctx, filepath.Join(a.Config.State, name))
}

// keptAgents is where the store has how agents were begun, for as long as their
// journals are kept.
const keptAgents = "agent/"

// KeepAgent keeps how an agent was begun.
func (a *App) KeepAgent(ctx context.Context, id string, how json.RawMessage) error {
	if a.store == nil || !IsAgentID(id) {
		return toolerr.New(toolerr.NotFound, "no saved agent %q", id)
	}
	logs, _ := keep()
	a.used.Store(true)
	_, err := a.store.Keys.Put(ctx, keptAgents+id, how, store.Any, time.Now().Add(logs.Age))
	return err
}

// KeptAgent is how an agent was begun, or NOT_FOUND.
func (a *App) KeptAgent(ctx context.Context, id string) (json.RawMessage, error) {
	if a.store == nil || !IsAgentID(id) {
		return nil, toolerr.New(toolerr.NotFound, "no saved agent %q", id)
	}
	e, err := a.store.Keys.Get(ctx, keptAgents+id)
	return e.Value, err
}

// agentLog is a log whose entries may be longer than a record: the first byte of each
// record says what it is of its entry. What a killed host wrote of an entry, and not to
// its end, is left out.
type agentLog struct {
	app  *App
	name string
}

const (
	wholeEntry = 'w'
	firstPiece = 'f'
	nextPiece  = 'n'
	lastPiece  = 'l'

	pieceSize = store.MaxBatch - 1<<10
)

// Append writes an entry.
func (j agentLog) Append(ctx context.Context, entry json.RawMessage) error {
	j.app.used.Store(true)
	if len(entry) <= pieceSize {
		_, err := j.app.store.Log.Append(ctx, j.name, append([]byte{wholeEntry}, entry...))
		return err
	}
	kind := byte(firstPiece)
	for rest := []byte(entry); ; kind = nextPiece {
		piece := rest[:min(len(rest), pieceSize)]
		if rest = rest[len(piece):]; len(rest) == 0 {
			kind = lastPiece
		}
		if _, err := j.app.store.Log.Append(ctx, j.name, append([]byte{kind}, piece...)); err != nil {
			return err
		}
		if kind == lastPiece {
			return nil
		}
	}
}

// Read returns all entries.
func (j agentLog) Read(ctx context.Context) ([]json.RawMessage, error) {
	var all []json.RawMessage
	var open []byte // nil: no entry is begun
	after := store.Cursor(0)
	for {
		page, err := j.app.store.Log.Read(ctx, j.name, after, store.MaxPage)
		if err != nil || len(page) == 0 {
			return all, err
		}
		for _, r := range page {
			after = r.Cursor
			if len(r.Data) == 0 {
				continue
			}
			switch kind, data := r.Data[0], r.Data[1:]; {
			case kind == wholeEntry:
				open, all = nil, append(all, bytes.Clone(data))
			case kind == firstPiece:
				open = append([]byte{}, data...)
			case kind == nextPiece && open != nil:
				open = append(open, data...)
			case kind == lastPiece && open != nil:
				all, open = append(all, append(open, data...)), nil
			}
		}
	}
}
