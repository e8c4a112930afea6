package httpapi

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/agent"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// requestOptions is a requested completion, independent of the vendor's format.
type requestOptions struct {
	llm.Request           // Tools are the client's tools
	base         string   // name of the model without the chosen tools
	only         []string // patterns of the host's tools that are offered; nil: all
	events       bool
	session      string
	caller       call.Caller
	ignored      []string
	oldFunctions bool   // OpenAI's functions, the predecessor of tools
	prefix       string // prefix of the ids of calls
	formatParam  string // name of the parameter with the format of the answer

	response *responseOptions // nil: the request is not for POST /v1/responses
}

// readModelAndTools sets the model's name and the patterns of the offered tools from MODEL|TOOL|TOOL, or
// from tools (x_tools). It returns an error if both are given.
func (q *requestOptions) readModelAndTools(tools []string) error {
	base, names, some := strings.Cut(q.Model, "|")
	q.base, q.Model, q.only = strings.TrimSpace(base), "", tools
	if !some {
		return nil
	}
	if tools != nil {
		return invalid("x_tools", "tools are selected both by x_tools and after | in model; give only one")
	}
	q.only = []string{}
	for name := range strings.SplitSeq(names, "|") {
		if name = strings.TrimSpace(name); name != "" {
			q.only = append(q.only, name)
		}
	}
	return nil
}

// A completion is a running completion.
type completion struct {
	api         *API
	q           *requestOptions
	cfg         agent.Config
	history     []llm.Message // conversation for the model
	newMessages []llm.Message // its messages from the request that a session does not have
	model       string        // name in the answer
	end         func() error

	ids map[string]string // ids of the client's calls: the run's id → the client's id
}

// newCompletion returns a completion with its model, conversation and tools. The caller must call
// done. It returns status 429 if too many completions run. After an error done need not be
// called.
func (a *API) newCompletion(ctx context.Context, q *requestOptions) (c *completion, done func(), err error) {
	if a.cfg.Models == nil {
		return nil, nil, &apiError{status: http.StatusServiceUnavailable, code: string(toolerr.NoModel), message: "this host has no models"}
	}
	select {
	case a.running <- struct{}{}:
	default:
		return nil, nil, tooMany(time.Second)
	}
	leave := func() { <-a.running }
	defer func() {
		if err != nil {
			leave()
		}
	}()
	model, err := a.cfg.Models.Get(ctx, q.base)
	if err != nil {
		return nil, nil, modelError(err)
	}
	if q.Format != nil && model.Info().Vendor != llm.OpenAI {
		return nil, nil, invalid(q.formatParam, `for the model %.100[2]s, %[1]s must be {"type":"text"}; ask for JSON in the prompt, declare a tool with this schema as its arguments, or use a model of an OpenAI-compatible provider`, q.formatParam, model.Info().Name)
	}
	c = &completion{api: a, q: q, model: cmp.Or(q.base, model.Info().Name), ids: map[string]string{}, end: func() error { return nil }}
	if err := c.setHistory(ctx); err != nil {
		return nil, nil, err
	}
	c.cfg = agent.Config{Model: model, CallerTools: q.Tools, Request: q.Request, Bounds: a.cfg.Bounds}
	c.cfg.Request.Tools, c.cfg.Request.Messages, c.cfg.Request.Stream = nil, nil, false
	if a.cfg.Tools != nil && (q.only == nil || len(q.only) > 0) {
		c.cfg.Tools, c.end = a.cfg.Tools.Turn(q.caller, q.only)
	}
	if err := c.checkTools(ctx); err != nil {
		c.end() //nolint:errcheck // no call was made yet
		return nil, nil, err
	}
	return c, leave, nil
}

// checkTools returns an error if a pattern of the offered tools matches none, or if tool_choice
// names a tool that is not offered.
func (c *completion) checkTools(ctx context.Context) error {
	choice := c.q.Choice
	if c.q.only == nil && (choice == nil || len(choice.ToolNames) == 0) {
		return nil
	}
	var all []*call.Tool
	if c.api.cfg.Tools != nil {
		all = c.api.cfg.Tools.List(ctx)
	}
	for _, pattern := range c.q.only {
		if !slices.ContainsFunc(all, func(t *call.Tool) bool { return catalog.MatchesAny([]string{pattern}, t.Name) }) {
			return &apiError{status: http.StatusBadRequest, code: string(toolerr.ToolNotFound), param: "x_tools",
				message: "no tool " + truncate(pattern, 100) + "; GET /v1/tools lists the tools"}
		}
	}
	if choice == nil {
		return nil
	}
	for _, name := range choice.ToolNames {
		theirs := slices.ContainsFunc(c.q.Tools, func(t llm.Tool) bool { return t.Name == name })
		ours := slices.ContainsFunc(all, func(t *call.Tool) bool { return t.Name == name }) && (c.q.only == nil || catalog.MatchesAny(c.q.only, name))
		if !theirs && !ours {
			return &apiError{status: http.StatusBadRequest, code: string(toolerr.ToolNotFound), param: "tool_choice",
				message: "tool_choice names " + truncate(name, 100) + ", which is not a tool of this request"}
		}
	}
	return nil
}

// run runs the agent until it ends or ctx ends, and ends the turn. The agent's events go to
// on (nil: to nobody). If the policy refuses the end of the turn, an answer becomes
// EndDenied.
func (c *completion) run(ctx context.Context, on func(agent.Event)) *agent.Outcome {
	c.cfg.On = on
	o := agent.Run(ctx, c.cfg, c.history)
	if err := c.end(); err != nil && o.Ending == agent.EndGoal {
		o.Ending, o.Err = agent.EndDenied, err
	}
	return o
}

// clientCalls returns the calls of the client's tools. It changes calls.
func (c *completion) clientCalls(calls []*llm.ToolCall) []*llm.ToolCall {
	return slices.DeleteFunc(calls, func(one *llm.ToolCall) bool { return !c.isClientTool(one.Name) })
}

// isClientTool reports whether the client has declared a tool.
func (c *completion) isClientTool(name string) bool {
	return slices.ContainsFunc(c.q.Tools, func(t llm.Tool) bool { return t.Name == name })
}

// newID returns a unique id of a call for the client. The stored answer is found by
// it.
func (c *completion) newID() string { return c.q.prefix + strings.ToLower(rand.Text()) }

// assignIDs sets, in c.ids, the client's ids of the calls of an answer: sentIDs, which were
// sent, in their order, and new ones for the rest.
func (c *completion) assignIDs(answer *llm.Response, sentIDs []string) {
	for i, one := range c.clientCalls(answer.Calls()) {
		if i < len(sentIDs) {
			c.ids[one.ID] = sentIDs[i]
			continue
		}
		c.ids[one.ID] = c.newID()
	}
}

// withClientIDs returns a copy of messages of the run, with the ids of calls that the client got.
func (c *completion) withClientIDs(messages []llm.Message) []llm.Message {
	out := slices.Clone(messages)
	for i, m := range out {
		for j, p := range m.Parts {
			if p.ToolCall == nil || c.ids[p.ToolCall.ID] == "" {
				continue
			}
			named := *p.ToolCall
			named.ID = c.ids[named.ID]
			out[i].Parts = slices.Clone(out[i].Parts)
			out[i].Parts[j].ToolCall = &named
		}
	}
	return out
}

// storeTimeout limits storing the result of an answer, also after the client has
// disconnected.
const storeTimeout = 10 * time.Second

// storeMessages stores the new messages in the session, if the request has one. Otherwise,
// if the client has to make calls, it stores the messages of the answer that the client
// does not get. It waits at most storeTimeout, even if ctx has ended. answerText is the
// text that the client got.
func (c *completion) storeMessages(ctx context.Context, o *agent.Outcome, answerText string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	messages := c.withClientIDs(o.Messages)
	if c.q.session != "" {
		_, err := c.api.cfg.Sessions.Append(ctx, c.q.session, append(slices.Clone(c.newMessages), messages...)...)
		if err == nil {
			_, err = c.api.cfg.Sessions.SetModel(ctx, c.q.session, c.model)
		}
		return err
	}
	if len(o.CallerCalls) == 0 || c.q.oldFunctions || c.api.cfg.Keys == nil {
		return nil
	}
	return c.api.storeTurn(ctx, messages, answerText)
}

// outcomeError returns the error for the client of a run without an answer; nil: there is an
// answer, possibly incomplete.
func outcomeError(ctx context.Context, o *agent.Outcome) error {
	said := o.Response != nil && len(o.Response.Parts) > 0
	switch o.Ending {
	case agent.EndGoal, agent.EndCallerTools, agent.EndLength, agent.EndRefused, agent.EndEmpty, agent.EndPending:
		return nil
	case agent.EndModelError:
		return modelError(cmp.Or(o.Err, error(toolerr.New(toolerr.ModelError, "the model failed"))))
	case agent.EndDenied:
		return cmp.Or(o.Err, error(toolerr.New(toolerr.PolicyDenied, "the policy allows none of the requested tools")))
	case agent.EndContext:
		if o.HasSummary {
			return nil
		}
		return modelError(toolerr.New(toolerr.LimitReached, "%w", cmp.Or(o.Err, errors.New("the conversation does not fit the model"))))
	case agent.EndCancelled:
		return &apiError{status: http.StatusServiceUnavailable, code: string(toolerr.Cancelled), message: cmp.Or(context.Cause(ctx), context.Canceled).Error()}
	case agent.EndTime:
		if !said {
			return &apiError{status: http.StatusGatewayTimeout, code: string(toolerr.Timeout), message: "the model did not answer in time"}
		}
		return nil
	case agent.EndJournalError:
		return o.Err
	}
	if !said && o.Err != nil {
		return modelError(o.Err)
	}
	return nil
}

// endingText describes the end of a run that did not reach its goal; "": it did.
func endingText(o *agent.Outcome) string {
	switch o.Ending {
	case agent.EndGoal, agent.EndCallerTools, agent.EndLength, agent.EndRefused:
		return ""
	}
	return string(o.Ending)
}

// stopReason returns why the answer ended. Each vendor's format has its own name for it.
func stopReason(o *agent.Outcome) llm.StopReason {
	switch {
	case len(o.CallerCalls) > 0:
		return llm.StopCalls
	case o.Ending == agent.EndLength:
		return llm.StopLength
	case o.Ending == agent.EndRefused:
		return llm.StopRefusal
	case o.Ending == agent.EndGoal && o.Response != nil && o.Response.StopReason != llm.StopCalls && o.Response.StopReason != "":
		return o.Response.StopReason
	case o.Ending == agent.EndGoal, o.Ending == agent.EndEmpty, o.Ending == agent.EndPending, o.HasSummary:
		return llm.StopEnd
	}
	return llm.StopLength
}
