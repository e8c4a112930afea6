package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// request is one request of a caller's on its way to the server.
type request struct {
	method string
	tool   string // the server's own name; "": no tool's call
	params json.RawMessage
	caller call.Caller
	notify func(method string, params json.RawMessage) // nil: not wanted
	ask    call.Ask                                    // nil: nobody to ask
}

// call sends a tools/call and waits for its answer.
func (c *conn) call(ctx context.Context, req *call.Request) (answer, error) {
	return c.carry(ctx, request{
		method: "tools/call", tool: req.Tool.Original, params: req.Params,
		caller: req.Caller, notify: req.OnNotify, ask: req.Ask,
	})
}

// maxRounds bounds how often a server may ask during one request.
const maxRounds = 32

// carry sends a request and waits for its result. The questions of a modern
// server are answered here for a caller that does not know them as results.
func (c *conn) carry(ctx context.Context, r request) (answer, error) {
	for range maxRounds {
		a, err := c.once(ctx, r)
		if err != nil || c.era != Modern || !a.needsInput() {
			return a, err
		}
		if r.caller.Modern {
			a.result, err = c.namedInputs(a.result)
			return a, err
		}
		if r.params, err = c.answer(ctx, r, a.result); err != nil {
			return answer{}, err
		}
	}
	return answer{}, toolerr.New(toolerr.LimitReached, "the server asked more than %d times", maxRounds)
}

// once makes one round.
func (c *conn) once(ctx context.Context, r request) (answer, error) {
	params, err := parseCall(r.params)
	if err != nil {
		return answer{}, toolerr.New(toolerr.InvalidParams, "params of %s: %w", r.method, err)
	}
	p := &pending{from: &r, ctx: ctx}
	if r.notify != nil {
		p.token = params.token
		p.wake = make(chan struct{}, 1)
	}
	id, err := c.register(p)
	if err != nil {
		return answer{}, err
	}
	defer c.forget(id, p)
	raw := strconv.AppendUint(nil, id, 10)
	line := append(make([]byte, 0, len(r.params)+128), `{"jsonrpc":"2.0","id":`...)
	line = jsonrpc.AppendString(append(append(line, raw...), `,"method":`...), r.method)
	line = params.append(append(line, `,"params":`...), rewrite{
		tool: r.tool, token: p.token != nil, id: raw,
		from: r.caller.Modern, to: c.era, version: c.cfg.Version,
		caps: r.caller.Capabilities, level: r.caller.LogLevel,
	})
	if err := c.post(ctx, append(oneLine(line), "}\n"...)); err != nil {
		return answer{}, err
	}
	a := c.wait(ctx, id, p)
	if a.err == nil {
		if a.result[0] != '{' {
			return answer{}, toolerr.New(toolerr.ProtocolError, "the server's result is not an object")
		}
		return a, nil
	}
	var answered *call.MCPError
	if errors.As(a.err, &answered) {
		answered.Server = c.cfg.Name
		c.nameVisits(answered)
	}
	return answer{}, a.err
}

// note keeps a notification for the caller of p. c.mu is held.
func (c *conn) note(p *pending, method string, params json.RawMessage) {
	if p.wake == nil || len(p.notes) >= maxNotes || p.size+len(params) > maxNoteBytes && len(p.notes) > 0 {
		return // the caller is slow; the next one says more
	}
	p.notes = append(p.notes, note{method, params})
	p.size += len(params)
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// needsInput reports whether a result is a modern server's question.
func (a answer) needsInput() bool {
	return (&call.Result{Raw: a.result, Names: a.names}).AsksForInput()
}

// answer has the caller's client answer what a modern server asks, one
// question after the other, and returns the parameters of the next round.
func (c *conn) answer(ctx context.Context, r request, result json.RawMessage) (json.RawMessage, error) {
	members, err := jsonrpc.Members(result)
	if err != nil {
		return nil, toolerr.New(toolerr.ProtocolError, "the server's result is malformed: %w", err)
	}
	var state, questions json.RawMessage
	for _, m := range members {
		switch m.Name {
		case "requestState":
			state = m.Value
		case "inputRequests":
			questions = m.Value
		}
	}
	responses := []byte{'{'}
	if !isNull(questions) {
		asked, err := jsonrpc.Members(questions)
		if err != nil {
			return nil, toolerr.New(toolerr.ProtocolError, "the server's inputRequests are malformed: %w", err)
		}
		for i, q := range asked {
			reply, err := c.answerOne(ctx, r, q)
			if err != nil {
				return nil, err
			}
			if i > 0 {
				responses = append(responses, ',')
			}
			responses = appendMember(responses, q.Name, reply)
		}
	}
	return nextRound(r.params, append(responses, '}'), state)
}

func (c *conn) answerOne(ctx context.Context, r request, q jsonrpc.Member) (json.RawMessage, error) {
	var question struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal(q.Value, &question); err != nil {
		return nil, toolerr.New(toolerr.ProtocolError, "the server's question %q is malformed: %w", q.Name, err)
	}
	own, stands := c.roots()
	isRoots := question.Method == "roots/list"
	switch {
	case isRoots && (stands || own != nil && r.ask == nil):
		return own, nil
	case !isQuestion(question.Method):
		return nil, toolerr.New(toolerr.ProtocolError, "the server asks for %q, which is unknown", question.Method)
	case r.ask == nil:
		return nil, toolerr.New(toolerr.ProtocolError, "the server asks for %s, and this caller cannot answer", question.Method)
	}
	params, err := c.named(question.Method, question.Params)
	if err != nil {
		return nil, err
	}
	reply, err := r.ask(ctx, question.Method, params)
	if err != nil && isRoots && own != nil && ctx.Err() == nil {
		return own, nil // the client has none to offer
	}
	return reply, err
}

// nextRound is params with the answers and the state of this round in place
// of any other round's.
func nextRound(params, responses, state json.RawMessage) (json.RawMessage, error) {
	if len(params) == 0 {
		params = json.RawMessage(`{}`)
	}
	members, err := jsonrpc.Members(params)
	if err != nil {
		return nil, err
	}
	out := appendMember([]byte{'{'}, "inputResponses", responses)
	if !isNull(state) {
		out = appendMember(append(out, ','), "requestState", state)
	}
	for _, m := range members {
		if m.Name != "inputResponses" && m.Name != "requestState" {
			out = appendMember(append(out, ','), m.Name, m.Value)
		}
	}
	return append(out, '}'), nil
}
