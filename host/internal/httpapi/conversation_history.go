package httpapi

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/conversation"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// storedTurn is the stored data of an answer with calls of the client's tools.
type storedTurn struct {
	Said     string        `json:"said"` // all text, as the client got it
	Messages []llm.Message `json:"messages,omitempty"`
	Blob     string        `json:"blob,omitempty"` // id of a blob with messages that are too long
}

// Limits of stored turns.
const (
	turnLifetime    = 24 * time.Hour
	maxTurnInRecord = 512 << 10
)

// turnKey returns the store key of the turn whose first open call has this id.
func turnKey(call string) string { return "turn/" + call }

// storeTurn stores the messages of an answer for turnLifetime, under the id of the first
// call that the client must make. It stores nothing without such a call, nor messages that
// are too long if there is no store for blobs. answerText is the text that the client got
// of them.
func (a *API) storeTurn(ctx context.Context, messages []llm.Message, answerText string) error {
	ids := openCalls(messages)
	content, err := jsonrpc.Marshal(messages)
	if err != nil || len(ids) == 0 {
		return err
	}
	kept := storedTurn{Said: answerText, Messages: messages}
	if len(content) > maxTurnInRecord {
		if a.cfg.Blobs == nil {
			return nil
		}
		kept.Messages, kept.Blob = nil, "turn-"+strings.ToLower(rand.Text())
		if _, err := a.cfg.Blobs.Create(ctx, kept.Blob, bytes.NewReader(content)); err != nil {
			return err
		}
	}
	value, err := jsonrpc.Marshal(kept)
	if err != nil {
		return err
	}
	_, err = a.cfg.Keys.Put(ctx, turnKey(ids[0]), value, store.Any, a.cfg.Now().Add(turnLifetime))
	return err
}

// openCalls returns the ids of calls without a result, in their order.
func openCalls(messages []llm.Message) []string {
	var ids []string
	for _, m := range messages {
		for _, p := range m.Parts {
			switch {
			case p.ToolCall != nil:
				ids = append(ids, p.ToolCall.ID)
			case p.ToolResult != nil:
				ids = slices.DeleteFunc(ids, func(id string) bool { return id == p.ToolResult.ID })
			}
		}
	}
	return ids
}

// restore returns a conversation in which the stored messages replace the answers that the
// client got. Answers that are not stored, or that the client has changed, stay as they
// are. It returns an error only if the store cannot be read.
func (a *API) restore(ctx context.Context, messages []llm.Message) ([]llm.Message, error) {
	if a.cfg.Keys == nil {
		return messages, nil
	}
	var out []llm.Message
	for _, m := range messages {
		whole, err := a.storedAnswer(ctx, m)
		if err != nil {
			return nil, err
		}
		if whole != nil {
			out = append(out, whole...)
			continue
		}
		out = append(out, m)
	}
	return out, nil
}

// storedAnswer returns the stored messages of an answer; nil: none, or the client has
// changed the answer. It returns an error if the store cannot be read or the record is
// malformed.
func (a *API) storedAnswer(ctx context.Context, m llm.Message) ([]llm.Message, error) {
	for _, p := range m.Parts {
		if p.ToolCall == nil || !strings.HasPrefix(p.ToolCall.ID, openaiPrefix) && !strings.HasPrefix(p.ToolCall.ID, anthropicPrefix) || len(p.ToolCall.ID) > 64 {
			continue
		}
		entry, err := a.cfg.Keys.Get(ctx, turnKey(p.ToolCall.ID))
		if code := toolerr.CodeOf(err); code == toolerr.NotFound || code == toolerr.InvalidInput {
			continue
		}
		if err != nil {
			return nil, err
		}
		var kept storedTurn
		if err := json.Unmarshal(entry.Value, &kept); err != nil {
			return nil, toolerr.New(toolerr.Internal, "the record %s is malformed: %w", entry.Key, err)
		}
		if kept.Blob != "" {
			if err := a.readBlob(ctx, &kept); err != nil {
				return nil, err
			}
		}
		if isUnchanged(m, kept) {
			return kept.Messages, nil
		}
		return nil, nil
	}
	return nil, nil
}

// readBlob reads the content of a stored turn. If it was removed, the turn stays empty
// without an error.
func (a *API) readBlob(ctx context.Context, kept *storedTurn) error {
	content, _, err := a.cfg.Blobs.Open(ctx, kept.Blob)
	if toolerr.Is(err, toolerr.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	defer content.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, &kept.Messages)
}

// isUnchanged reports whether a message equals the stored answer as the client got it.
func isUnchanged(m llm.Message, kept storedTurn) bool {
	if len(kept.Messages) == 0 {
		return false
	}
	said, calls := "", map[string]*llm.ToolCall{}
	for _, p := range m.Parts {
		switch {
		case p.Type == llm.TextPart:
			said += p.Text
		case p.ToolCall != nil:
			calls[p.ToolCall.ID] = p.ToolCall
		}
	}
	ids := openCalls(kept.Messages)
	if strings.TrimSpace(said) != strings.TrimSpace(kept.Said) || len(ids) != len(calls) {
		return false
	}
	for _, k := range kept.Messages {
		for _, p := range k.Parts {
			if p.ToolCall == nil || !slices.Contains(ids, p.ToolCall.ID) {
				continue
			}
			c := calls[p.ToolCall.ID]
			if c == nil || c.Name != p.ToolCall.Name || c.Malformed != p.ToolCall.Malformed || !sameJSON(c.Args, p.ToolCall.Args) {
				return false
			}
		}
	}
	return true
}

// sameJSON reports whether two JSON texts have the same value.
func sameJSON(a, b json.RawMessage) bool {
	one, ok := jsonrpc.Canonical(nil, a)
	two, also := jsonrpc.Canonical(nil, b)
	return ok && also && bytes.Equal(one, two) || bytes.Equal(a, b)
}

// setHistory sets the conversation for the model: the session or response that the request
// continues, and its messages. Its error names the wrong parameter.
func (c *completion) setHistory(ctx context.Context) error {
	messages := c.q.Messages
	c.q.Messages = nil
	if c.q.session != "" {
		return c.continueSession(ctx, append(c.q.instructionMessages(), messages...))
	}
	if c.q.response != nil {
		return c.continueResponse(ctx, messages)
	}
	if err := checkPairs(messages); err != nil {
		return err
	}
	var err error
	c.history, err = c.api.restore(ctx, messages)
	return err
}

// continueSession sets the conversation to a session's messages and those of the request. System
// messages apply only to this request and are not stored. It returns NOT_FOUND for an unknown
// session, and an error for a result without its call.
func (c *completion) continueSession(ctx context.Context, messages []llm.Message) error {
	if c.api.cfg.Sessions == nil {
		return invalid("x_session", "this host does not store sessions")
	}
	earlier, err := c.api.cfg.Sessions.Messages(ctx, c.q.session)
	if toolerr.Is(err, toolerr.NotFound) {
		return toolerr.New(toolerr.NotFound, "%w", err).With("param", "x_session")
	}
	if err != nil {
		return err
	}
	var system []llm.Message
	for _, m := range messages {
		if m.Role == llm.SystemRole || m.Role == llm.DeveloperRole {
			system = append(system, m)
			continue
		}
		c.newMessages = append(c.newMessages, m)
	}
	called := llm.CallNames(slices.Concat(earlier, c.newMessages))
	for _, m := range c.newMessages {
		for _, p := range m.Parts {
			if p.ToolResult != nil && called[p.ToolResult.ID] == "" {
				return unknownResult(p.ToolResult.ID)
			}
		}
	}
	c.history = append(system, conversation.WithResults(slices.Concat(earlier, c.newMessages))...)
	return nil
}

// unknownResult returns the error for a tool result that answers no call.
func unknownResult(id string) error {
	return invalid("messages", "the tool result with the id %.60q has no call before it", id)
}

// checkPairs returns an error for calls without results in the next messages, and for results
// without calls before them: models refuse both.
func checkPairs(messages []llm.Message) error {
	var calls []string // all earlier calls have results
	waiting, n := map[string]int{}, 0
	for _, m := range messages {
		if m.Role != llm.ToolRole && n > 0 {
			return noResult(calls, waiting)
		}
		for _, p := range m.Parts {
			switch {
			case p.ToolCall != nil:
				if n == 0 {
					calls = calls[:0]
				}
				calls = append(calls, p.ToolCall.ID)
				waiting[p.ToolCall.ID]++
				n++
			case p.ToolResult != nil:
				if waiting[p.ToolResult.ID] == 0 {
					return unknownResult(p.ToolResult.ID)
				}
				waiting[p.ToolResult.ID]--
				n--
			}
		}
	}
	if n > 0 {
		return noResult(calls, waiting)
	}
	return nil
}

// noResult returns INVALID_PARAMS for a message whose calls have no result: those of ids
// whose number in waiting is not 0. It changes ids.
func noResult(ids []string, waiting map[string]int) error {
	ids = slices.DeleteFunc(ids, func(id string) bool { return waiting[id] == 0 })
	return invalid("messages", "a message with tool calls must be followed by a result for each call; missing: %.200s", strings.Join(ids, ", "))
}
