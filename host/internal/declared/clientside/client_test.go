package clientside_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/clientside"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/executor"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func TestTheCallIsGivenBack(t *testing.T) {
	h, err := clientside.New(clientside.Config{}, executor.Shape{})
	require.NoError(t, err)
	_, err = h(t.Context(), &call.Request{Tool: &call.Tool{Name: "tool"}, Params: []byte(`{"arguments":{"a": 1.0}}`)})
	var waits *call.PendingError
	require.True(t, errors.As(err, &waits))
	require.Equal(t, clientside.Reason, waits.Pending.Reason)
	require.Equal(t, "tool", waits.Pending.Tool)
	require.Equal(t, `{"a": 1.0}`, string(waits.Pending.Args))
	require.Equal(t, call.StatusPending, call.StatusOf(nil, err))
}

func TestTheClientIsAsked(t *testing.T) {
	flat := json.RawMessage(`{"type":"object","properties":{"ok":{"type":"boolean"}}}`)
	for _, c := range []struct {
		name, answer string
		output       json.RawMessage
		fault        error
		want         string
		code         toolerr.Code
	}{
		{name: "a text", answer: `{"action":"accept","content":{"result":"done"}}`, want: `{"content":[{"type":"text","text":"done"}]}`},
		{name: "JSON in the text", answer: `{"action":"accept","content":{"result":"{\"a\":1}"}}`, want: `"text":"{\"a\":1}"`},
		{name: "a form", answer: `{"action":"accept","content":{"ok":true}}`, output: flat, want: `"structuredContent":{"ok":true}`},
		{name: "a schema that is no form", answer: `{"action":"accept","content":{"result":"{}"}}`, output: json.RawMessage(`{"type":"object","properties":{"l":{"type":"array"}}}`), want: `"structuredContent":{}`},
		{name: "no", answer: `{"action":"decline"}`, want: `"isError":true`},
		{name: "malformed", answer: `[]`, code: toolerr.ResultInvalid},
		{name: "a failure", fault: errors.New("gone"), code: toolerr.ExecutionError},
	} {
		h, err := clientside.New(clientside.Config{Output: c.output}, executor.Shape{Declared: c.output != nil})
		require.NoError(t, err)
		req := &call.Request{Tool: &call.Tool{Name: "tool"}, Params: []byte(`{"arguments":{"secret":1}}`), Caller: call.Caller{Capabilities: json.RawMessage(`{"elicitation":{}}`)}}
		req.Ask = func(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
			require.Equal(t, "elicitation/create", method)
			require.True(t, json.Valid(params))
			return json.RawMessage(c.answer), c.fault
		}
		res, err := h(t.Context(), req)
		if c.code != "" {
			require.Equal(t, c.code, toolerr.CodeOf(err), c.name)
			continue
		}
		require.NoError(t, err, c.name)
		require.Contains(t, string(res.Raw), c.want, c.name)
	}
}

func TestAClientThatTakesNoFormsIsNotAsked(t *testing.T) {
	h, err := clientside.New(clientside.Config{}, executor.Shape{})
	require.NoError(t, err)
	for _, capabilities := range []string{``, `{}`, `{"elicitation":{"url":{}}}`} {
		_, err := h(t.Context(), &call.Request{
			Tool: &call.Tool{Name: "tool"}, Caller: call.Caller{Capabilities: json.RawMessage(capabilities)},
			Ask: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
				t.Error("it was asked")
				return nil, nil
			},
		})
		require.Equal(t, toolerr.PendingApproval, toolerr.CodeOf(err))
	}
}
