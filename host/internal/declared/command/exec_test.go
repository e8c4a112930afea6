package command_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	osexec "os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/command"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/executor"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/internal/testkit/leakcheck"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// program is this test's binary in the part of a tool's program.
const program = "program"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == program {
		os.Exit(play(os.Args[2:]))
	}
	os.Exit(leakcheck.Tests{Tests: m}.Run())
}

// play does what its arguments say.
func play(args []string) int {
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 9
	}
	switch args[0] {
	case "say":
		fmt.Print(args[1])
	case "echo":
		fmt.Printf(`{"result":%s}`, strings.TrimSpace(string(input)))
	case "env":
		names := os.Environ()
		slices.Sort(names)
		raw, _ := json.Marshal(map[string]any{"result": names}) //nolint:errcheck // texts
		fmt.Printf("%s", raw)
	case "die":
		fmt.Fprint(os.Stderr, "boom")
		fmt.Print(args[1])
		return 3
	case "flood":
		for {
			if _, err := os.Stdout.WriteString(strings.Repeat("x", 1<<16)); err != nil {
				return 0
			}
		}
	case "child": // leaves a child behind that says that it is there, and waits with it
		self, err := os.Executable()
		if err != nil {
			return 9
		}
		c := osexec.Command(self, program, "hold", args[1])
		c.Stdout = os.Stdout
		if err := c.Start(); err != nil {
			return 9
		}
		if args[2] == "leave" {
			for {
				if _, err := os.Stat(args[1]); err == nil {
					fmt.Print(`{"result":"left"}`)
					return 0
				}
				time.Sleep(time.Millisecond)
			}
		}
		c.Wait() //nolint:errcheck // it is killed
	case "hold": // appends to a file for ever
		for {
			f, err := os.OpenFile(args[1], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				return 9
			}
			f.WriteString("x") //nolint:errcheck // it is looked at
			f.Close()          //nolint:errcheck // the same
			time.Sleep(2 * time.Millisecond)
		}
	}
	return 0
}

func run(t *testing.T, ctx context.Context, c command.Config, args ...string) (*call.Result, error) { //nolint:revive // t is first in tests
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	c.Command = append([]string{self, program}, args...)
	env := map[string]secret.Text{"GORACE": "atexit_sleep_ms=0"} // its environment is clean
	maps.Copy(env, c.Env)
	c.Env = env
	spawner := upstream.NewSpawner(nil)
	defer spawner.Close()
	require.NoError(t, c.Validate())
	h, err := command.New(c, executor.Shape{}, spawner.RunOnce, os.LookupEnv)
	require.NoError(t, err)
	return h(ctx, &call.Request{Tool: &call.Tool{Name: "tool"}, Params: []byte(`{"arguments":{"a": 1.0}}`)})
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string // of the result
		err  string
		code toolerr.Code
	}{
		{args: []string{"echo"}, want: `"text":"{\"args\":{\"a\": 1.0}}"`},
		{args: []string{"say", `{"result":"text"}`}, want: `{"content":[{"type":"text","text":"text"}]}`},
		{args: []string{"say", `{"result":null}`}, want: `"text":"null"`},
		{args: []string{"say", ` {"other":[1]} `}, want: `"text":"{\"other\":[1]}"`},
		{args: []string{"say", `[1,2]`}, want: `"text":"[1,2]"`},
		{args: []string{"say", `{"error":"no such city"}`}, want: `{"content":[{"type":"text","text":"no such city"}],"isError":true}`},
		{args: []string{"say", `{"error":"","result":1}`}, want: `"text":"1"`},
		{args: []string{"say", `{"error":false,"n":1}`}, want: `"text":"{\"error\":false,\"n\":1}"`},
		{args: []string{"say", `{"error":null,"result":{"a":1}}`}, want: `"text":"{\"a\":1}"`},
		{args: []string{"say", `{"error":true,"message":"no"}`}, want: `"isError":true`},
		{args: []string{"say", `{"error":true,"message":"no"}`}, want: `message`},
		{args: []string{"say", `{"error":{"code":7}}`}, want: `{"content":[{"type":"text","text":"{\"code\":7}"}],"isError":true}`},
		{args: []string{"say", `{"pending":3,"done":4}`}, want: `"text":"{\"pending\":3,\"done\":4}"`},
		{args: []string{"die", `{"error":false}`}, err: "it ended with exit status 3", code: toolerr.ExecutionError},
		{args: []string{"die", `{"error":"said before"}`}, want: `said before`},
		{args: []string{"die", `{"result":1}`}, err: "tool failed (output: boom): it ended with exit status 3", code: toolerr.ExecutionError},
		{args: []string{"die", ``}, err: "it ended with exit status 3", code: toolerr.ExecutionError},
		{args: []string{"say", ``}, err: "the program's output is not JSON", code: toolerr.ResultInvalid},
		{args: []string{"say", `hello`}, err: "the program's output is not JSON", code: toolerr.ResultInvalid},
		{args: []string{"say", `{"result":1}{"result":2}`}, err: "is not JSON", code: toolerr.ResultInvalid},
		{args: []string{"say", `{"result":1,"result":2}`}, err: "is not a single JSON object", code: toolerr.ResultInvalid},
		{args: []string{"say", `{"pending":{"reason":7}}`}, err: "its pending member has wrong types", code: toolerr.ResultInvalid},
		{args: []string{"say", `{"pending":{}}`}, err: "tool: the tool is waiting", code: toolerr.PendingApproval},
		{args: []string{"flood"}, err: "it wrote more than 10 MiB", code: toolerr.TooLarge},
	} {
		res, err := run(t, t.Context(), command.Config{}, c.args...)
		if c.err != "" {
			require.ErrorContains(t, err, c.err, "%v", c.args)
			require.Equal(t, c.code, toolerr.CodeOf(err), "%v", c.args)
			continue
		}
		require.NoError(t, err, "%v", c.args)
		require.Contains(t, string(res.Raw), c.want, "%v", c.args)
	}
}

func TestPending(t *testing.T) {
	_, err := run(t, t.Context(), command.Config{}, "say", `{"pending":{"id":"of another","tool":"another","args":{},"reason":"needs a human","message":"ask Ada","callback_url":"https://h/x","expires_at":"2030-01-02T03:04:05Z","metadata":{"k":1}}}`)
	var waits *call.PendingError
	require.True(t, errors.As(err, &waits))
	require.Equal(t, call.Pending{
		Reason: "needs a human", Message: "ask Ada", Tool: "tool", Args: json.RawMessage(`{"a": 1.0}`), CallbackURL: "https://h/x",
		ExpiresAt: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), Metadata: map[string]any{"k": 1.0},
	}, waits.Pending)
}

func TestTheEnvironmentIsClean(t *testing.T) {
	t.Setenv("A_SECRET_OF_THE_HOST", "sekrit")
	t.Setenv("LANG", "C")
	res, err := run(t, t.Context(), command.Config{Env: map[string]secret.Text{"MINE": "1", "LANG": "de"}}, "env")
	require.NoError(t, err)
	text := string(res.Raw)
	require.NotContains(t, text, "sekrit")
	require.Contains(t, text, `MINE=1`)
	require.Contains(t, text, `LANG=de`)
	require.NotContains(t, text, `LANG=C`)
	require.Contains(t, text, `PATH=`)
}

// stops reports that nobody writes to a file any more.
func stops(t *testing.T, file string) {
	t.Helper()
	size := func() int64 {
		info, err := os.Stat(file)
		require.NoError(t, err)
		return info.Size()
	}
	before := size()
	time.Sleep(30 * time.Millisecond) // a holder writes every 2
	require.Equal(t, before, size(), "a child of the program lives on")
}

func TestNothingIsLeftBehind(t *testing.T) {
	t.Run("after its own end", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "held")
		res, err := run(t, t.Context(), command.Config{}, "child", file, "leave")
		require.NoError(t, err)
		require.Contains(t, string(res.Raw), "left")
		stops(t, file)
	})
	t.Run("after its time", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "held")
		_, err := run(t, t.Context(), command.Config{Timeout: time.Second}, "child", file, "wait")
		require.Equal(t, toolerr.Timeout, toolerr.CodeOf(err))
		if _, err := os.Stat(file); err == nil { // on a slow machine it had not begun
			stops(t, file)
		}
	})
	t.Run("when the caller ends it", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "held")
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for {
				if _, err := os.Stat(file); err == nil {
					cancel()
					return
				}
				time.Sleep(time.Millisecond)
			}
		}()
		_, err := run(t, ctx, command.Config{}, "child", file, "wait")
		require.ErrorIs(t, err, context.Canceled)
		stops(t, file)
	})
}

func TestBadConfigurations(t *testing.T) {
	for _, c := range []struct {
		config command.Config
		want   string
	}{
		{command.Config{}, "exec.command: is missing"},
		{command.Config{Command: []string{""}}, "exec.command: is missing"},
		{command.Config{Command: []string{"ls"}}, "exec.command: ls is not an absolute path"},
		{command.Config{Command: []string{os.Args[0]}, Env: map[string]secret.Text{"A=B": "x"}}, `exec.env: "A=B" is not a valid variable name`},
		{command.Config{Command: []string{os.Args[0]}, Env: map[string]secret.Text{"": "x"}}, `exec.env: "" is not a valid variable name`},
	} {
		require.ErrorContains(t, c.config.Validate(), c.want)
		_, err := command.New(c.config, executor.Shape{}, nil, nil)
		require.Error(t, err)
	}
	spawner := upstream.NewSpawner(nil)
	defer spawner.Close()
	h, err := command.New(command.Config{Command: []string{filepath.Join(t.TempDir(), "gone")}}, executor.Shape{}, spawner.RunOnce, os.LookupEnv)
	require.NoError(t, err)
	_, err = h(t.Context(), &call.Request{Tool: &call.Tool{Name: "tool"}})
	require.Equal(t, toolerr.ExecutionError, toolerr.CodeOf(err))
	require.ErrorContains(t, err, "cannot start")
}
