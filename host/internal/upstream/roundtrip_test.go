package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/internal/testkit/conformanceserver"
)

// everything returns a server of that era that has all there is.
func everything(t *testing.T, era string, change func(*upstream.Config)) *upstream.Server {
	t.Helper()
	cfg := upstream.Config{Name: "s", Serve: func(_ context.Context, in io.Reader, out io.Writer) error {
		conformanceserver.Serve(in, out, era)
		return nil
	}}
	if change != nil {
		change(&cfg)
	}
	s, err := upstream.New(cfg, nil)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// client answers what it is asked, and remembers it.
type client struct {
	mu    sync.Mutex
	asked []string
}

func (c *client) ask(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, method+" "+string(params))
	switch method {
	case "sampling/createMessage":
		return json.RawMessage(`{"content":{"text":"<Paris>"}}`), nil
	case "roots/list":
		return json.RawMessage(`{"roots":[{"uri":"file:///r"}]}`), nil
	}
	return json.RawMessage(`{"action":"accept","content":{"n":1.0}}`), nil
}

const allCaps = `{"elicitation":{},"sampling":{},"roots":{}}`

func askingCall(tool string, ask call.Ask) *call.Request {
	return &call.Request{
		Tool: &call.Tool{Name: tool, Server: "s", Original: tool}, Params: json.RawMessage(`{"arguments":{}}`), Ask: ask,
		Caller: call.Caller{ID: "me", Capabilities: json.RawMessage(allCaps)},
	}
}

// A caller that is asked by requests does not see which era its server is of.
func TestServersOfBothErasAskTheCallersClient(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		s := everything(t, era, nil)
		for _, c := range []struct {
			tool  string
			asked []string
			text  string
		}{
			{"test_input_required_result_elicitation", []string{"elicitation/create"}, `Hello, {"action":"accept","content":{"n":1.0}}`},
			{"test_input_required_result_sampling", []string{"sampling/createMessage"}, `The model says: {"content":{"text":"<Paris>"}}`},
			{"test_input_required_result_request_state", []string{"elicitation/create"}, `state-ok: {"action":"accept","content":{"n":1.0}}`},
			{"test_input_required_result_multi_round", []string{"elicitation/create", "elicitation/create"}, `Both steps: {"action":"accept","content":{"n":1.0}}`},
			{"test_input_required_result_multiple_inputs", []string{"elicitation/create", "sampling/createMessage", "roots/list"},
				`All: {"action":"accept","content":{"n":1.0}}{"content":{"text":"<Paris>"}}{"roots":[{"uri":"file:///r"}]}`},
		} {
			me := &client{}
			res, err := s.Call(t.Context(), askingCall(c.tool, me.ask))
			require.NoError(t, err, "%s %s", era, c.tool)
			require.Equal(t, c.text, textOf(t, string(res.Raw)), "%s %s", era, c.tool)
			require.Len(t, me.asked, len(c.asked))
			for i, method := range c.asked {
				require.True(t, strings.HasPrefix(me.asked[i], method+" {"), me.asked[i])
			}
		}
		me := &client{}
		raw, err := s.Forward(t.Context(), &call.UpstreamRequest{
			Server: "s", Method: "prompts/get", Params: json.RawMessage(`{"name":"test_input_required_result_prompt"}`), Ask: me.ask,
			Caller: call.Caller{Capabilities: json.RawMessage(allCaps)},
		})
		require.NoError(t, err)
		require.Contains(t, string(raw), "Use this context")
		require.Len(t, me.asked, 1)
	}
}

// A modern caller gets a modern server's question as it is, and answers it in
// another call.
func TestAQuestionPassesBetweenModernEnds(t *testing.T) {
	s := everything(t, "modern", nil)
	req := askingCall("test_input_required_result_request_state", nil)
	req.Caller.Modern = true
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + allCaps + `}`
	req.Params = json.RawMessage(`{"arguments":{},` + meta + `}`)
	res, err := s.Call(t.Context(), req)
	require.NoError(t, err)
	var asked struct {
		ResultType, RequestState string
		InputRequests            map[string]struct{ Method string }
	}
	require.NoError(t, json.Unmarshal(res.Raw, &asked))
	require.Equal(t, "input_required", asked.ResultType)
	require.Equal(t, "elicitation/create", asked.InputRequests["confirm"].Method)
	req.Params = json.RawMessage(`{"arguments":{},"inputResponses":{"confirm":{"action":"accept"}},"requestState":"` + asked.RequestState + `",` + meta + `}`)
	res, err = s.Call(t.Context(), req)
	require.NoError(t, err)
	require.Contains(t, textOf(t, string(res.Raw)), "state-ok")
}

func TestWhoCannotBeAskedIsNot(t *testing.T) {
	refuse := func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		return nil, &call.MCPError{Code: -1, Object: json.RawMessage(`{"code":-1,"message":"<no>","data":1.0}`)}
	}
	legacy := everything(t, "legacy", nil)
	res, err := legacy.Call(t.Context(), askingCall("test_sampling", refuse))
	require.NoError(t, err)
	require.Equal(t, `refused: {"code":-1,"message":"<no>","data":1.0}`, textOf(t, string(res.Raw)), "as the client said it")
	res, err = legacy.Call(t.Context(), askingCall("test_sampling", nil))
	require.NoError(t, err)
	require.Contains(t, textOf(t, string(res.Raw)), "-32601")

	modern := everything(t, "modern", nil)
	_, err = modern.Call(t.Context(), askingCall("test_sampling", refuse))
	var refused *call.MCPError
	require.True(t, errors.As(err, &refused), "%v", err)
	_, err = modern.Call(t.Context(), askingCall("test_sampling", nil))
	require.ErrorContains(t, err, "cannot answer")
}

// With calls of two clients under way a legacy server's question could be
// either's: it is refused. One whose client is being asked already is not
// thought of.
func TestAQuestionThatCouldBeAnothersIsRefused(t *testing.T) {
	s := everything(t, "legacy", nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	at := make(chan struct{}, 2)
	waits := func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
		at <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	inBackground := func(tool, id string, ask call.Ask) {
		req := askingCall(tool, ask)
		req.Caller.ID = id
		all.Go(func() {
			_, err := s.Call(ctx, req)
			require.ErrorIs(t, err, context.Canceled)
		})
	}
	inBackground("test_elicitation", "one", waits)
	<-at
	me := &client{}
	res, err := s.Call(t.Context(), askingCall("test_sampling", me.ask))
	require.NoError(t, err)
	require.Contains(t, textOf(t, string(res.Raw)), "Paris", "the other waits for its own answer")

	inBackground("test_never_answered", "two", waits) // of a third client, and not asked yet
	require.Eventually(t, func() bool {
		res, err := s.Call(t.Context(), askingCall("test_sampling", me.ask))
		return err == nil && strings.Contains(textOf(t, string(res.Raw)), "several clients")
	}, time.Minute, time.Millisecond)
}

func TestListsOfAllKinds(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		s := everything(t, era, nil)
		for kind, first := range map[call.ListKind]string{
			call.Tools: `"test_simple_text"`, call.Resources: `"test://static-text"`,
			call.Templates: `"test://template/{id}/data"`, call.Prompts: `"test_simple_prompt"`,
		} {
			items, err := s.List(t.Context(), kind)
			require.NoError(t, err)
			require.Contains(t, string(items[0]), first)
		}
		require.True(t, s.DeclaresCapability(t.Context(), "completions"))
		require.False(t, s.DeclaresCapability(t.Context(), "holograms"))
		raw, err := s.Forward(t.Context(), &call.UpstreamRequest{Method: "resources/read", Params: json.RawMessage(`{"uri":"test://static-text"}`)})
		require.NoError(t, err)
		require.Contains(t, string(raw), "This is the content of the static text resource.")
		_, err = s.Forward(t.Context(), &call.UpstreamRequest{Method: "resources/read", Params: json.RawMessage(`{"uri":"test://no"}`)})
		var answered *call.MCPError
		require.True(t, errors.As(err, &answered))
		require.Equal(t, "s", answered.Server)
	}
}

// A change is notified in both eras, and the list is requested again.
func TestNotificationsOfNoRequest(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		s := everything(t, era, nil)
		told := make(chan string, 10)
		s.OnNotification(func(method string, params json.RawMessage, _ *call.Owner) { told <- method + " " + string(params) })
		before, err := s.List(t.Context(), call.Prompts)
		require.NoError(t, err)
		_, err = s.Call(t.Context(), askingCall("test_trigger_prompt_change", nil))
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(<-told, "notifications/prompts/list_changed "))
		after, err := s.List(t.Context(), call.Prompts)
		require.NoError(t, err)
		require.Len(t, after, len(before)+1)

		_, err = s.Forward(t.Context(), &call.UpstreamRequest{Method: "resources/subscribe", Params: json.RawMessage(`{"uri":"test://watched-resource"}`)})
		require.NoError(t, err)
		note := <-told
		require.True(t, strings.HasPrefix(note, "notifications/resources/updated "), note)
		require.Contains(t, note, `"uri":"test://watched-resource"`)
	}
}

func TestLogMessagesReachTheCallTheyBelongTo(t *testing.T) {
	for _, era := range []string{"legacy", "modern"} {
		s := everything(t, era, nil)
		s.SetLogLevel("info")
		var got []string
		req := askingCall("test_tool_with_logging", nil)
		req.Caller.LogLevel = "info"
		req.OnNotify = func(method string, params json.RawMessage) { got = append(got, method+" "+string(params)) }
		_, err := s.Call(t.Context(), req)
		require.NoError(t, err)
		require.Len(t, got, 3, era)
		require.Contains(t, got[0], `notifications/message {"level":"info","logger":"fixture","data":"Tool execution started"}`)
	}
}
