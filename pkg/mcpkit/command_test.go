package mcpkit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/buildinfo"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

const manual = `// Mcp-say says things.
//
// Bugs: none known.
package main
`

type sayArgs struct {
	Text string   `json:"text" jsonschema:"what to say"`
	Fail bool     `json:"fail,omitempty" jsonschema:"answer an error"`
	More []string `json:"more,omitempty" jsonschema:"more to say"`
}

type sayMeta struct {
	Words int `json:"words" jsonschema:"how many words"`
}

type sayRow struct {
	Word string `json:"word"`
}

// A run is one run of a command in the test.
type run struct {
	code   int
	stdout string
	stderr string
	dirs   []string
	read   bool // whether the flag --fast was given
}

// newSay makes the command, which records its inputs in r.
func newSay(t *testing.T, r *run) *mcpkit.Command {
	cmd := mcpkit.NewCommand("say", "Say", manual)
	cmd.Instructions = "Says what it is told."
	cmd.Positional = func(args []string) { r.dirs = append(r.dirs, args...) }
	cmd.Flags.BoolVar(&r.read, "fast", false, "say it fast")
	cmd.Flags.Func("root", "a `DIR`", func(s string) error { r.dirs = append(r.dirs, "root:"+s); return nil })
	cmd.Tools = func() ([]*mcpkit.Tool, error) {
		say, err := mcpkit.NewTool(mcpkit.Def{
			Name: "say", Title: "Say", Description: "Says text. <&>", Hints: mcpkit.Hints{ReadOnly: true, Idempotent: true},
			Aliases: []string{"Say", "SayTool"}, Output: sayMeta{},
		}, func(ctx context.Context, args sayArgs) (*mcpkit.Result, error) {
			if args.Fail {
				return nil, toolerr.New(toolerr.NotFound, "nothing called %s; try another", args.Text)
			}
			words := strings.Fields(args.Text)
			var rows []sayRow
			for _, w := range words {
				rows = append(rows, sayRow{w})
			}
			return &mcpkit.Result{Text: args.Text, Meta: sayMeta{len(words)}, Rows: rows}, nil
		})
		require.NoError(t, err)
		budget, err := mcpkit.NewTool(mcpkit.Def{Name: "a_budget", Title: "Budget", Description: "For tests.", MaxTokens: 50,
			Hints: mcpkit.Hints{Destructive: true, OpenWorld: true}},
			func(ctx context.Context, _ struct{}) (*mcpkit.Result, error) {
				return &mcpkit.Result{Text: strings.Repeat("x", mcpkit.Budget(ctx))}, nil
			})
		require.NoError(t, err)
		return []*mcpkit.Tool{say, budget}, nil
	}
	return cmd
}

func runSay(t *testing.T, stdin string, args ...string) *run {
	t.Helper()
	return runReader(t, strings.NewReader(stdin), args...)
}

func runReader(t *testing.T, stdin io.Reader, args ...string) *run {
	t.Helper()
	r := &run{}
	var out, errOut bytes.Buffer
	r.code = newSay(t, r).Run(t.Context(), args, stdin, &out, &errOut)
	r.stdout, r.stderr = out.String(), errOut.String()
	return r
}

// messages returns the messages that a server wrote, by id.
func (r *run) messages(t *testing.T) map[string]jsonrpc.Message {
	t.Helper()
	got := map[string]jsonrpc.Message{}
	for line := range strings.Lines(r.stdout) {
		m, err := jsonrpc.Split([]byte(line))
		require.NoError(t, err, line)
		got[string(m.ID)] = m
	}
	return got
}

func TestFlagsAnywhere(t *testing.T) {
	r := runSay(t, "", "a", "--root", "r", "b", "-fast", "c", "--root=s", "--", "--not-a-flag", "d")
	require.Equal(t, mcpkit.ExitOK, r.code, r.stderr)
	require.Equal(t, []string{"root:r", "root:s", "a", "b", "c", "--not-a-flag", "d"}, r.dirs)
	require.True(t, r.read)
	require.Empty(t, r.stdout)
}

func TestUsageErrors(t *testing.T) {
	for _, args := range [][]string{
		{"--no-such-flag"}, {"dir", "--max-tokens", "0"}, {"--max-tokens=many"}, {"--log-level", "loud"},
		{"--schema=yaml"}, {"--root"}, {"--fast=perhaps"},
	} {
		r := runSay(t, "", args...)
		require.Equal(t, mcpkit.ExitUsage, r.code, args)
		require.Empty(t, r.stdout)
		require.Contains(t, r.stderr, "mcp-say: ")
		require.Contains(t, r.stderr, "mcp-say --help")
	}
	cmd := newSay(t, &run{})
	cmd.Positional = nil
	var errOut bytes.Buffer
	require.Equal(t, mcpkit.ExitUsage, cmd.Run(t.Context(), []string{"dir"}, strings.NewReader(""), io.Discard, &errOut))
	require.Contains(t, errOut.String(), `unexpected argument "dir"`)
}

func TestToolsFail(t *testing.T) {
	cmd := mcpkit.NewCommand("bad", "Bad", "")
	cmd.Tools = func() ([]*mcpkit.Tool, error) { return nil, flag.ErrHelp }
	var errOut bytes.Buffer
	require.Equal(t, mcpkit.ExitUsage, cmd.Run(t.Context(), nil, strings.NewReader(""), io.Discard, &errOut))
	require.Contains(t, errOut.String(), "mcp-bad: ")
	cmd.Tools = func() ([]*mcpkit.Tool, error) { return nil, nil }
	require.Equal(t, mcpkit.ExitUsage, cmd.Run(t.Context(), nil, strings.NewReader(""), io.Discard, &errOut))
	cmd = newSay(t, &run{})
	cmd.Instructions = strings.Repeat("x", 1025)
	require.Equal(t, mcpkit.ExitUsage, cmd.Run(t.Context(), nil, strings.NewReader(""), io.Discard, &errOut))
	require.Contains(t, errOut.String(), "1025 bytes")
}

func TestHelp(t *testing.T) {
	for _, arg := range []string{"--help", "-h", "-help"} {
		r := runSay(t, "", "dir", arg)
		require.Equal(t, mcpkit.ExitOK, r.code)
		require.Empty(t, r.stderr)
		require.True(t, strings.HasPrefix(r.stdout, "Mcp-say says things.\n\nBugs: none known.\n"), r.stdout)
		for _, name := range []string{"--call JSON", "--schema", "--version", "--max-tokens N", "--log-level LEVEL", "--structured", "--fast", "--root DIR"} {
			require.Contains(t, r.stdout, "\n  "+name+"\n")
		}
	}
}

func TestVersion(t *testing.T) {
	r := runSay(t, "", "--version")
	require.Equal(t, mcpkit.ExitOK, r.code)
	require.Regexp(t, `^mcp-say \S+ \((revision [0-9a-f]+( modified)?, )?go\S+ \S+/\S+\)\n$`, r.stdout)
}

func TestSchema(t *testing.T) {
	r := runSay(t, "", "--schema")
	require.Equal(t, mcpkit.ExitOK, r.code)
	require.Contains(t, r.stdout, "Says text. <&>")
	list := runSay(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`).messages(t)["1"]
	require.JSONEq(t, string(list.Result), r.stdout, "the same as tools/list")

	r = runSay(t, "", "--schema=openai")
	var tools []struct {
		Type     string
		Function struct {
			Name       string
			Strict     bool
			Parameters struct {
				AdditionalProperties *bool
				Required             []string
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &tools))
	require.Equal(t, "say", tools[0].Function.Name)
	require.True(t, tools[0].Function.Strict)
	require.Equal(t, []string{"text", "fail", "more"}, tools[0].Function.Parameters.Required)
	require.False(t, *tools[0].Function.Parameters.AdditionalProperties)
}

// --max-tokens overrides each tool's budget.
func TestMaxTokens(t *testing.T) {
	const call = `{"name":"a_budget","params":{}}`
	for _, c := range []struct {
		args []string
		want int
	}{{nil, 200}, {[]string{"--max-tokens", "10"}, 40}, {[]string{"--max-tokens", "999999999"}, 1 << 20}} {
		var res struct{ Result string }
		require.NoError(t, json.Unmarshal([]byte(runSay(t, call, c.args...).stdout), &res))
		require.Len(t, res.Result, c.want)
	}
}

// --log-level trace logs messages on standard error, without file contents.
func TestTrace(t *testing.T) {
	r := runSay(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"say","arguments":{"text":"the contents of a file"}}}`, "--log-level", "trace")
	require.Contains(t, r.stderr, `mcp-say: received {"id":1,"jsonrpc":"2.0","method":"tools/call"`)
	require.Contains(t, r.stderr, `mcp-say: sent {`)
	require.NotContains(t, r.stderr, "the contents")
	require.Contains(t, r.stdout, "the contents")
	require.Empty(t, runSay(t, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "--log-level", "debug").stderr)
}

// The process is stopped by ending its context: exit code 0
// (wire/lifetime_test.go tests defect 9 with a real signal).
func TestRunStops(t *testing.T) {
	in, inWrite := io.Pipe()
	defer inWrite.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	code := make(chan int, 1)
	go func() { code <- newSay(t, &run{}).Run(ctx, nil, in, io.Discard, io.Discard) }()
	_, err := io.WriteString(inWrite, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	require.NoError(t, err)
	cancel(wire.ErrStopped)
	select {
	case got := <-code:
		require.Equal(t, mcpkit.ExitOK, got)
	case <-time.After(maxTestWait):
		require.Fail(t, "it does not stop")
	}
}

func TestOutputGone(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	defer w.Close()
	for _, c := range []struct {
		in   string
		args []string
	}{{"", []string{"--help"}}, {"", []string{"--version"}}, {"", []string{"--schema"}}, {`{"text":"x"}`, nil},
		{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, nil}} {
		var errOut bytes.Buffer
		code := newSay(t, &run{}).Run(t.Context(), c.args, strings.NewReader(c.in), w, &errOut)
		require.Equal(t, mcpkit.ExitFail, code)
		require.Contains(t, errOut.String(), "mcp-say: ")
	}
}

func TestABuildOnOneLine(t *testing.T) {
	b := buildinfo.Info{Program: "mcp-say", Version: "v1.2.3", Go: "go1.26.5", Platform: "linux/amd64"}
	require.Equal(t, "mcp-say v1.2.3 (go1.26.5 linux/amd64)", b.String())
	b.Revision = "0123456789abcdef0123"
	require.Equal(t, "mcp-say v1.2.3 (revision 0123456789ab, go1.26.5 linux/amd64)", b.String())
	b.Revision, b.Modified = "0123", true
	require.Equal(t, "mcp-say v1.2.3 (revision 0123 modified, go1.26.5 linux/amd64)", b.String())
}

// Alternative replaces serving.
func TestAlternative(t *testing.T) {
	r := &run{}
	cmd := newSay(t, r)
	cmd.Alternative = func(_ context.Context, stdout io.Writer) (int, bool) {
		fmt.Fprintln(stdout, "all is well")
		return 7, r.read
	}
	var out bytes.Buffer
	require.Equal(t, 7, cmd.Run(t.Context(), []string{"--fast"}, strings.NewReader(""), &out, io.Discard))
	require.Equal(t, "all is well\n", out.String())
}
