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

// request is a caller's request to the server.
type request struct {
	method string
	tool   string // the server's own name of the tool; "" for other requests than tools/call
	params json.RawMessage
	caller call.Caller
	notify func(method string, params json.RawMessage) // nil: the caller wants no notifications
	ask    call.Ask                                    // nil: nobody can be asked
}

// call sends tools/call and returns the answer, with all its rounds; see roundTrip.
func (c *conn) call(ctx context.Context, req *call.Request) (answer, error) {
	return c.roundTrip(ctx, request{
		method: "tools/call", tool: req.Tool.Original, params: req.Params,
		caller: req.Caller, notify: req.OnNotify, ask: req.Ask,
	})
}

// maxRounds bounds the rounds of questions in one request.
const maxRounds = 32

// roundTrip sends a request and returns its answer. If a modern server asks for input and
// the caller's client cannot understand that as a result, it asks the client and sends the
// next round, at most maxRounds. After more rounds it returns LIMIT_REACHED.
func (c *conn) roundTrip(ctx context.Context, r request) (answer, error) {
	c.awaitRoots(ctx)
	for range maxRounds {
		a, err := c.sendRound(ctx, r)
		if err != nil || c.era != Modern || !a.needsInput() {
			return a, err
		}
		if r.caller.Modern {
			a.result, err = c.addServerNameToInputs(a.result)
			return a, err
		}
		if r.params, err = c.answerQuestions(ctx, r, a.result); err != nil {
			return answer{}, err
		}
	}
	return answer{}, toolerr.New(toolerr.LimitReached, "the server asked more than %d times", maxRounds)
}

// sendRound sends one round of a request and waits for its answer, until ctx or the
// connection ends. It returns INVALID_PARAMS for malformed params, and errNotSent if the
// server did not get the request.
func (c *conn) sendRound(ctx context.Context, r request) (answer, error) {
	params, err := parseCall(r.params)
	if err != nil {
		return answer{}, toolerr.New(toolerr.InvalidParams, "params of %s: %w", r.method, err)
	}
	p := &pendingRequest{request: &r, ctx: ctx}
	if r.notify != nil {
		p.token = params.token
		p.wake = make(chan struct{}, 1)
	}
	id, err := c.addPending(p)
	if err != nil {
		return answer{}, err
	}
	defer c.endRequest(id, p)
	raw := strconv.AppendUint(nil, id, 10)
	line := append(make([]byte, 0, len(r.params)+128), `{"jsonrpc":"2.0","id":`...)
	line = jsonrpc.AppendString(append(append(line, raw...), `,"method":`...), r.method)
	line = params.appendFor(append(line, `,"params":`...), paramsRewrite{
		tool: r.tool, token: p.token != nil, id: raw,
		fromModern: r.caller.Modern, era: c.era, version: c.cfg.Version,
		caps: r.caller.Capabilities, level: r.caller.LogLevel,
	})
	if err := c.sendRequest(ctx, append(oneLine(line), "}\n"...)); err != nil {
		return answer{}, err
	}
	a := c.awaitAnswer(ctx, id, p)
	if a.err == nil {
		if a.result[0] != '{' {
			return answer{}, toolerr.New(toolerr.ProtocolError, "the server's result is not an object")
		}
		return a, nil
	}
	var answered *call.MCPError
	if errors.As(a.err, &answered) {
		answered.Server = c.cfg.Name
		c.addServerNameToURLError(answered)
	}
	return answer{}, a.err
}

// storeNotification stores a notification for the caller of p. The caller holds c.mu.
func (c *conn) storeNotification(p *pendingRequest, method string, params json.RawMessage) {
	if p.wake == nil || len(p.notifications) >= maxNotifications || p.size+len(params) > maxNotificationBytes && len(p.notifications) > 0 {
		return // the caller is slow; the next notification contains more
	}
	p.notifications = append(p.notifications, notification{method, params})
	p.size += len(params)
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// needsInput reports whether a result asks for input (input_required).
func (a answer) needsInput() bool {
	return (&call.Result{Raw: a.result, Names: a.names}).RequiresInput()
}

// answerQuestions asks the caller's client the questions of a modern server, one by one,
// and returns the parameters of the next round. It returns PROTOCOL_ERROR for a malformed
// result, and the error of the first question that is not answered.
func (c *conn) answerQuestions(ctx context.Context, r request, result json.RawMessage) (json.RawMessage, error) {
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
			reply, err := c.answerQuestion(ctx, r, q)
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

// answerQuestion answers a question in the result of a modern server. The host answers
// roots/list itself if it has roots or the client does not; r.ask answers other
// questions. It returns PROTOCOL_ERROR for an unknown question, or without r.ask.
func (c *conn) answerQuestion(ctx context.Context, r request, q jsonrpc.Member) (json.RawMessage, error) {
	var question struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal(q.Value, &question); err != nil {
		return nil, toolerr.New(toolerr.ProtocolError, "the server's question %q is malformed: %w", q.Name, err)
	}
	own, hasRoots := c.rootsAnswer()
	isRoots := question.Method == "roots/list"
	switch {
	case isRoots && (hasRoots || own != nil && r.ask == nil):
		return own, nil
	case !isQuestion(question.Method):
		return nil, toolerr.New(toolerr.ProtocolError, "the server asks for %q, which is unknown", question.Method)
	case r.ask == nil:
		return nil, toolerr.New(toolerr.ProtocolError, "the server asks for %s, and this caller cannot answer", question.Method)
	}
	params, err := c.addServerName(question.Method, question.Params)
	if err != nil {
		return nil, err
	}
	reply, err := r.ask(call.WithAskingServer(ctx, c.cfg.Name), question.Method, params)
	if err != nil && isRoots && own != nil && ctx.Err() == nil {
		return own, nil // the client does not provide it
	}
	return reply, err
}

// nextRound returns params with inputResponses and requestState set. It returns an error
// for malformed params.
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
