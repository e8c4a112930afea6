package upstream

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// maxQuestions is how many questions of one server may be open.
const maxQuestions = 64

// isQuestion reports whether a client, not the host, is to answer a request.
func isQuestion(method string) bool {
	switch method {
	case "elicitation/create", "sampling/createMessage", "roots/list":
		return true
	}
	return false
}

// question passes a request of a legacy server to the client of the call it
// belongs to. Such a server does not say which that is: with calls of several
// clients under way it is refused, for one client's user must not answer for
// another's.
//
// Which roots there are the host says itself where it has any, or where the
// client does not say.
func (c *conn) question(m jsonrpc.Message) {
	var own json.RawMessage
	if m.Method == "roots/list" {
		var stands bool
		if own, stands = c.roots(); stands {
			c.reply(jsonrpc.AppendResult(nil, m.ID, own))
			return
		}
	}
	c.mu.Lock()
	p, fault := c.caller(func(r *request) bool { return r.ask != nil })
	if p == nil {
		c.mu.Unlock()
		if own != nil {
			c.reply(jsonrpc.AppendResult(nil, m.ID, own))
			return
		}
		code := jsonrpc.CodeMethodNotFound
		if fault != "" {
			code = jsonrpc.CodeInvalidRequest
		} else {
			fault = "no client can answer " + m.Method
		}
		c.reply(jsonrpc.AppendError(nil, m.ID, code, fault))
		return
	}
	key := string(m.ID)
	_, twice := c.asked[key]
	if twice || len(c.asked) >= maxQuestions {
		c.mu.Unlock()
		c.reply(jsonrpc.AppendError(nil, m.ID, jsonrpc.CodeInternal, "too many questions are open, or one with this id is"))
		return
	}
	if p.end == nil {
		p.life, p.end = context.WithCancel(p.ctx)
	}
	ctx, cancel := context.WithCancel(p.life)
	if c.asked == nil {
		c.asked = map[string]context.CancelFunc{}
	}
	c.asked[key] = cancel
	p.questions++
	c.mu.Unlock()
	p.asking.Go(func() { // ends with the call at the latest, which waits for it
		params, err := c.named(m.Method, m.Params)
		var raw json.RawMessage
		if err == nil {
			raw, err = p.from.ask(ctx, m.Method, params)
		}
		c.mu.Lock()
		delete(c.asked, key)
		p.questions--
		c.mu.Unlock()
		cancel()
		if err != nil && own != nil {
			raw, err = own, nil
		}
		c.reply(questionAnswer(m, raw, err))
	})
}

func questionAnswer(m jsonrpc.Message, raw json.RawMessage, err error) []byte {
	var refused *call.MCPError
	switch {
	case err == nil:
		return jsonrpc.AppendResult(nil, m.ID, raw)
	case errors.As(err, &refused):
		return jsonrpc.AppendErrorObject(nil, m.ID, refused.Object)
	}
	return jsonrpc.AppendError(nil, m.ID, jsonrpc.CodeInternal, err.Error())
}

// caller returns the request under way that a message without an address
// belongs to: the newest of the one caller who has any that will take it. A
// request whose client is being asked already waits for that, and is thought
// of only where there is no other. The fault says why it cannot be told. c.mu
// is held.
func (c *conn) caller(takes func(*request) bool) (p *pending, fault string) {
	for _, waiting := range []bool{false, true} {
		var newest uint64
		for id, candidate := range c.pending {
			if candidate.from == nil || !takes(candidate.from) || candidate.questions > 0 != waiting {
				continue
			}
			if p != nil && p.from.caller.ID != candidate.from.caller.ID {
				return nil, "requests of several clients are running, so this one cannot be assigned"
			}
			if id >= newest {
				newest, p = id, candidate
			}
		}
		if p != nil {
			break
		}
	}
	return p, ""
}

// questionCancelled ends a question that the server has withdrawn.
func (c *conn) questionCancelled(params json.RawMessage) {
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	c.mu.Lock()
	cancel := c.asked[string(p.RequestID)]
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// logged passes a log message to the request it belongs to, and where that
// cannot be told to whoever uses the server.
func (c *conn) logged(m jsonrpc.Message) {
	c.mu.Lock()
	p, _ := c.caller(func(r *request) bool { return r.notify != nil })
	if p != nil {
		c.note(p, m.Method, m.Params)
	}
	c.mu.Unlock()
	if p == nil {
		c.tell(m)
	}
}
