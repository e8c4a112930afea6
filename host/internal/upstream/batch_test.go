package upstream_test

import (
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// batches are what old servers answer a call with: arrays of messages, the
// answer among them. %s is the call's id.
func batches() map[string]string {
	const result = `{"jsonrpc":"2.0","id":%s,"result":{"content":[],"n":1.0}}`
	return map[string]string{
		"one":                  `[` + result + `]`,
		"with blanks":          ` [ ` + result + ` ] `,
		"after a notice":       `[{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}},` + result + `]`,
		"before another's":     `[` + result + `,{"jsonrpc":"2.0","id":999999,"result":{}}]`,
		"among what is none":   `[{"a":[[]]},1,"x",null,[],[` + result + `],` + result + `]`,
		"without its end":      `[` + result + `,{"jsonrpc":"2.0"`,
		"with a broken letter": "[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\",\"params\":{\"a\":\"\xff\"}}," + result + "]",
	}
}

// An array of messages, legal in version 2025-03-26, is taken as its messages.
func TestABatchIsTakenAsItsMessages(t *testing.T) {
	t.Parallel()
	for name, batch := range batches() {
		s := saying(t, nil, func(out io.Writer, id, _ string) {
			fmt.Fprintln(out, strings.ReplaceAll(batch, "%s", id))
		})
		require.Equal(t, `{"content":[],"n":1.0}`, mustDo(t, s, "t", `{}`), name)
		for media, form := range map[string]string{"application/json": "%s", "text/event-stream": "data: %s\n\n"} {
			s := web(t, func(w http.ResponseWriter, _ *http.Request, id, _ string) {
				w.Header().Set("Content-Type", media)
				fmt.Fprintf(w, form, strings.ReplaceAll(batch, "%s", id))
			}, nil)
			require.Equal(t, `{"content":[],"n":1.0}`, mustDo(t, s, "t", `{}`), "%s, %s", name, media)
		}
	}
}

// Several calls may be answered in one.
func TestABatchAnswersSeveralCalls(t *testing.T) {
	t.Parallel()
	first := make(chan string, 1)
	var calls atomic.Int32
	s := saying(t, nil, func(out io.Writer, id, arguments string) {
		if calls.Add(1) == 1 {
			first <- id + " " + arguments
			return
		}
		other, theirs, _ := strings.Cut(<-first, " ")
		fmt.Fprintf(out, `[{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%q}]}},{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%q}]}}]`+"\n", id, arguments, other, theirs)
	})
	_, err := s.Tools(t.Context())
	require.NoError(t, err)
	echoAtOnce(t, s, 2, 1)
}

// What the server asks in a batch is answered, and what cannot be read is an
// error at once where it shows whose answer it was to be.
func TestABatchMayAskAndBeMalformed(t *testing.T) {
	t.Parallel()
	s := saying(t, func(c *upstream.Config) { c.Roots = func() []string { return []string{"file:///a"} } }, func(out io.Writer, id, arguments string) {
		if strings.Contains(arguments, "ask") {
			fmt.Fprintf(out, `[{"jsonrpc":"2.0","id":"q","method":"ping"},{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}]`+"\n", id)
			return
		}
		fmt.Fprintf(out, `[{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":%s,"result":{"content":[}}]`+"\n", id)
	})
	mustDo(t, s, "t", `{"ask":1}`)
	_, err := do(t.Context(), s, "t", `{}`)
	require.Equal(t, toolerr.ProtocolError, toolerr.CodeOf(err), "%v", err)
	require.ErrorContains(t, err, "the server's answer is malformed")
}

// Lines that begin like one, as logs do, are noise; and one of very many
// messages, or nested without end, takes nothing with it.
func TestWhatOnlyLooksLikeABatch(t *testing.T) {
	t.Parallel()
	s := saying(t, nil, func(out io.Writer, id, _ string) {
		for _, line := range []string{`[INFO] ready`, `[]`, `["a"]`, `[[[[`, strings.Repeat("[{", 1<<16), `[{}` + strings.Repeat(",{}", 20_000) + `]`} {
			fmt.Fprintln(out, line)
		}
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`+"\n", id)
	})
	mustDo(t, s, "t", `{}`)
	require.EqualValues(t, 5+10_001, s.Status().Noise)
}

// A program's output is looked through for them, too.
func TestABatchOfAProgram(t *testing.T) {
	t.Parallel()
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell")
	}
	s := start(t, func(c *upstream.Config) {
		c.Era, c.Command = upstream.Legacy, []string{shell, "-c", `
echo "[INFO] ready"
while read -r line; do
	id=${line#*\"id\":}
	id=${id%%,*}
	case $line in
	*'"initialize"'*) echo '[{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-03-26","capabilities":{"tools":{}},"serverInfo":{"name":"x"}}}]' ;;
	*'"tools/list"'*) echo '[{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"t"}]}}]' ;;
	*'"tools/call"'*) echo ' [ {"jsonrpc":"2.0","id":'$id',"result":{"content":[]}}]' ;;
	esac
done`}
	})
	require.Equal(t, `{"content":[]}`, mustDo(t, s, "t", `{}`))
	require.EqualValues(t, 1, s.Status().Noise)
}
