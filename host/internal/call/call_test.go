package call_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func TestChainRunsTheFirstStageOutermost(t *testing.T) {
	var order []string
	stage := func(name string) call.Stage {
		return func(next call.Handler) call.Handler {
			return func(ctx context.Context, req *call.Request) (*call.Result, error) {
				order = append(order, name+">")
				defer func() { order = append(order, "<"+name) }()
				return next(ctx, req)
			}
		}
	}
	h := call.Chain(func(context.Context, *call.Request) (*call.Result, error) {
		order = append(order, "route")
		return nil, nil
	}, stage("a"), stage("b"))
	_, err := h(t.Context(), &call.Request{})
	require.NoError(t, err)
	require.Equal(t, []string{"a>", "b>", "route", "<b", "<a"}, order)
}

func TestErrorsCarryTheirCodes(t *testing.T) {
	cause := toolerr.New(toolerr.ServerOffline, "it exited")
	for _, c := range []struct {
		err  error
		code toolerr.Code
		text string
	}{
		{&call.MCPError{Server: "s", Code: -32602, Message: "no such tool"}, toolerr.ProtocolError, "server s answered with error -32602: no such tool"},
		{&call.ExecutionError{Tool: "t", Phase: call.PhaseConnect, Message: "server s is offline", Cause: cause}, toolerr.ServerOffline, "server s is offline: it exited"},
		{&call.ExecutionError{Message: "odd"}, toolerr.ExecutionError, "odd"},
		{&call.ValidationError{Type: call.ArgsInvalid, Tool: "t", Detail: "/a must be a string", Path: "/a"}, toolerr.InvalidParams, "t: /a must be a string"},
		{&call.ValidationError{Type: call.ResultInvalid, Tool: "t", Detail: "odd"}, toolerr.ResultInvalid, "t: odd"},
		{&call.ValidationError{Type: call.PolicyViolation, Tool: "t", Detail: "no"}, toolerr.PolicyDenied, "t: no"},
		{&call.ValidationError{Type: call.PolicyViolation, Tool: "t", Detail: "no", Cause: toolerr.New(toolerr.LimitReached, "no")}, toolerr.LimitReached, "t: no"},
		{&call.TimeoutError{Tool: "t", After: time.Second}, toolerr.Timeout, "t did not answer within 1s; narrow the call and try again"},
	} {
		require.Equal(t, c.code, toolerr.CodeOf(c.err))
		require.EqualError(t, c.err, c.text)
	}
	require.True(t, errors.Is(&call.TimeoutError{}, context.DeadlineExceeded))
}

func TestArgumentsAreSplitOnce(t *testing.T) {
	for _, c := range []struct{ params, want, err string }{
		{``, `{}`, ""},
		{`{}`, `{}`, ""},
		{`{"name":"x","arguments":null}`, `{}`, ""},
		{`{"name":"x","arguments": {"a": 1.0} }`, `{"a": 1.0}`, ""},
		{`{"arguments":{},"arguments":{"a":1}}`, ``, `params of tools/call: member "arguments" appears more than once`},
		{`[]`, ``, "params of tools/call: not JSON at byte 0: expected {"},
	} {
		req := &call.Request{Params: []byte(c.params)}
		for range 2 {
			got, err := req.Arguments()
			require.Equal(t, c.want, string(got))
			if c.err == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, c.err)
			}
		}
	}
}

func TestIsErrorIsReadFromTheTopLevel(t *testing.T) {
	for raw, want := range map[string]bool{
		`{"content":[]}`:                                     false,
		`{"content":[],"isError":true}`:                      true,
		`{"content":[], "isError" : true }`:                  true,
		`{"content":[],"isError":false}`:                     false,
		`{"structuredContent":{"isError":true}}`:             false,
		`{"content":[{"type":"text","text":"\"isError\""}]}`: false,
		`["isError"]`:                                        false,
	} {
		require.Equal(t, want, (&call.Result{Raw: []byte(raw)}).IsError(), raw)
	}
}

func TestElicitation(t *testing.T) {
	for capabilities, want := range map[string][2]bool{
		``:                                     {false, false},
		`{}`:                                   {false, false},
		`{"elicitation":null}`:                 {false, false},
		`{"elicitation":1}`:                    {false, false},
		`{"elicitation":{}}`:                   {true, false},
		`{"elicitation":{"form":{}}}`:          {true, false},
		`{"elicitation":{"url":{}}}`:           {false, true},
		`{"elicitation":{"url":null}}`:         {true, false},
		`{"elicitation":{"form":{},"url":{}}}`: {true, true},
	} {
		forms, links := call.Caller{Capabilities: json.RawMessage(capabilities)}.Elicitation()
		require.Equal(t, want, [2]bool{forms, links}, capabilities)
	}
}
