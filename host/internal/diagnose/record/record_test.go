package record_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/diagnose/record"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

const patience = 30 * time.Second

// recorded is the file of a session in which a client says some lines to a
// host, here a mock.
func recorded(t *testing.T, serve func(ctx context.Context, in io.Reader, out io.Writer) error, said ...string) string {
	t.Helper()
	var file, out strings.Builder
	r := record.New(&file, "1")
	err := serve(t.Context(), r.RecordInput(strings.NewReader(strings.Join(said, "\n")+"\n")), r.RecordOutput(&out))
	require.NoError(t, err)
	require.NoError(t, r.Close())
	return file.String()
}

func read(t *testing.T, text string) *record.Session {
	t.Helper()
	f, err := record.Read(strings.NewReader(text))
	require.NoError(t, err)
	return f
}

func mock() *mcpkittest.Mock {
	m := mcpkittest.NewMock("host")
	m.AddTool("a", "")
	m.AddTool("b", "")
	return m
}

func TestASessionIsPlayedAgain(t *testing.T) {
	m := mock()
	m.SetResponse("a", "first\nat 2026-01-02T03:04:05Z in 12 ms\nlast")
	text := recorded(t, m.Serve,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"a"}}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"b","arguments":{"n":1.0}}}`,
		`{broken`,
	)
	require.Contains(t, text, `{"from":"client","line":"{broken"}`)
	f := read(t, text)
	require.Equal(t, "1", f.Version)
	outcome, err := record.Replay(t.Context(), f, patience, m.Serve)
	require.NoError(t, err)
	require.Equal(t, record.Outcome{Answers: 4, Differences: []record.Difference{}}, outcome)

	m.SetResponse("a", "first\nat 2027-02-03T03:04:05Z in 13.5 ms\nlast")
	outcome, err = record.Replay(t.Context(), f, patience, m.Serve)
	require.NoError(t, err)
	require.Empty(t, outcome.Differences, "times are not compared")

	m.SetResponse("a", "first\nat another place\nlast")
	outcome, err = record.Replay(t.Context(), f, patience, m.Serve)
	require.NoError(t, err)
	require.Len(t, outcome.Differences, 1)
	d := outcome.Differences[0]
	require.Equal(t, "tools/call a", d.Request)
	require.Contains(t, strings.Split(text, "\n")[d.Line-1], `"id":"x","result"`)
	require.Contains(t, d.Diff, "   first\n-  at (…) in (…)\n+  at another place\n   last\n")

	edited := strings.Replace(text, `"pointers":[`, `"pointers":["/result/content/*/text",`, 1)
	outcome, err = record.Replay(t.Context(), read(t, edited), patience, m.Serve)
	require.NoError(t, err)
	require.Empty(t, outcome.Differences, "nor is what the file names")

	m.SetError("b", -32603, "odd")
	outcome, err = record.Replay(t.Context(), f, patience, m.Serve)
	require.NoError(t, err)
	require.Len(t, outcome.Differences, 2)
	byRequest := map[string]string{}
	for _, d := range outcome.Differences {
		byRequest[d.Request] = d.Diff
	}
	require.Contains(t, byRequest["tools/call b"], `+/error/message "odd"`)
}

func TestCredentialsAreLeftOut(t *testing.T) {
	m := mock()
	m.SetResult("a", json.RawMessage(`{"content":[{"type":"text","text":"Authorization: Bearer abcdef"}],"structuredContent":{"api_key":"k-1","n":1.50}}`))
	text := recorded(t, m.Serve,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"password":"hunter2","deep":[{"token":7}]},"_meta":{"progressToken":"p1"}}}`,
		`not json password=hunter2`,
	)
	for _, secret := range []string{"hunter2", "abcdef", "k-1", `"token":7`} {
		require.NotContains(t, text, secret)
	}
	require.Contains(t, text, `"progressToken":"p1"`, "is none")
	require.Contains(t, text, `"n":1.50`)
	require.Equal(t, 3, strings.Count(text, `"hidden":true`))
	outcome, err := record.Replay(t.Context(), read(t, text), patience, m.Serve)
	require.NoError(t, err)
	require.Empty(t, outcome.Differences)
	m.SetResponse("a", "no")
	outcome, err = record.Replay(t.Context(), read(t, text), patience, m.Serve)
	require.NoError(t, err)
	require.Equal(t, "tools/call a (credentials were left out of the request)", outcome.Differences[0].Request)
}

func TestAHostThatIsGone(t *testing.T) {
	m := mock()
	text := recorded(t, m.Serve, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`)
	m.SetCrash("a")
	outcome, err := record.Replay(t.Context(), read(t, text), patience, m.Serve)
	require.ErrorIs(t, err, mcpkittest.ErrCrashed)
	require.Equal(t, "no answer\n", outcome.Differences[0].Diff)
}

// asking is a host that asks the client before it answers, under an id that is
// another each time.
func asking(id string) func(ctx context.Context, in io.Reader, out io.Writer) error {
	return func(_ context.Context, in io.Reader, out io.Writer) error {
		lines := bufio.NewScanner(in)
		for lines.Scan() {
			var m struct {
				ID     json.RawMessage
				Method string
				Result json.RawMessage
			}
			if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
				return err
			}
			line := `{"jsonrpc":"2.0","id":` + id + `,"method":"elicitation/create","params":{}}`
			if m.Method == "" {
				if string(m.ID) != id {
					return errors.New("an answer to " + string(m.ID))
				}
				line = `{"jsonrpc":"2.0","id":1,"result":` + string(m.Result) + `}`
			}
			if _, err := io.WriteString(out, line+"\n"); err != nil {
				return err
			}
		}
		return nil
	}
}

func TestQuestionsAreAnsweredAsTheyWere(t *testing.T) {
	text := recorded(t, asking("7"),
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`, `{"jsonrpc":"2.0","id":7,"result":{"action":"accept"}}`)
	// As it is with a client that waits for the question.
	l := strings.Split(strings.TrimSpace(text), "\n")
	f := read(t, strings.Join([]string{l[0], l[1], l[3], l[2], l[4]}, "\n"))
	outcome, err := record.Replay(t.Context(), f, patience, asking(`"other"`))
	require.NoError(t, err)
	require.Equal(t, record.Outcome{Answers: 1, Differences: []record.Difference{}}, outcome)

	outcome, err = record.Replay(t.Context(), f, 300*time.Millisecond, mock().Serve)
	require.NoError(t, err)
	require.Len(t, outcome.Differences, 2)
	require.Equal(t, "the host did not send this request\n", outcome.Differences[0].Diff)
}

func TestWhatIsNoSession(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "it is empty",
		"{}":                             "line 1: not a recorded session",
		"hello":                          "line 1: not a recorded session",
		`{"toolroom_session":2}`:         "line 1: not a recorded session",
		"{\"toolroom_session\":1}\n{":    "line 2: unexpected end",
		"{\"toolroom_session\":1}\n\n{}": `line 3: "from" is ""`,
		`{"toolroom_session":1,"normalize":{"patterns":["("]}}`: "line 1: normalize: error parsing regexp",
	} {
		_, err := record.Read(strings.NewReader(text))
		require.ErrorContains(t, err, want)
	}
}

func TestAFileThatCannotBeWritten(t *testing.T) {
	r := record.New(broken{}, "1")
	require.NoError(t, mock().Serve(t.Context(), r.RecordInput(strings.NewReader("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n")), r.RecordOutput(io.Discard)))
	require.EqualError(t, r.Close(), "full")
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("full") }
