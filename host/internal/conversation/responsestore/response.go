// Package responsestore keeps the responses of the Responses API in the store, so that a
// request can continue an earlier one by its id after a restart, and at every host with
// the same store. Several requests may continue the same response.
//
// Each record has the input and output of one response and the id of the previous one, so
// that a conversation is a chain of records. A record expires after Age without use. If
// there are more than about Most records or Total bytes, the least recently used ones are
// deleted. A request that continues a response uses all records of its chain.
package responsestore

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A Response is the record of a stored response, which is stored apart from its
// content.
type Response struct {
	ID       string    `json:"id"`
	Previous string    `json:"previous,omitempty"` // id of the previous response of the conversation
	Account  string    `json:"account"`            // of the caller
	Caller   string    `json:"caller"`             // the caller's id
	Used     time.Time `json:"used"`
	Bytes    int64     `json:"bytes"`          // of its content
	Chain    int64     `json:"chain"`          // bytes of the contents of the conversation up to this response
	Blob     string    `json:"blob,omitempty"` // id of the blob with the content; "": it is stored as a key
}

// A Content is a request and its response.
type Content struct {
	Body     json.RawMessage   `json:"body"`     // the response as sent to the client
	Input    []json.RawMessage `json:"input"`    // the items of the request
	Messages []llm.Message     `json:"messages"` // both in the form for a model, with the host's calls
}

// A Store holds all stored responses. It is safe for concurrent use, also by several hosts.
type Store struct {
	Keys  store.Keys
	Blobs store.Blobs // for contents that are too long for a value
	Now   func() time.Time

	Age             time.Duration // time after its last use for which a response is kept; 0: 30 days
	MaxConversation int64         // bytes of a conversation; 0: 64 MiB
	MaxResponses    int           // number of responses; 0: 10 000
	MaxTotal        int64         // bytes of all responses; 0: 256 MiB

	mu    sync.Mutex
	since int   // responses since the limits were checked; 0: never
	added int64 // their bytes
}

const (
	maxInlineBytes        = 512 << 10
	markUsedInterval      = 24 * time.Hour
	recheckAfterResponses = 64       // the limits are checked again after so many responses
	recheckAfterBytes     = 16 << 20 // or after so many bytes
)

// key returns the key of a response.
func key(id string) string { return "response/" + id }

// contentKey returns the key of a response's content.
func contentKey(id string) string { return "response-content/" + id }

// now returns the current time in UTC.
func (b *Store) now() time.Time {
	if b.Now != nil {
		return b.Now().UTC()
	}
	return time.Now().UTC()
}

// expiryOf returns the time at which a response that was last used at a time is
// removed: after Age, or 30 days if Age is 0.
func (b *Store) expiryOf(used time.Time) time.Time {
	return used.Add(cmp.Or(b.Age, 30*24*time.Hour))
}

// notFoundError returns NOT_FOUND for a response, in OpenAI's words.
func notFoundError(id string) error {
	return toolerr.New(toolerr.NotFound, "Response with id '%.80s' not found.", id)
}

// Create stores a response, after it has deleted old ones beyond the limits. The caller
// sets ID, Previous, Account and Caller, and Chain to the size of the conversation before
// it. It returns CONFLICT if the ID exists.
func (b *Store) Create(ctx context.Context, r Response, c Content) error {
	content, err := jsonrpc.Marshal(c)
	if err != nil {
		return err
	}
	if err := b.enforceLimits(ctx, int64(len(content))); err != nil {
		return err
	}
	r.Used, r.Bytes = b.now(), int64(len(content))
	r.Chain += r.Bytes
	if len(content) > maxInlineBytes {
		r.Blob = "response-" + strings.ToLower(strings.ReplaceAll(r.ID, "resp_", ""))
		if _, err := b.Blobs.Create(ctx, r.Blob, bytes.NewReader(content)); err != nil {
			return err
		}
	} else if _, err := b.Keys.Put(ctx, contentKey(r.ID), content, store.Absent, b.expiryOf(r.Used)); err != nil {
		return err
	}
	if err := b.putRecord(ctx, r, store.Absent); err != nil {
		return errors.Join(err, b.deleteContent(ctx, r))
	}
	return nil
}

// putRecord writes the record of a response if its version is still was. It returns
// CONFLICT if the record has changed.
func (b *Store) putRecord(ctx context.Context, r Response, was store.Version) error {
	value, err := jsonrpc.Marshal(r)
	if err != nil {
		return err
	}
	_, err = b.Keys.Put(ctx, key(r.ID), value, was, b.expiryOf(r.Used))
	return err
}

// getRecord returns the record of a response and its version. It returns NOT_FOUND for
// an unknown or malformed id.
func (b *Store) getRecord(ctx context.Context, id string) (r Response, version store.Version, err error) {
	if id == "" || len(id) > 64 || strings.ContainsFunc(id, func(c rune) bool { return c <= ' ' || c == '*' || c == '/' || c > '~' }) {
		return r, 0, notFoundError(id)
	}
	entry, err := b.Keys.Get(ctx, key(id))
	if toolerr.Is(err, toolerr.NotFound) {
		return r, 0, notFoundError(id)
	}
	if err == nil {
		err = json.Unmarshal(entry.Value, &r)
	}
	return r, entry.Version, err
}

// Get returns a response with its content, or NOT_FOUND.
func (b *Store) Get(ctx context.Context, id string) (*Response, *Content, error) {
	r, _, err := b.getRecord(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	c, err := b.content(ctx, r)
	return &r, c, err
}

// content returns the content of a response. It returns NOT_FOUND if it was removed,
// and INTERNAL if it is malformed.
func (b *Store) content(ctx context.Context, r Response) (*Content, error) {
	text, err := b.contentJSON(ctx, r)
	if toolerr.Is(err, toolerr.NotFound) {
		return nil, notFoundError(r.ID)
	}
	if err != nil {
		return nil, err
	}
	c := new(Content)
	if err := json.Unmarshal(text, c); err != nil {
		return nil, toolerr.New(toolerr.Internal, "the content of the response %s is malformed: %w", r.ID, err)
	}
	return c, nil
}

// contentJSON returns the stored JSON of a response's content, from a key or a blob;
// NOT_FOUND if it was deleted.
func (b *Store) contentJSON(ctx context.Context, r Response) ([]byte, error) {
	if r.Blob == "" {
		entry, err := b.Keys.Get(ctx, contentKey(r.ID))
		return entry.Value, err
	}
	content, _, err := b.Blobs.Open(ctx, r.Blob)
	if err != nil {
		return nil, err
	}
	defer content.Close() //nolint:errcheck // it was read
	return io.ReadAll(content)
}

// Chain returns the messages of a conversation up to and with a response, the oldest
// first, and its size in bytes. It fails with NOT_FOUND if that response or an earlier one
// of the conversation was deleted or has expired, and with LIMIT_REACHED if the
// conversation has Size bytes.
func (b *Store) Chain(ctx context.Context, id string) ([]llm.Message, int64, error) {
	last, _, err := b.getRecord(ctx, id)
	if err != nil {
		return nil, 0, err
	}
	if most := cmp.Or(b.MaxConversation, 64<<20); last.Chain >= most {
		return nil, 0, toolerr.New(toolerr.LimitReached, "the conversation of %s has %d bytes, more than %d; start a new one, or continue from an earlier response", id, last.Chain, most)
	}
	var turns [][]llm.Message
	for at := id; at != ""; {
		r, version, err := b.getRecord(ctx, at)
		var c *Content
		if err == nil {
			c, err = b.content(ctx, r)
		}
		if toolerr.Is(err, toolerr.NotFound) && at != id {
			return nil, 0, toolerr.New(toolerr.NotFound, "Response with id '%.80s' cannot be continued: the earlier response '%.80s' of its conversation was deleted or has expired.", id, at)
		}
		if err == nil {
			err = b.markUsed(ctx, r, version)
		}
		if err != nil {
			return nil, 0, err
		}
		turns = append(turns, c.Messages)
		at = r.Previous
	}
	slices.Reverse(turns)
	return slices.Concat(turns...), last.Chain, nil
}

// markUsed sets the time of a response's last use to now, at most once a day. It is no
// error if another request has changed or deleted it.
func (b *Store) markUsed(ctx context.Context, r Response, version store.Version) error {
	if b.now().Sub(r.Used) < min(markUsedInterval, cmp.Or(b.Age, markUsedInterval)/2) {
		return nil
	}
	r.Used = b.now()
	if r.Blob == "" {
		content, err := b.Keys.Get(ctx, contentKey(r.ID))
		if err == nil {
			_, err = b.Keys.Put(ctx, content.Key, content.Value, content.Version, b.expiryOf(r.Used))
		}
		if err != nil && !toolerr.Is(err, toolerr.Conflict) && !toolerr.Is(err, toolerr.NotFound) {
			return err
		}
	}
	err := b.putRecord(ctx, r, version)
	if toolerr.Is(err, toolerr.Conflict) || toolerr.Is(err, toolerr.NotFound) { // another request touched it, or it was deleted
		return nil
	}
	return err
}

// Delete deletes a response, or returns NOT_FOUND. Later responses of its conversation
// cannot be continued any more.
func (b *Store) Delete(ctx context.Context, id string) error {
	r, _, err := b.getRecord(ctx, id)
	if err != nil {
		return err
	}
	if err := b.Keys.Delete(ctx, key(id), store.Any); err != nil {
		return err
	}
	return b.deleteContent(ctx, r)
}

// deleteContent deletes the content of a response whose record was deleted, even if ctx has
// ended. It is no error if none exists.
func (b *Store) deleteContent(ctx context.Context, r Response) error {
	ctx = context.WithoutCancel(ctx)
	err := b.Keys.Delete(ctx, contentKey(r.ID), store.Any)
	if r.Blob != "" {
		err = errors.Join(err, b.Blobs.Delete(ctx, r.Blob))
	}
	if toolerr.Is(err, toolerr.NotFound) {
		return nil
	}
	return err
}
