package gateway_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheHTTPDoorIsClosed(t *testing.T) {
	d := serve(t, open(t, fixtures()))
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	port := d.host[strings.LastIndexByte(d.host, ':'):]
	for _, c := range []struct {
		name    string
		headers []string
		want    int
	}{
		{"well formed", nil, 200},
		{"scheme in another case", []string{"Authorization", "bearer " + token}, 200},
		{"charset", []string{"Content-Type", "application/json; charset=utf-8"}, 200},
		{"own origin", []string{"Origin", "http://" + d.host}, 200},
		{"no token", []string{"Authorization", ""}, 401},
		{"wrong token", []string{"Authorization", "Bearer " + token[:len(token)-1] + "x"}, 401},
		{"prefix of the token", []string{"Authorization", "Bearer " + token[:5]}, 401},
		{"longer token", []string{"Authorization", "Bearer " + token + "x"}, 401},
		{"empty token", []string{"Authorization", "Bearer "}, 401},
		{"other scheme", []string{"Authorization", "Basic " + token}, 401},
		{"bare token", []string{"Authorization", token}, 401},
		{"other host", []string{"Host", "evil.example" + port}, 403},
		{"host that begins alike", []string{"Host", "127.0.0.1.evil.example" + port}, 403},
		{"host without its port", []string{"Host", "127.0.0.1"}, 403},
		{"host with another port", []string{"Host", "127.0.0.1:1"}, 403},
		{"second name", []string{"Host", "LOCALHOST:1"}, 200},
		{"foreign origin", []string{"Origin", "http://evil.example"}, 403},
		{"null origin", []string{"Origin", "null"}, 403},
		{"origin of another port", []string{"Origin", "http://127.0.0.1:1"}, 403},
		{"https origin", []string{"Origin", "https://" + d.host}, 403},
		{"origin with user", []string{"Origin", "http://" + d.host + "@evil.example"}, 403},
		{"form", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
		{"text", []string{"Content-Type", "text/plain"}, 415},
		{"no type", []string{"Content-Type", ""}, 415},
		{"json alike", []string{"Content-Type", "application/json-patch+json"}, 415},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, body, header := d.post(t, ping, c.headers...)
			require.Equal(t, c.want, status, body)
			if c.want != 200 {
				require.NotContains(t, body, "jsonrpc")
			}
			for name := range header {
				require.False(t, strings.HasPrefix(name, "Access-Control-"), "CORS is closed")
			}
		})
	}
}

func TestPathsAndMethods(t *testing.T) {
	d := serve(t, open(t, fixtures()))
	for _, c := range []struct {
		method, path, auth string
		want               int
	}{
		{"GET", "/healthz", "", 200}, {"HEAD", "/healthz", "", 200}, {"POST", "/healthz", "", 401},
		{"GET", "/", "", 401}, {"GET", "/", "Bearer " + token, 404}, {"GET", "/metrics", "Bearer " + token, 404},
		{"OPTIONS", "/mcp", "", 401}, {"OPTIONS", "/mcp", "Bearer " + token, 405}, {"PUT", "/mcp", "Bearer " + token, 405},
		{"GET", "/mcp", "", 401}, {"DELETE", "/mcp", "", 401}, {"POST", "/mcp/../healthz", "", 401},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, d.URL+c.path, nil)
		require.NoError(t, err)
		set(req, []string{"Authorization", c.auth})
		status, _, _ := d.do(t, req)
		require.Equal(t, c.want, status, "%s %s", c.method, c.path)
	}
	req, err := http.NewRequestWithContext(t.Context(), "GET", d.URL+"/healthz", nil)
	require.NoError(t, err)
	req.Host = "evil.example"
	status, _, _ := d.do(t, req)
	require.Equal(t, 403, status)
}

func TestBodiesAreBounded(t *testing.T) {
	d := serve(t, open(t, fixtures()))
	status, _, _ := d.post(t, `{"pad":"`+strings.Repeat("x", 17<<20)+`"}`)
	require.Equal(t, 413, status)

	// Without a length it is noticed while reading.
	conn, err := net.Dial("tcp", d.host)
	require.NoError(t, err)
	defer conn.Close()
	fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n", d.host, token)
	chunk := "100000\r\n" + strings.Repeat("x", 1<<20) + "\r\n"
	for range 18 {
		_, err := conn.Write([]byte(chunk))
		require.NoError(t, err, "who writes first and reads then gets the answer")
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.Equal(t, 413, resp.StatusCode)
	resp.Body.Close()

	status, body, _ := d.post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"params","arguments":{"pad":"`+strings.Repeat("x", 3<<20)+`"}}}`)
	require.Equal(t, 200, status)
	require.Greater(t, len(body), 3<<20)
}

func TestASlowHeaderIsCutOff(t *testing.T) {
	t.Parallel() // it waits for the header's five seconds
	d := serve(t, open(t, fixtures()))
	conn, err := net.Dial("tcp", d.host)
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("POST /mcp HTTP/1.1\r\nHost: x\r\nX-Slow: "))
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(30*time.Second)))
	for {
		if _, err = conn.Read(make([]byte, 1024)); err != nil {
			break
		}
	}
	require.False(t, errors.Is(err, os.ErrDeadlineExceeded), "the server hangs up")
}

// Whoever announces a body and does not send it is answered and hung up on,
// above all who has no token.
func TestABodyThatNeverComesIsNotWaitedFor(t *testing.T) {
	t.Parallel() // it waits for the body's five seconds
	d := serve(t, open(t, fixtures()))
	var all sync.WaitGroup // all wait at once, however many tests may
	defer all.Wait()
	for _, c := range []struct {
		start, token string
		want         int
	}{
		{"POST /mcp", "wrong", 401}, {"GET /healthz", "", 200}, {"POST /nowhere", token, 404}, {"GET /mcp", token, 400}, {"DELETE /mcp", token, 400},
	} {
		all.Go(func() {
			if err := startBody(d.host, c.start, c.token, c.want); err != nil {
				t.Errorf("%s: %v", c.start, err)
			}
		})
	}
}

// startBody announces a body, does not send it, and checks the answer.
func startBody(host, start, token string, want int) error {
	conn, err := net.Dial("tcp", host)
	if err != nil {
		return err
	}
	defer conn.Close()
	fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", start, host, token)
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return err
	}
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != want {
		return fmt.Errorf("status %d, not %d", resp.StatusCode, want)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if _, err := in.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return errors.New("the server does not hang up")
	}
	return nil
}

// Ids come back as they were sent, also numbers that a float64 does not hold;
// params of the wrong form are named in plain words.
func TestWhatMcpGoSaysIsPutRight(t *testing.T) {
	d := serve(t, open(t, fixtures()))
	for _, id := range []string{`123456789012345678901234567890`, `-9007199254740993`, `1.0`, `1e3`, `"\u0061"`} {
		_, body, _ := d.post(t, `{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`)
		require.Equal(t, `{"jsonrpc":"2.0","id":`+id+`,"result":{}}`, body)
		_, body, _ = d.post(t, `{"jsonrpc":"2.0","id":`+id+`,"method":"no/such"}`)
		require.Contains(t, body, `{"jsonrpc":"2.0","id":`+id+`,"error":{"code":-32601`)
		_, body, _ = d.post(t, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"name":"odd"}}`)
		require.Equal(t, `{"jsonrpc":"2.0","id":`+id+`,"result":`+odd+`}`, body)
	}
	_, body, _ := d.post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}`)
	require.Equal(t, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid params: params.name must be a string, not a number"}}`, body)
}

func TestModernHeadersMustAgreeWithTheBody(t *testing.T) {
	d := serve(t, open(t, fixtures()))
	body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"odd",` + modernMeta + `}}`
	for _, headers := range [][]string{
		modernHeaders("tools/call", "other"), modernHeaders("ping", "odd"), modernHeaders("tools/call", ""),
		{"Mcp-Method", "tools/call", "Mcp-Name", "odd"},
	} {
		status, answer, _ := d.post(t, body, headers...)
		require.Equal(t, 400, status)
		require.Contains(t, answer, `-32020`)
		require.Contains(t, answer, `"id":1,`)
	}
}
