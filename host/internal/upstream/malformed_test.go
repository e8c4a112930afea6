package upstream_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// saying returns a legacy server with one tool, whose calls it answers with
// what says writes, given the request's id and the call's arguments.
func saying(t *testing.T, change func(*upstream.Config), says func(out io.Writer, id, arguments string)) *upstream.Server {
	t.Helper()
	return at(t, "", func(c *upstream.Config) {
		c.Era, c.CloseGrace = upstream.Legacy, 10*time.Millisecond
		c.Serve = func(_ context.Context, in io.Reader, out io.Writer) error {
			lines := bufio.NewScanner(in)
			lines.Buffer(nil, 1<<20)
			for lines.Scan() {
				var m struct {
					ID     json.RawMessage
					Method string
					Params struct{ Arguments json.RawMessage }
				}
				if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
					return err
				}
				switch m.Method {
				case "initialize":
					fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x"}}}`+"\n", m.ID)
				case "tools/list":
					fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"t"}]}}`+"\n", m.ID)
				case "tools/call":
					go says(out, string(m.ID), string(m.Params.Arguments))
				}
			}
			return lines.Err()
		}
		if change != nil {
			change(c)
		}
	})
}

// An answer that cannot be read is an error at once, where it shows whose it was
// to be; nobody else's call is touched.
func TestAnAnswerThatCannotBeReadIsAnError(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 1500) + strings.Repeat("]", 1500)
	for name, answer := range map[string]string{
		"nested too deep":        `{"jsonrpc":"2.0","id":%s,"result":{"content":[],"structuredContent":{"a":` + deep + `}}}`,
		"the id first":           `{"id":%s,"jsonrpc":"2.0","result":{"content":[}}`,
		"a text without its end": `{"jsonrpc": "2.0", "id": %s, "result": {"content": [{"type": "text", "text": "a}]}}`,
		"an id that is a text":   `{"jsonrpc":"2.0","id":"%s","result":{"content":[}}`,
		"an error":               `{"jsonrpc":"2.0","id":%s,"error":{"code":1,}}`,
		"as the TypeScript SDK":  `{"result":{"content":[],"structuredContent":{"a":` + deep + `}},"jsonrpc":"2.0","id":%s}`,
		"two results":            `{"jsonrpc":"2.0","id":%s,"result":{"content":[]},"result":{"content":[]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			held, hold := make(chan struct{}), make(chan struct{})
			s := saying(t, nil, func(out io.Writer, id, arguments string) {
				if arguments == `{"wait":1}` {
					close(held)
					<-hold
					fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`+"\n", id)
					return
				}
				fmt.Fprintf(out, answer+"\n", id)
			})
			waited := make(chan error, 1)
			go func() {
				_, err := do(t.Context(), s, "t", `{"wait":1}`)
				waited <- err
			}()
			<-held
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := do(ctx, s, "t", `{}`)
			require.Equal(t, toolerr.ProtocolError, toolerr.CodeOf(err), "%v", err)
			require.ErrorContains(t, err, "the server's answer is malformed")
			close(hold)
			require.NoError(t, <-waited)
		})
	}
}

// What a server says of an error reaches the caller in a form that its client
// takes: a client waits on for the answer when it cannot read one.
func TestAnErrorCanBeReadByClients(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]string{
		`"error":{"code":-7,"message":"no","data":[1.0],"x":1}`: `{"code":-7,"message":"no","data":[1.0],"x":1}`,
		`"error":{"code":-7,"message":"no"},"result":null`:      `{"code":-7,"message":"no"}`,
		`"result":null,"error":{"code":7.0,"message":"no"}`:     `{"code":7,"message":"no"}`,
		`"error":{"code":"ENOENT","message":"no"}`:              `{"code":-32603,"message":"no"}`,
		`"error":{"code":1.5,"message":"no"}`:                   `{"code":-32603,"message":"no"}`,
		`"error":{"message":"no"}`:                              `{"message":"no","code":-32603}`,
		`"error":{"code":1,"data":2}`:                           `{"code":1,"data":2,"message":"{\"code\":1,\"data\":2}"}`,
		`"error":{"code":1,"message":null}`:                     `{"code":1,"message":"{\"code\":1,\"message\":null}"}`,
		`"error":{}`:                                            `{"code":-32603,"message":"{}"}`,
		`"error":{"code":1,"message":"a","message":"b"}`:        "",
		`"error":"it is down"`:                                  "",
		`"error":{"code":1,"message":"no"},"result":{}`:         "",
	} {
		s := saying(t, nil, func(out io.Writer, id, _ string) { fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", id, sent) })
		_, err := do(t.Context(), s, "t", `{}`)
		var answered *call.MCPError
		if want == "" {
			require.Equal(t, toolerr.ProtocolError, toolerr.CodeOf(err), sent)
			require.NotErrorAs(t, err, &answered)
			continue
		}
		require.ErrorAs(t, err, &answered, sent)
		require.Equal(t, want, string(answered.Object), sent)
	}
}

// What a server logs on its standard output is no answer, though it has an id.
func TestALogLineWithAnIDFailsNoCall(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		`{"level":"info","id":%s,"msg":"called"}`,
		`{"id":%s}`,
		`{"id":%s,"body":"{\"jsonrpc\":\"2.0\"}"}`,
		`{"jsonrpc":"2.0","id":%s,"method":"","params":{}}`,
		`{"jsonrpc":"2.0","id":%s,"method":"x","result":{}}`,
	} {
		s := saying(t, nil, func(out io.Writer, id, _ string) {
			fmt.Fprintf(out, line+"\n", id)
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"content":[],"n":1.0}}`+"\n", id)
		})
		require.Equal(t, `{"content":[],"n":1.0}`, mustDo(t, s, "t", `{}`), line)
		require.EqualValues(t, 1, s.Status().Noise, line)
	}
}

// What is too long and no answer is dropped: no call waits for it.
func TestATooLongNotificationFailsNoCall(t *testing.T) {
	t.Parallel()
	pad := strings.Repeat("x", 1<<17)
	for name, line := range map[string]string{
		"a notification":                 `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"` + pad + `"}}`,
		"the method first":               `{"method":"notifications/message","params":{"data":"` + pad + `"},"jsonrpc":"2.0"}`,
		"a request with the call's id":   `{"jsonrpc":"2.0","id":%s,"method":"sampling/createMessage","params":{"x":"` + pad + `"}}`,
		"a request whose id is a text":   `{"jsonrpc":"2.0","id":"%s","method":"ping","params":{"x":"` + pad + `"}}`,
		"a request, and the method last": `{"id":%s,"jsonrpc":"2.0","method":"ping","params":{"x":"` + pad + `"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := saying(t, func(c *upstream.Config) { c.MaxLine = 1 << 16 }, func(out io.Writer, id, _ string) {
				fmt.Fprintln(out, strings.ReplaceAll(line, "%s", id))
				fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"content":[],"n":1.0}}`+"\n", id)
			})
			require.Equal(t, `{"content":[],"n":1.0}`, mustDo(t, s, "t", `{}`))
		})
	}
}

// A server may answer while it still waits for the client's answer to a
// question. The question is over before the call is.
func TestNobodyIsAskedAfterTheCall(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	s := saying(t, nil, func(out io.Writer, id, _ string) {
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"who?"}}`+"\n")
		<-asked
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`+"\n", id)
	})
	over := false
	_, err := s.Call(t.Context(), askingCall("t", func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
		close(asked)
		<-ctx.Done()
		time.Sleep(20 * time.Millisecond) // as long as it takes to tell the client
		over = true
		return nil, ctx.Err()
	}))
	require.NoError(t, err)
	require.True(t, over)
}

// A list that clients of the host could not read is none.
func TestAListIsBounded(t *testing.T) {
	t.Parallel()
	pages := 0
	s := at(t, "", func(c *upstream.Config) {
		c.Era, c.StartTimeout = upstream.Legacy, 10*time.Minute // a list of 8 MiB is a part of the start
		c.Serve = answering(func(string) string {
			pages++
			return fmt.Sprintf(`{"tools":[{"name":"t%d","description":%q}],"nextCursor":"%d"}`, pages, strings.Repeat("x", 1<<20), pages)
		})
	})
	_, err := s.Tools(t.Context())
	require.ErrorContains(t, err, "more than 8388608 bytes")
	require.Less(t, pages, 12)
}

// What the host itself asks of a server with a run for each caller, as for all
// that have subscribed, goes to the run that lists: it stays.
func TestMessagesOfTheHostGoToTheRunThatLists(t *testing.T) {
	t.Parallel()
	for _, scope := range []upstream.Scope{upstream.PerSession, upstream.PerCall} {
		s := everything(t, "legacy", func(c *upstream.Config) { c.Scope = scope })
		told := make(chan string, 10)
		s.OnNotification(func(method string, params json.RawMessage, _ *call.Owner) { told <- method + " " + string(params) })
		_, err := s.Forward(t.Context(), &call.UpstreamRequest{Method: "resources/subscribe", Params: json.RawMessage(`{"uri":"test://watched-resource"}`)})
		require.NoError(t, err)
		require.Contains(t, <-told, `"uri":"test://watched-resource"`)
		require.Zero(t, s.Status().Callers)
		require.Equal(t, upstream.Ready, s.Status().State, scope)
	}
}

// The completion of a URL elicitation is sent to the caller whose question it was.
func TestTheEndOfAQuestionElsewhereIsTold(t *testing.T) {
	t.Parallel()
	told := make(chan string, 1)
	s := saying(t, nil, func(out io.Writer, id, _ string) {
		fmt.Fprintln(out, `{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"e","x":1.0}}`)
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`+"\n", id)
	})
	s.OnNotification(func(method string, params json.RawMessage, _ *call.Owner) { told <- method + " " + string(params) })
	mustDo(t, s, "t", `{}`)
	require.Equal(t, `notifications/elicitation/complete {"elicitationId":"e","x":1.0}`, <-told)
}
