package mcpkit_test

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
)

func TestOneShot(t *testing.T) {
	big := strings.Repeat("0123456789", 300_000)
	for name, c := range map[string]struct {
		in   string
		out  string
		code int
		args []string
	}{
		"arguments":         {in: `{"text":"hi <&>"}`, out: `{"result":"hi <&>"}`},
		"no newline, BOM":   {in: "\xef\xbb\xbf{\"text\":\"hi\"}", out: `{"result":"hi"}`},
		"pretty-printed":    {in: "\n{\n  \"text\":\n    \"hi\"\n}\n\n", out: `{"result":"hi"}`},
		"several":           {in: `{"text":"a"}{"text":"b"}` + "\n" + `{"text":"c"}`, out: "{\"result\":\"a\"}\n{\"result\":\"b\"}\n{\"result\":\"c\"}"},
		"fails":             {in: `{"text":"x","fail":true}`, out: `{"error":"nothing called x; try another","code":"NOT_FOUND"}`, code: 1},
		"one of several":    {in: `{"text":"x","fail":true}{"text":"b"}`, out: `{"error":"nothing called x; try another","code":"NOT_FOUND"}` + "\n" + `{"result":"b"}`, code: 1},
		"named":             {in: `{"name":"say","params":{"text":"hi"}}`, out: `{"result":"hi"}`},
		"named, by alias":   {in: `{"params":{"text":"hi"},"name":"SayTool"}`, out: `{"result":"hi"}`},
		"named, arguments":  {in: `{"name":"Say","arguments":{"text":"hi"}}`, out: `{"result":"hi"}`},
		"named, fails":      {in: `{"name":"say","params":{"text":"x","fail":true}}`, out: `{"error":{"message":"nothing called x; try another","code":"NOT_FOUND"}}`, code: 1},
		"named, unknown":    {in: `{"name":"nope","params":{}}`, out: `{"error":{"message":"no tool \"nope\", only say, a_budget","code":"TOOL_NOT_FOUND"}}`, code: 1},
		"rows":              {in: `{"text":"a b"}`, out: `{"results":[{"word":"a"},{"word":"b"}]}`, args: []string{"--structured"}},
		"no rows":           {in: `{"text":""}`, out: `{"results":[]}`, args: []string{"--structured"}},
		"rows, fails":       {in: `{"text":"x","fail":true}`, out: `{"error":"nothing called x; try another","code":"NOT_FOUND"}`, code: 1, args: []string{"--structured"}},
		"rows, none at all": {in: `{"name":"a_budget","params":{}}`, out: `{"result":"xxxx"}`, args: []string{"--structured", "--max-tokens", "1"}},
		"3 MB":              {in: `{"text":"` + big + `"}`, out: `{"result":"` + big + `"}`, args: []string{"--max-tokens", "262144"}},
		"--call":            {in: `ignored`, out: `{"result":"hi"}`, args: []string{"--call", `{"text":"hi"}`}},
		"--call -":          {in: "\xef\xbb\xbf {\"text\":\n\"hi\"} ", out: `{"result":"hi"}`, args: []string{"--call", "-"}},
		"--call, named":     {out: `{"error":{"message":"nothing called x; try another","code":"NOT_FOUND"}}`, code: 1, args: []string{"--call={\"name\":\"say\",\"params\":{\"text\":\"x\",\"fail\":true}}"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := runSay(t, c.in, c.args...)
			if name == "3 MB" {
				require.Contains(t, r.stdout, "0123456789012345678901234567890")
				return // whether the arguments fit is checked by the tool
			}
			require.Equal(t, c.out+"\n", r.stdout, r.stderr)
			require.Equal(t, c.code, r.code)
		})
	}
}

func TestOneShotBadInput(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		args []string
	}{
		"no JSON":         {in: "hello\n"},
		"cut short":       {in: `{"text":"hi"`},
		"a number":        {in: `42`},
		"a list":          {in: `[{"text":"hi"}]`},
		"then garbage":    {in: `{"text":"hi"} garbage`},
		"not UTF-8":       {in: "{\"text\":\"\xff\"}"},
		"--call, no JSON": {args: []string{"--call", "hello"}},
		"--call, empty":   {args: []string{"--call", ""}},
		"--call, two":     {args: []string{"--call", `{"text":"a"}{"text":"b"}`}},
		"--call -, empty": {args: []string{"--call", "-"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := runSay(t, c.in, c.args...)
			require.Equal(t, mcpkit.ExitFail, r.code)
			lines := strings.Split(strings.TrimSpace(r.stdout), "\n")
			var res struct{ Error, Code string }
			require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &res), r.stdout)
			require.Equal(t, "INVALID_INPUT", res.Code)
			require.Contains(t, res.Error, "not a JSON object")
		})
	}
}

// The first JSON object decides between messages and calls.
func TestDetect(t *testing.T) {
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	for name, c := range map[string]struct {
		in   string
		want string
	}{
		"message":             {ping, `{"jsonrpc":"2.0","id":1,"result":{}}`},
		"member in the end":   {`{"id":1,"method":"ping","jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`},
		"BOM":                 {"\xef\xbb\xbf" + ping, `{"jsonrpc":"2.0","id":1,"result":{}}`},
		"member within":       {`{"text":"\"jsonrpc\""}`, `{"result":"\"jsonrpc\""}`},
		"batch":               {`[` + ping + `]`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		"garbage, message":    {"garbage\n" + ping, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		"cut short, message":  {`{"jsonrpc":"2.0",` + "\n" + ping, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		"blank lines":         {"\n \r\n\n" + ping, `{"jsonrpc":"2.0","id":1,"result":{}}`},
		"repeated member":     {`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		"nothing":             {"", ""},
		"nothing but a BOM":   {"\xef\xbb\xbf\n", ""},
		"jsonrpc of any kind": {`{"jsonrpc":1}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
	} {
		t.Run(name, func(t *testing.T) {
			for _, in := range []io.Reader{strings.NewReader(c.in), iotest.OneByteReader(strings.NewReader(c.in)), iotest.DataErrReader(strings.NewReader(c.in))} {
				r := runReader(t, in)
				if c.want == "" {
					require.Empty(t, r.stdout)
					continue
				}
				require.True(t, strings.HasPrefix(r.stdout, c.want), r.stdout)
				require.Equal(t, mcpkit.ExitOK, r.code)
			}
		})
	}
}

// A client whose first line is not JSON gets an error while its input stays
// open.
func TestDetectLiveGarbage(t *testing.T) {
	for _, first := range []string{"garbage\n", "{\"jsonrpc\":\n"} {
		in, inWrite := io.Pipe()
		out, outWrite := io.Pipe()
		done := make(chan int, 1)
		go func() {
			done <- newSay(t, &run{}).Run(t.Context(), nil, in, outWrite, io.Discard)
			outWrite.Close()
		}()
		_, err := io.WriteString(inWrite, first)
		require.NoError(t, err)
		buf := make([]byte, 1000)
		n, err := out.Read(buf)
		require.NoError(t, err)
		require.Contains(t, string(buf[:n]), "-32700")
		go func() {
			if _, err := io.WriteString(inWrite, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n"); err != nil {
				t.Error(err)
			}
			inWrite.Close()
		}()
		rest, err := io.ReadAll(out)
		require.NoError(t, err)
		require.Equal(t, `{"jsonrpc":"2.0","id":1,"result":{}}`+"\n", string(rest))
		require.Equal(t, mcpkit.ExitOK, <-done)
	}
}

// A call is answered once it is complete, before the input ends.
func TestOneShotAnswersAtOnce(t *testing.T) {
	in, inWrite := io.Pipe()
	out, outWrite := io.Pipe()
	done := make(chan int, 1)
	go func() { done <- newSay(t, &run{}).Run(t.Context(), nil, in, outWrite, io.Discard) }()
	buf := make([]byte, 1000)
	for _, word := range []string{"one", "two"} {
		_, err := io.WriteString(inWrite, `{"text":"`+word+`"}`)
		require.NoError(t, err)
		n, err := out.Read(buf)
		require.NoError(t, err)
		require.Equal(t, `{"result":"`+word+`"}`+"\n", string(buf[:n]))
	}
	inWrite.Close()
	select {
	case code := <-done:
		require.Equal(t, mcpkit.ExitOK, code)
	case <-time.After(maxTestWait):
		require.Fail(t, "it does not end")
	}
}
