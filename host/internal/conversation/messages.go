package conversation

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// turn is a record of a session's log: messages that were appended together, or the name of
// the blob that contains them. A record with Void says that all earlier records of that part
// are void; its counts are negative.
type turn struct {
	Count    int           `json:"count"` // messages
	Bytes    int64         `json:"bytes"` // of the encoded messages
	Messages []llm.Message `json:"messages,omitempty"`
	Blob     string        `json:"blob,omitempty"`
	Part     string        `json:"part,omitempty"`
	Void     string        `json:"void,omitempty"` // a Part
}

// Append adds messages to the end of a session, all or none, and returns the session. It
// returns NOT_FOUND for an unknown session and LIMIT_REACHED above Size. Without messages it
// does the same as Get.
func (b *Store) Append(ctx context.Context, id string, messages ...llm.Message) (*Session, error) {
	return b.AppendPart(ctx, id, "", messages...)
}

// AppendPart does the same as Append. part names the messages for RemovePart; "": none. It
// returns LIMIT_REACHED if the session would get too large.
func (b *Store) AppendPart(ctx context.Context, id, part string, messages ...llm.Message) (*Session, error) {
	k, _, err := b.read(ctx, id)
	if err != nil || len(messages) == 0 {
		return sessionOf(k), err
	}
	content, err := jsonrpc.Marshal(messages)
	if err != nil {
		return nil, err
	}
	if most := cmp.Or(b.Size, 64<<20); k.Bytes+int64(len(content)) > most {
		return nil, toolerr.New(toolerr.LimitReached, "the session %s would have %d bytes, more than %d; start a new one, or fork it from an earlier message", id, k.Bytes+int64(len(content)), most)
	}
	t := turn{Count: len(messages), Bytes: int64(len(content)), Messages: messages, Part: part}
	if len(content) > maxInRecord {
		t.Messages, t.Blob = nil, "session-"+strings.ToLower(rand.Text())
		if _, err := b.Blobs.Create(ctx, t.Blob, bytes.NewReader(content)); err != nil {
			return nil, err
		}
	}
	return b.appendRecord(ctx, id, t)
}

// RemovePart removes the messages that were appended with a part, and returns the session.
// If there are none, it does the same as Get. It appends a record that makes them void; the
// log keeps them.
func (b *Store) RemovePart(ctx context.Context, id, part string) (*Session, error) {
	void := turn{Void: part}
	_, err := b.eachTurn(ctx, id, 0, func(t turn, _ store.Cursor) error {
		switch {
		case t.Void == part: // earlier records of the part are void
			void.Count, void.Bytes = 0, 0
		case t.Part == part:
			void.Count, void.Bytes = void.Count-t.Count, void.Bytes-t.Bytes
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if part == "" || void.Count == 0 {
		return b.Get(ctx, id)
	}
	return b.appendRecord(ctx, id, void)
}

// appendRecord appends a record to the log of a session and counts it. If that fails, it
// removes the record's blob. It returns NOT_FOUND if the session was deleted meanwhile.
func (b *Store) appendRecord(ctx context.Context, id string, t turn) (*Session, error) {
	record, err := jsonrpc.Marshal(t)
	if err != nil {
		return nil, err
	}
	if _, err := b.Log.Append(ctx, keyOf(id), record); err != nil {
		return nil, errors.Join(err, b.deleteBlob(ctx, t))
	}
	s, err := b.updateCounts(ctx, id)
	if toolerr.Is(err, toolerr.NotFound) { // deleted meanwhile
		return nil, errors.Join(err, b.dropMessages(ctx, id))
	}
	return s, err
}

// sessionOf returns the session of a record; nil for nil.
func sessionOf(k *storedSession) *Session {
	if k == nil {
		return nil
	}
	return &k.Session
}

// updateCounts updates the counts and the expiry of a session from its log, including
// messages of a host that was killed before it could update them.
func (b *Store) updateCounts(ctx context.Context, id string) (*Session, error) {
	return b.change(ctx, id, func(k *storedSession) error {
		_, err := b.eachTurn(ctx, id, k.Cursor, func(t turn, at store.Cursor) error {
			k.Cursor = at
			k.Turns++
			k.Messages += t.Count
			k.Bytes += t.Bytes
			return nil
		})
		k.Updated = b.now()
		k.Expires = k.Updated.Add(b.age())
		return err
	})
}

// eachTurn calls visit for the records of a session after a cursor, the oldest first, and
// returns their number. It stops at the first error, also of visit.
func (b *Store) eachTurn(ctx context.Context, id string, after store.Cursor, visit func(turn, store.Cursor) error) (n int, err error) {
	for {
		page, err := b.Log.Read(ctx, keyOf(id), after, store.MaxPageEntries)
		if err != nil || len(page) == 0 {
			return n, err
		}
		for _, record := range page {
			after = record.Cursor
			var t turn
			if err := json.Unmarshal(record.Data, &t); err != nil {
				return n, toolerr.New(toolerr.Internal, "a record of the session %s is malformed: %w", id, err)
			}
			if err := visit(t, record.Cursor); err != nil {
				return n, err
			}
			n++
		}
	}
}

// Messages returns the messages of a session, the oldest first. It returns NOT_FOUND for an
// unknown session.
func (b *Store) Messages(ctx context.Context, id string) ([]llm.Message, error) {
	turns, err := b.turns(ctx, id)
	var all []llm.Message
	for _, t := range turns {
		all = append(all, t.Messages...)
	}
	return all, err
}

// turns returns the turns of a session with their messages, without void ones. If the
// store has trimmed the oldest turns, the first message is one of the user.
func (b *Store) turns(ctx context.Context, id string) ([]turn, error) {
	k, _, err := b.read(ctx, id)
	if err != nil {
		return nil, err
	}
	var turns []turn
	lost := false
	n, err := b.eachTurn(ctx, id, 0, func(t turn, _ store.Cursor) error {
		if t.Void != "" {
			turns = slices.DeleteFunc(turns, func(old turn) bool { return old.Part == t.Void })
			return nil
		}
		if t.Blob != "" {
			err := b.readBlob(ctx, &t)
			if toolerr.Is(err, toolerr.NotFound) {
				turns, lost = nil, true
				return nil
			}
			if err != nil {
				return err
			}
		}
		turns = append(turns, t)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if lost || n < k.Turns {
		turns = dropBeforeUser(turns)
	}
	return turns, nil
}

// dropBeforeUser returns the turns without the messages before the first one of the user;
// nil if none exists.
func dropBeforeUser(turns []turn) []turn {
	for i, t := range turns {
		for j, m := range t.Messages {
			if m.Role == llm.UserRole {
				turns[i].Messages = t.Messages[j:]
				return turns[i:]
			}
		}
	}
	return nil
}

// readBlob reads the messages of a turn that are stored as a blob into t. It returns
// INTERNAL if the blob is malformed.
func (b *Store) readBlob(ctx context.Context, t *turn) error {
	content, _, err := b.Blobs.Open(ctx, t.Blob)
	if err != nil {
		return err
	}
	defer content.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &t.Messages); err != nil {
		return toolerr.New(toolerr.Internal, "the blob %s is malformed: %w", t.Blob, err)
	}
	return nil
}

// Fork creates a session with the first upTo messages of another, or all if upTo is 0. It
// returns INVALID_PARAMS if there are fewer, or if a call and its results would be
// separated. name "" is the other session's name.
func (b *Store) Fork(ctx context.Context, id, name string, upTo int) (*Session, error) {
	from, err := b.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	turns, err := b.turns(ctx, id)
	if err != nil {
		return nil, err
	}
	if upTo != 0 {
		if turns, err = firstMessages(turns, upTo); err != nil {
			return nil, err
		}
	}
	s, err := b.Create(ctx, Session{Name: cmp.Or(name, from.Name), Model: from.Model, Parent: id})
	if err != nil {
		return nil, err
	}
	for _, t := range turns {
		more, err := b.Append(ctx, s.ID, t.Messages...)
		if err != nil {
			return nil, errors.Join(err, b.Delete(context.WithoutCancel(ctx), s.ID))
		}
		s = more
	}
	return s, nil
}

// firstMessages returns the turns up to the nth message. It returns INVALID_PARAMS as Fork
// does.
func firstMessages(turns []turn, n int) ([]turn, error) {
	var out []turn
	open := map[string]bool{}
	left := n
	for _, t := range turns {
		if left <= 0 {
			break
		}
		t.Messages = t.Messages[:min(left, len(t.Messages))]
		left -= len(t.Messages)
		for _, m := range t.Messages {
			trackOpenCalls(m, open)
		}
		out = append(out, t)
	}
	switch {
	case n < 0 || left > 0:
		return nil, toolerr.New(toolerr.InvalidParams, "messages is %d, and the session has %d", n, n-left).With("param", "messages")
	case len(open) > 0:
		return nil, toolerr.New(toolerr.InvalidParams, "message %d has calls whose results come after it; fork before or after both", n).With("param", "messages")
	}
	return out, nil
}

// trackOpenCalls adds the calls of a message to open, and removes the calls that it
// answers.
func trackOpenCalls(m llm.Message, open map[string]bool) {
	for _, p := range m.Parts {
		switch {
		case p.ToolCall != nil:
			open[p.ToolCall.ID] = true
		case p.ToolResult != nil:
			delete(open, p.ToolResult.ID)
		}
	}
}

// dropMessages removes the log and blobs of a session that was deleted. It continues after
// an error and returns all errors.
func (b *Store) dropMessages(ctx context.Context, id string) error {
	var blobs []turn
	_, err := b.eachTurn(ctx, id, 0, func(t turn, _ store.Cursor) error {
		blobs = append(blobs, turn{Blob: t.Blob})
		return nil
	})
	err = errors.Join(err, b.Log.Drop(ctx, keyOf(id)))
	for _, t := range blobs {
		err = errors.Join(err, b.deleteBlob(ctx, t))
	}
	return err
}

// deleteBlob removes the blob of a turn, if it has one. A missing blob is no error.
func (b *Store) deleteBlob(ctx context.Context, t turn) error {
	if t.Blob == "" {
		return nil
	}
	err := b.Blobs.Delete(context.WithoutCancel(ctx), t.Blob)
	if toolerr.Is(err, toolerr.NotFound) {
		return nil
	}
	return err
}
