package mcpkittest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

func TestMain(m *testing.M) {
	mcpkittest.MockChild()
	os.Exit(m.Run())
}

// In the tests of a client, the mock takes the place of a server.
func ExampleMock() {
	mock := mcpkittest.NewMock("weather")
	mock.AddTool("forecast", `{"description":"Tomorrow's weather.","annotations":{"readOnlyHint":true}}`)
	mock.SetResponse("forecast", "rain")

	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"forecast","arguments":{"city":"Ulm"}}}` + "\n")
	var out strings.Builder
	if err := mock.Serve(context.Background(), in, &out); err != nil {
		panic(err)
	}
	fmt.Print(out.String())
	for _, c := range mock.Calls() {
		fmt.Println(c.Tool, string(c.Arguments))
	}
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"rain"}]}}
	// forecast {"city":"Ulm"}
}

func child(t *testing.T, m *mcpkittest.Mock, o mcpkittest.Options) *mcpkittest.Client {
	t.Helper()
	command, env := m.Command(t)
	o.Env = env
	return mcpkittest.StartWith(t, command[0], o)
}

func TestMockAsAChild(t *testing.T) {
	m := mcpkittest.NewMock("m")
	for _, name := range []string{"a", "b", "c"} {
		m.AddTool(name, "")
	}
	m.SetPageSize(2)
	c := child(t, m, mcpkittest.Options{})
	var page struct {
		Tools      []struct{ Name string }
		NextCursor string
	}
	require.NoError(t, json.Unmarshal(c.Request("tools/list", nil).Result, &page))
	require.Len(t, page.Tools, 2)
	require.NoError(t, json.Unmarshal(c.Request("tools/list", map[string]any{"cursor": page.NextCursor}).Result, &page))
	require.Equal(t, "c", page.Tools[0].Name)

	m.SetToolError("b", "no")
	require.JSONEq(t, `{"content":[{"type":"text","text":"no"}],"isError":true}`, string(c.Request("tools/call", map[string]any{"name": "b"}).Result))
	m.SetFault("a", mcpkittest.Fault{Error: &mcpkittest.RPCError{Code: -32603, Message: "odd"}, Times: 1})
	require.EqualError(t, c.Request("tools/call", map[string]any{"name": "a"}).Error, "-32603 odd")
	require.Nil(t, c.Request("tools/call", map[string]any{"name": "a"}).Error, "once")
	require.Equal(t, -32602, c.Request("tools/call", map[string]any{"name": "x"}).Error.Code)
	require.Equal(t, -32601, c.Request("no/such", nil).Error.Code)
	m.NotifyListChanged()
	c.Until("the notification", func() bool { return true })
	require.Eventually(t, func() bool { return len(c.Notifications("notifications/tools/list_changed")) == 1 }, mcpkittest.MaxWait, 1e6)
	require.Len(t, m.Calls(), 4)
	m.ForgetCalls()
	require.Empty(t, m.Calls())
	c.CloseInput()
	require.Zero(t, c.Wait())
}

func TestMockCrashesAsAChild(t *testing.T) {
	m := mcpkittest.NewMock("m")
	m.AddTool("a", "")
	m.SetCrash("a")
	c := child(t, m, mcpkittest.Options{})
	c.Go("tools/call", map[string]any{"name": "a"})
	require.Equal(t, 1, c.Wait())
}

func TestMockTakesACancel(t *testing.T) {
	m := mcpkittest.NewMock("m")
	m.AddTool("a", "")
	hold := make(chan struct{})
	m.SetFault("a", mcpkittest.Fault{Hold: hold})
	c := child(t, m, mcpkittest.Options{})
	id := c.Go("tools/call", map[string]any{"name": "a"})
	c.Notify("notifications/cancelled", map[string]any{"requestId": json.Number(id)})
	require.Eventually(t, func() bool { calls := m.Calls(); return len(calls) == 1 && calls[0].Cancelled }, mcpkittest.MaxWait, 1e6)
	close(hold)
	require.NotNil(t, c.Request("ping", nil).Result)
	require.Empty(t, c.Untaken(), "no answer to what was taken back")
}

func TestMockOverHTTP(t *testing.T) {
	m := mcpkittest.NewMock("m")
	m.AddTool("a", "")
	m.RequireBearer("sesame")
	web := httptest.NewServer(m)
	defer web.Close()
	post := func(token, body string) (*http.Response, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL, strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+token)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, err.Error()
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return res, string(text)
	}
	call := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":1}}}`
	res, _ := post("wrong", call)
	require.Equal(t, http.StatusUnauthorized, res.StatusCode)
	require.Contains(t, res.Header.Get("WWW-Authenticate"), "Bearer")
	require.Empty(t, m.Calls())
	_, text := post("sesame", call)
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"{\"x\":1}"}]}}`, text)
	res, _ = post("sesame", `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	require.Equal(t, http.StatusAccepted, res.StatusCode)
	res, _ = post("sesame", `{`)
	require.Equal(t, http.StatusBadRequest, res.StatusCode)
	m.SetCrash("a")
	res, text = post("sesame", call)
	require.Nil(t, res)
	require.Contains(t, text, "EOF")
}
