// Package conversation stores conversations with models: each is a session with an id, a name,
// and its messages in order. Sessions are in the store, so they outlive the host and are
// available to every host with the same store.
//
//	s, err := book.Create(ctx, conversation.Session{Name: "the slow test"})
//	history, err := book.Messages(ctx, s.ID)
//	// ask a model
//	s, err = book.Append(ctx, s.ID, question, answer)
//
// The messages of one Append are stored together or not at all, without others between them:
// append a whole turn with the results of its calls, or, whenever each call has its result, the
// part that exists (AppendPart; RemovePart removes it). Concurrent appends are all kept, in some
// order. An append to a session that is being deleted returns NOT_FOUND.
//
// A session without an append for Age is removed. A session has at most Size bytes. Beyond Most
// sessions, the least recently used ones are removed, and OnRemoved is called for each. The host
// trims the oldest records of its store (30 days, 256 MiB): if a session lost some, its
// history begins with the first remaining message of the user.
package conversation

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A Session describes a conversation, without its messages.
type Session struct {
	ID       string    `json:"id"`
	Name     string    `json:"name,omitempty"`
	Model    string    `json:"model,omitempty"`  // last used model
	Parent   string    `json:"parent,omitempty"` // id of the session from which it was forked
	Created  time.Time `json:"created"`
	Updated  time.Time `json:"updated"` // time of the last append or rename
	Expires  time.Time `json:"expires"` // when it is deleted if nothing is appended
	Turns    int       `json:"turns"`   // number of appends
	Messages int       `json:"messages"`
	Bytes    int64     `json:"bytes"` // of all messages
}

// storedSession is a session as stored. Messages after the cursor are not counted yet.
type storedSession struct {
	Session
	Cursor store.Cursor `json:"cursor"`
}

// A Store holds all sessions. It is safe for concurrent use, also by several
// hosts.
type Store struct {
	Keys  store.Keys
	Log   store.Log
	Blobs store.Blobs // for turns that are too long for a record
	Now   func() time.Time

	Age  time.Duration // 0: 30 days
	Size int64         // bytes of a session; 0: 64 MiB
	Most int           // sessions; 0: 1000

	// OnRemoved is called with a session that was removed to make space for a new one,
	// and the limit of sessions. It may be nil.
	OnRemoved func(s Session, most int)
}

// Limits of a session.
const (
	maxName     = 200
	maxTries    = 1000 // attempts of a change while other processes change the session
	maxInRecord = 512 << 10
)

// now returns the current time in UTC.
func (b *Store) now() time.Time {
	if b.Now != nil {
		return b.Now().UTC()
	}
	return time.Now().UTC()
}

// age returns how long an unused session is kept: Age, or 30 days if Age is 0.
func (b *Store) age() time.Duration { return cmp.Or(b.Age, 30*24*time.Hour) }

// keyOf returns the key of a session.
func keyOf(id string) string { return "session/" + id }

// Create creates a session with the name, model and parent of s, and returns it with its id.
// It may remove old sessions first. It returns INVALID_PARAMS for a name that is too long or
// not one line.
func (b *Store) Create(ctx context.Context, s Session) (*Session, error) {
	if err := checkName(s.Name); err != nil {
		return nil, err
	}
	if err := b.removeExcess(ctx); err != nil {
		return nil, err
	}
	now := b.now()
	made := storedSession{Session: Session{
		ID: "sess_" + strings.ToLower(rand.Text()), Name: s.Name, Model: s.Model, Parent: s.Parent,
		Created: now, Updated: now, Expires: now.Add(b.age()),
	}}
	err := b.write(ctx, &made, store.Absent)
	return &made.Session, err
}

// removeExcess deletes the least recently used sessions until there is room for one more,
// and calls OnRemoved for each. It returns the first error.
func (b *Store) removeExcess(ctx context.Context) error {
	all, err := b.List(ctx)
	if err != nil {
		return err
	}
	most := max(cmp.Or(b.Most, 1000), 1)
	for i := most - 1; i < len(all); i++ {
		err := b.Delete(ctx, all[i].ID)
		switch {
		case toolerr.Is(err, toolerr.NotFound):
		case err != nil:
			return err
		case b.OnRemoved != nil:
			b.OnRemoved(all[i], most)
		}
	}
	return nil
}

// checkName returns INVALID_PARAMS if a name is not one line of at most maxName bytes.
func checkName(name string) error {
	if len(name) > maxName || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return toolerr.New(toolerr.InvalidParams, "the name of a session is one line of at most %d bytes", maxName).With("param", "name")
	}
	return nil
}

// write writes the record of a session if its version is still was. It returns CONFLICT
// if the record has changed.
func (b *Store) write(ctx context.Context, k *storedSession, was store.Version) error {
	value, err := jsonrpc.Marshal(k)
	if err != nil {
		return err
	}
	_, err = b.Keys.Put(ctx, keyOf(k.ID), value, was, k.Expires)
	return err
}

// read returns the record of a session and its version. It returns NOT_FOUND for an
// unknown or malformed id.
func (b *Store) read(ctx context.Context, id string) (*storedSession, store.Version, error) {
	missing := toolerr.New(toolerr.NotFound, "no session %.80q; it may have been deleted, or removed after %d days without use; start a new session", id, int(b.age().Hours()/24))
	if id == "" || len(id) > 64 || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r == '*' || r == '/' || r > '~' }) {
		return nil, 0, missing
	}
	entry, err := b.Keys.Get(ctx, keyOf(id))
	if toolerr.Is(err, toolerr.NotFound) {
		return nil, 0, missing
	}
	if err != nil {
		return nil, 0, err
	}
	k, err := parseSession(entry)
	return k, entry.Version, err
}

// parseSession decodes the record of a session. It returns INTERNAL if the record is
// malformed.
func parseSession(entry store.Entry) (*storedSession, error) {
	k := new(storedSession)
	if err := json.Unmarshal(entry.Value, k); err != nil {
		return nil, toolerr.New(toolerr.Internal, "the record %s is malformed: %w", entry.Key, err)
	}
	return k, nil
}

// change applies f to the record of a session, and stores it. It calls f again if another
// process changed the record meanwhile, at most maxTries times. An error of f ends it.
func (b *Store) change(ctx context.Context, id string, f func(*storedSession) error) (*Session, error) {
	var err error
	for range maxTries {
		k, version, fault := b.read(ctx, id)
		if fault == nil {
			fault = f(k)
		}
		if fault != nil {
			return nil, fault
		}
		if err = b.write(ctx, k, version); err == nil {
			return &k.Session, nil
		}
		if !toolerr.Is(err, toolerr.Conflict) {
			return nil, err
		}
	}
	return nil, err
}

// List returns all sessions, the last used first, without malformed ones.
func (b *Store) List(ctx context.Context) ([]Session, error) {
	var all []Session
	for after := ""; ; {
		page, err := b.Keys.List(ctx, keyOf(""), after, store.MaxPageEntries)
		if err != nil || len(page) == 0 {
			slices.SortFunc(all, func(a, b Session) int {
				return cmp.Or(b.Updated.Compare(a.Updated), strings.Compare(a.ID, b.ID))
			})
			return all, err
		}
		for _, entry := range page {
			after = entry.Key
			if k, err := parseSession(entry); err == nil {
				all = append(all, k.Session)
			}
		}
	}
}

// Get returns a session by its id, or NOT_FOUND.
func (b *Store) Get(ctx context.Context, id string) (*Session, error) {
	k, _, err := b.read(ctx, id)
	if err != nil {
		return nil, err
	}
	return &k.Session, nil
}

// Find returns the session whose id is text, or the only one whose name is text or whose id
// begins with it, with or without "sess_". It returns NOT_FOUND, or NOT_UNIQUE for several.
func (b *Store) Find(ctx context.Context, text string) (*Session, error) {
	s, err := b.Get(ctx, text)
	if err == nil || !toolerr.Is(err, toolerr.NotFound) || text == "" {
		return s, err
	}
	all, fault := b.List(ctx)
	if fault != nil {
		return nil, fault
	}
	var found []Session
	for _, s := range all {
		if s.Name == text || strings.HasPrefix(s.ID, text) || strings.HasPrefix(s.ID, "sess_"+text) {
			found = append(found, s)
		}
	}
	switch len(found) {
	case 0:
		return nil, err
	case 1:
		return &found[0], nil
	}
	return nil, toolerr.New(toolerr.NotUnique, "%d sessions match %.80q: %s and %s …; give the id", len(found), text, found[0].ID, found[1].ID)
}

// Rename changes the name of a session, which counts as a use. It returns NOT_FOUND, or
// INVALID_PARAMS for a name that is too long or not one line.
func (b *Store) Rename(ctx context.Context, id, name string) (*Session, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	return b.change(ctx, id, func(k *storedSession) error {
		k.Name, k.Updated = name, b.now()
		return nil
	})
}

// SetModel sets the last used model of a session, or returns NOT_FOUND.
func (b *Store) SetModel(ctx context.Context, id, model string) (*Session, error) {
	return b.change(ctx, id, func(k *storedSession) error {
		k.Model = model
		return nil
	})
}

// Delete deletes a session and its messages, or returns NOT_FOUND.
func (b *Store) Delete(ctx context.Context, id string) error {
	if _, _, err := b.read(ctx, id); err != nil {
		return err
	}
	if err := b.Keys.Delete(ctx, keyOf(id), store.Any); err != nil {
		return err
	}
	return b.dropMessages(ctx, id)
}
