package control_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/control"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// config answers toolroom/echo with its params, and serves who has entered by
// saying as whom, and then what they say.
func config(state string) control.Config {
	return control.Config{
		State:    state,
		LineTime: time.Minute, // a test's process may stand still for longer than the default
		Control: map[string]control.Method{
			"toolroom/echo": func(_ context.Context, params json.RawMessage) (any, error) {
				if params == nil {
					params = json.RawMessage(`{}`)
				}
				return params, nil
			},
			"toolroom/fail": func(context.Context, json.RawMessage) (any, error) {
				return nil, toolerr.New(toolerr.NotFound, "there is no <such> thing")
			},
			"toolroom/wait": func(ctx context.Context, _ json.RawMessage) (any, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
		},
		Serve: func(ctx context.Context, as call.Caller, in io.Reader, out io.Writer) error {
			fmt.Fprintf(out, "%s %s %d %s\n", as.EntryPoint, as.ID, as.Depth, as.Profile) //nolint:errcheck // the other end tells
			_, err := io.Copy(out, in)
			return errors.Join(err, ctx.Err())
		},
	}
}

func listen(t *testing.T, c control.Config) (*control.Server, *control.CallbackTokens) {
	t.Helper()
	tokens := &control.CallbackTokens{}
	s, err := control.Listen(c, tokens)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s, tokens
}

func find(t *testing.T, state string) []control.Host {
	t.Helper()
	hosts, err := control.Find(t.Context(), state)
	require.NoError(t, err)
	return hosts
}

func TestAHostIsFoundAndAnswers(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	require.Empty(t, find(t, state), "a state directory that is not there is none")
	s, _ := listen(t, config(state))
	hosts := find(t, state)
	require.Equal(t, []control.Host{{Socket: s.Name(), PID: os.Getpid()}}, hosts)
	if runtime.GOOS != "windows" {
		for name, mode := range map[string]os.FileMode{s.Name(): 0o600, filepath.Dir(s.Name()): 0o700, state: 0o700} {
			info, err := os.Lstat(name)
			require.NoError(t, err)
			require.Equal(t, mode, info.Mode().Perm(), name)
		}
	}
	var got map[string]int
	require.NoError(t, hosts[0].Ask(t.Context(), "toolroom/echo", map[string]int{"n": 7}, &got))
	require.Equal(t, map[string]int{"n": 7}, got)
	err := hosts[0].Ask(t.Context(), "toolroom/fail", nil, &got)
	require.EqualError(t, err, "there is no <such> thing")
	require.Equal(t, toolerr.NotFound, toolerr.CodeOf(err))
	for _, method := range []string{"tools/list", "initialize", "toolroom/none"} {
		require.ErrorContains(t, hosts[0].Ask(t.Context(), method, nil, &got), "MCP starts after toolroom/enter")
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	require.ErrorIs(t, hosts[0].Ask(ctx, "toolroom/wait", nil, &got), context.Canceled)

	s.Close()
	require.NoFileExists(t, s.Name())
	require.Empty(t, find(t, state))
	require.Error(t, hosts[0].Ask(t.Context(), "toolroom/echo", nil, &got))
}

func TestSeveralHostsHaveASocketEach(t *testing.T) {
	state := t.TempDir()
	for n := range 3 {
		listen(t, config(state))
		require.Len(t, find(t, state), n+1)
	}
	other := t.TempDir()
	listen(t, config(other))
	require.Len(t, find(t, state), 3)
	require.Len(t, find(t, other), 1)
}

// What a killed host leaves is cleared away by the next one, and by who looks.
func TestASocketNobodyListensAtIsRemoved(t *testing.T) {
	state := t.TempDir()
	s, _ := listen(t, config(state))
	dir := filepath.Dir(s.Name())
	left := func(name string) string {
		name = filepath.Join(dir, name)
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
		require.NoError(t, err)
		l.SetUnlinkOnClose(false)
		require.NoError(t, l.Close())
		return name
	}
	killed := left("999999-aaaaaaaa.sock")
	require.Len(t, find(t, state), 1)
	require.NoFileExists(t, killed)

	killed = left("999999-aaaaaaaa.sock")
	other, _ := listen(t, config(state))
	require.Eventually(t, func() bool { _, err := os.Lstat(killed); return err != nil }, time.Minute, time.Millisecond)
	require.FileExists(t, other.Name())

	// One that is being made is not one that was left, unless it is old.
	young, old := left("1-a.sock.new"), left("2-a.sock.new")
	require.NoError(t, os.Chtimes(old, time.Now().Add(-time.Hour), time.Now().Add(-time.Hour)))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "note.txt"), nil, 0o600))
	require.Len(t, find(t, state), 2)
	require.FileExists(t, young)
	require.NoFileExists(t, old)
}

func TestADirectoryThatOthersCanEnterIsRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("permissions are another matter there")
	}
	state := t.TempDir()
	dir := filepath.Join(state, "hosts")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.Chmod(dir, 0o755))
	_, err := control.Listen(config(state), &control.CallbackTokens{})
	require.ErrorContains(t, err, "is accessible to other users (mode -rwxr-xr-x); chmod 700 it")
	_, err = control.Find(t.Context(), state)
	require.ErrorContains(t, err, "is accessible to other users")

	require.NoError(t, os.Remove(dir))
	require.NoError(t, os.Symlink(t.TempDir(), dir))
	_, err = control.Listen(config(state), &control.CallbackTokens{})
	require.ErrorContains(t, err, "is not a directory")
	_, err = control.Listen(config(""), &control.CallbackTokens{})
	require.ErrorContains(t, err, "use --state DIR")
}

func TestAPathLongerThanTheSystemTakes(t *testing.T) {
	state := filepath.Join(t.TempDir(), strings.Repeat("long", 40))
	s, err := control.Listen(config(state), &control.CallbackTokens{})
	if runtime.GOOS != "linux" {
		require.ErrorContains(t, err, "use a shorter --state")
		return
	}
	require.NoError(t, err)
	defer s.Close()
	var got map[string]int
	require.NoError(t, find(t, state)[0].Ask(t.Context(), "toolroom/echo", map[string]int{"n": 7}, &got))
	require.Equal(t, 7, got["n"])
}

// line is one end of a connection.
type line struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
}

func dial(t *testing.T, s *control.Server) line {
	t.Helper()
	conn, err := net.Dial("unix", s.Name())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(30*time.Second)))
	return line{t, conn, bufio.NewReader(conn)}
}

func (l line) send(text string) {
	l.t.Helper()
	_, err := io.WriteString(l.conn, text)
	require.NoError(l.t, err)
}

func (l line) read() string {
	l.t.Helper()
	text, err := l.in.ReadString('\n')
	require.NoError(l.t, err)
	return strings.TrimSpace(text)
}

// ended waits until the other end has closed, or reset, the connection.
func (l line) ended() string {
	l.t.Helper()
	rest, err := io.ReadAll(l.in)
	if err != nil {
		require.False(l.t, errors.Is(err, os.ErrDeadlineExceeded), "it is still open")
	}
	return strings.TrimSpace(string(rest))
}

func TestWhatIsNoRequestEndsAConnection(t *testing.T) {
	c := config(t.TempDir())
	s, _ := listen(t, c)
	c.State, c.LineTime = t.TempDir(), 50*time.Millisecond
	impatient, _ := listen(t, c)
	for name, say := range map[string]struct{ send, want string }{
		"no JSON":         {"GET / HTTP/1.1\r\n", `"code":-32700`},
		"a batch":         {"[]\n", `"code":-32600`},
		"a notification":  {`{"jsonrpc":"2.0","method":"toolroom/echo"}` + "\n", ""},
		"a response":      {`{"jsonrpc":"2.0","id":1,"result":{}}` + "\n", ""},
		"too long":        {strings.Repeat("x", 1<<20), "a line of more than 16384 bytes"},
		"silence":         {"", ""},
		"half a line":     {`{"jsonrpc":"2.0",`, ""},
		"an empty line":   {"\n", `"code":-32700`},
		"members twice":   {`{"jsonrpc":"2.0","id":1,"id":2,"method":"toolroom/echo"}` + "\n", "more than once"},
		"enter, no token": {`{"jsonrpc":"2.0","id":1,"method":"toolroom/enter"}` + "\n", "AUTH_FAILED"},
		"enter, guessed":  {`{"jsonrpc":"2.0","id":1,"method":"toolroom/enter","params":{"token":"x"}}` + "\n", "AUTH_FAILED"},
		"enter, number":   {`{"jsonrpc":"2.0","id":1,"method":"toolroom/enter","params":{"token":1}}` + "\n", "AUTH_FAILED"},
	} {
		t.Run(name, func(t *testing.T) {
			to := s
			if name == "silence" || name == "half a line" {
				to = impatient
			}
			l := dial(t, to)
			go io.WriteString(l.conn, say.send) //nolint:errcheck // it may be refused half way
			require.Contains(t, l.ended(), say.want)
		})
	}
	l := dial(t, s)
	for range 3 { // one that is heard of may go on
		l.send(`{"jsonrpc":"2.0","id":"a","method":"toolroom/echo","params":{"x":1.0}}` + "\r\n")
		require.Equal(t, `{"jsonrpc":"2.0","id":"a","result":{"x":1.0}}`, l.read())
	}
	require.NoError(t, l.conn.(*net.UnixConn).CloseWrite())
	require.Empty(t, l.ended())
}

// Who opens a thousand connections and says nothing keeps nobody out.
func TestAThousandConnections(t *testing.T) {
	c := config(t.TempDir())
	c.MaxConns = 8
	s, tokens := listen(t, c)
	token := issueToken(t, tokens, t.Context(), call.Caller{})
	defer token.Revoke(false)
	agent := dial(t, s)
	agent.send(`{"jsonrpc":"2.0","id":1,"method":"toolroom/enter","params":{"token":"` + token.Token + `"}}` + "\n")
	agent.read()
	var open []line
	for range 1000 {
		open = append(open, dial(t, s))
		if len(open) > 16 {
			require.Empty(t, open[0].ended())
			open[0].conn.Close()
			open = open[1:]
		}
		require.LessOrEqual(t, s.Conns(), 8)
	}
	require.NoError(t, find(t, filepath.Dir(filepath.Dir(s.Name())))[0].Ask(t.Context(), "toolroom/echo", nil, &struct{}{}))
	agent.read()
	agent.send("still here\n")
	require.Equal(t, "still here", agent.read(), "one that has entered stays")
}

// A host looks for the sockets that killed hosts left, but not at its own: with
// room for one connection, a client of the first moment would lose it.
func TestAHostDoesNotConnectToItself(t *testing.T) {
	for range 200 {
		c := config(t.TempDir())
		c.MaxConns = 1
		s, err := control.Listen(c, &control.CallbackTokens{})
		require.NoError(t, err)
		l := dial(t, s)
		l.send(`{"jsonrpc":"2.0","id":1,"method":"toolroom/echo","params":{}}` + "\n")
		require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{}}`, l.read())
		s.Close()
	}
}

// When all that there may be have entered, a further one is turned away.
func TestOnesThatHaveEnteredAreNotPutOut(t *testing.T) {
	c := config(t.TempDir())
	c.MaxConns = 2
	s, tokens := listen(t, c)
	token := issueToken(t, tokens, t.Context(), call.Caller{})
	defer token.Revoke(false)
	for range 2 {
		l := dial(t, s)
		l.send(`{"jsonrpc":"2.0","id":1,"method":"toolroom/enter","params":{"token":"` + token.Token + `"}}` + "\n")
		l.read()
		l.read()
	}
	require.Empty(t, dial(t, s).ended())
	require.Equal(t, 2, s.Conns())
}

func TestATokenIsGoodForACallAndNoLonger(t *testing.T) {
	s, tokens := listen(t, config(t.TempDir()))
	over, end := context.WithCancel(t.Context())
	first := issueToken(t, tokens, t.Context(), call.Caller{
		EntryPoint: "http", ID: "http session 1", Depth: 1, Profile: "p", Modern: true, Capabilities: json.RawMessage(`{"roots":{}}`),
	})
	second := issueToken(t, tokens, over, call.Caller{EntryPoint: "stdio", ID: "stdio"})
	defer second.Revoke(false)
	require.NotEqual(t, first.Token, second.Token)
	enter := func(token *control.CallbackToken) line {
		l := dial(t, s)
		// What follows at once is not lost.
		l.send(`{"jsonrpc":"2.0","id":1,"method":"toolroom/enter","params":{"token":"` + token.Token + `"}}` + "\nhello\n")
		return l
	}
	a, b, c := enter(first), enter(first), enter(second)
	for l, want := range map[line]string{a: "http http session 1 2 p", b: "http http session 1 2 p", c: "stdio stdio 1"} {
		require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{}}`, l.read())
		require.Equal(t, want, l.read())
		require.Equal(t, "hello", l.read())
	}
	first.Revoke(false)
	require.Empty(t, a.ended())
	require.Empty(t, b.ended())
	require.Contains(t, enter(first).ended(), "AUTH_FAILED")
	c.send("on\n")
	require.Equal(t, "on", c.read())
	end()
	require.Empty(t, c.ended())
	require.Contains(t, enter(second).ended(), "AUTH_FAILED")
	first.Revoke(true)
	require.Contains(t, enter(first).ended(), "AUTH_FAILED")
}

// An agent whose call was answered goes on until it leaves, and no longer.
// An agent that was killed wants no answers any more: what it called is not gone on
// with, also where the call that it was for was answered long ago.
func TestTheEndOfAnAgentEndsItsCalls(t *testing.T) {
	cfg := config(t.TempDir())
	called, given := make(chan struct{}), make(chan struct{})
	cfg.Serve = func(ctx context.Context, _ call.Caller, in io.Reader, _ io.Writer) error {
		go func() {
			<-called
			<-ctx.Done()
			close(given)
		}()
		lines := bufio.NewReader(in)
		for {
			if _, err := lines.ReadString('\n'); err != nil {
				<-given // a call in flight is waited for
				return nil
			}
			close(called)
		}
	}
	s, tokens := listen(t, cfg)
	token := issueToken(t, tokens, t.Context(), call.Caller{})
	a := dial(t, s)
	a.send(`{"jsonrpc":"2.0","id":1,"method":"toolroom/enter","params":{"token":"` + token.Token + `"}}` + "\n")
	a.read()
	a.send("call\n")
	<-called
	token.Revoke(true)
	require.NoError(t, a.conn.Close())
	<-given
}

func TestATokenOfAnAgentThatGoesOn(t *testing.T) {
	s, tokens := listen(t, config(t.TempDir()))
	call1, end := context.WithCancel(t.Context())
	token := issueToken(t, tokens, call1, call.Caller{EntryPoint: "stdio", ID: "stdio"})
	enter := func() line {
		l := dial(t, s)
		l.send(`{"jsonrpc":"2.0","id":1,"method":"toolroom/enter","params":{"token":"` + token.Token + `"}}` + "\nhello\n")
		return l
	}
	hello := func(l line) {
		for _, want := range []string{`{"jsonrpc":"2.0","id":1,"result":{}}`, "stdio stdio 1", "hello"} {
			require.Equal(t, want, l.read())
		}
	}
	a := enter()
	hello(a)
	token.Revoke(true)
	end()
	a.send("on\n")
	require.Equal(t, "on", a.read())
	b := enter() // one that had to wait until another was done
	hello(b)
	require.NoError(t, a.conn.Close())
	b.send("on\n")
	require.Equal(t, "on", b.read())
	require.NoError(t, b.conn.Close())
	require.Eventually(t, func() bool { return s.Conns() == 0 }, time.Minute, time.Millisecond)
	require.Contains(t, enter().ended(), "AUTH_FAILED", "it has left")

	token = issueToken(t, tokens, t.Context(), call.Caller{EntryPoint: "stdio", ID: "stdio"})
	a = enter()
	hello(a)
	token.Revoke(true)
	s.Close()
	a.ended()
}

// An end of the host waits for nobody at the other end.
func TestCloseEndsWhatIsOpen(t *testing.T) {
	s, tokens := listen(t, config(t.TempDir()))
	token := issueToken(t, tokens, t.Context(), call.Caller{})
	defer token.Revoke(false)
	silent, waiting, agent := dial(t, s), dial(t, s), dial(t, s)
	waiting.send(`{"jsonrpc":"2.0","id":1,"method":"toolroom/wait"}` + "\n")
	agent.send(`{"jsonrpc":"2.0","id":1,"method":"toolroom/enter","params":{"token":"` + token.Token + `"}}` + "\n")
	agent.read()
	s.Close()
	for _, l := range []line{silent, waiting, agent} {
		l.ended()
	}
	require.Zero(t, s.Conns())
}
