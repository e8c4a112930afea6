package httpcall_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	web "net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/executor"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/httpcall"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/retry"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// service is a local server that keeps what it was asked.
type service struct {
	*httptest.Server
	mu   sync.Mutex
	seen []seen
}

type seen struct {
	method, uri, body string
	header            web.Header
}

func serve(t *testing.T, handler web.HandlerFunc) *service {
	t.Helper()
	s := &service{}
	s.Server = httptest.NewServer(web.HandlerFunc(func(w web.ResponseWriter, r *web.Request) {
		body, _ := io.ReadAll(r.Body) //nolint:errcheck // a test's
		s.mu.Lock()
		s.seen = append(s.seen, seen{r.Method, r.RequestURI, string(body), r.Header.Clone()})
		s.mu.Unlock()
		handler(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *service) requests() []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

func answer(text string) web.HandlerFunc {
	return func(w web.ResponseWriter, _ *web.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, text) //nolint:errcheck // a test's
	}
}

// do makes one call.
func do(t *testing.T, c httpcall.Config, shape executor.Shape, arguments string) (*call.Result, error) {
	t.Helper()
	require.NoError(t, c.Validate())
	h, err := httpcall.New(c, shape, func() retry.Config { return retry.Config{Base: time.Millisecond} }, "toolroom/test")
	require.NoError(t, err)
	readOnly, idempotent := c.Hints()
	tool := &call.Tool{Name: "tool", Traits: call.Traits{ReadOnly: readOnly, Idempotent: idempotent}}
	h = retry.New(retry.Config{Base: time.Millisecond})(h)
	return h(t.Context(), &call.Request{Tool: tool, Params: fmt.Appendf(nil, `{"arguments":%s}`, arguments)})
}

func local(s *service, path, method string) httpcall.Config {
	return httpcall.Config{URL: secret.Text(s.URL + path), Method: method, Private: true}
}

func TestWhatIsSent(t *testing.T) {
	s := serve(t, answer(`{"ok":true}`))
	with := func(c httpcall.Config, f func(*httpcall.Config)) httpcall.Config { f(&c); return c }
	for _, c := range []struct {
		name      string
		config    httpcall.Config
		arguments string
		method    string
		uri       string
		body      string
	}{
		{"what a GET's URL does not use is its query", local(s, "/a/{id}", "GET"), `{"id":"x/y?&#é ","n":1.50,"l":[1,2],"t":true,"gone":null}`, "GET", "/a/x%2Fy%3F&%23%C3%A9%20?l=%5B1%2C2%5D&n=1.50&t=true", ""},
		{"templates of PromptKit", local(s, "/a/{{.id}}/b?x={{ .q }}&fixed=1", "GET"), `{"id":12345678901234567890,"q":"a&b=c d"}`, "GET", "/a/12345678901234567890/b?x=a%26b%3Dc+d&fixed=1", ""},
		{"what the URL says itself stays", local(s, "/a?key=ours&id={id}", "GET"), `{"id":"1","key":"theirs","x":3}`, "GET", "/a?id=1&key=ours&x=3", ""},
		{"what a POST's URL does not use is its body", local(s, "/a/{id}", "POST"), `{"id":"1","n":1.50,"deep":{"a":[null]}}`, "POST", "/a/1", `{"deep":{"a":[null]},"n":1.50}`},
		{"POST is the default", local(s, "/a", ""), `{}`, "POST", "/a", ``},
		{"DELETE has no body", local(s, "/a/{id}", "delete"), `{"id":"1","why":"x"}`, "DELETE", "/a/1?why=x", ``},
		{"a mapped query", with(local(s, "/a?k=1", "GET"), func(c *httpcall.Config) {
			c.Query = []httpcall.Pair{{"q", "{text}"}, {"units", "metric"}, {"gone", "{nothing}"}, {"both", "{a}-{text}"}}
		}), `{"text":"b c","a":1,"else":2}`, "GET", "/a?both=1-b+c&k=1&q=b+c&units=metric", ""},
		{"a mapped body", with(local(s, "/a", "PUT"), func(c *httpcall.Config) {
			c.Body = &httpcall.Value{Kind: '{', Map: []httpcall.Member{
				{"name", httpcall.Value{JSON: json.RawMessage(`"{first}"`)}},
				{"hello", httpcall.Value{JSON: json.RawMessage(`"hi {first}"`)}},
				{"tags", httpcall.Value{Kind: '[', List: []httpcall.Value{{JSON: json.RawMessage(`"{tag}"`)}, {JSON: json.RawMessage(`"{none}"`)}, {JSON: json.RawMessage(`7`)}}}},
				{"left", httpcall.Value{JSON: json.RawMessage(`"{none}"`)}},
			}}
		}), `{"first":"a\"b","tag":{"x":1}}`, "PUT", "/a", `{"name":"a\"b","hello":"hi a\"b","tags":[{"x":1},7]}`},
		{"the mapping of PromptKit", with(local(s, "/u/{{.user}}", "POST"), func(c *httpcall.Config) {
			c.Request = httpcall.Mapping{
				Query: []string{"page"}, Exclude: []string{"note"}, Body: "{name: first, surname: last, kind: kind}",
				StaticQuery: map[string]string{"v": "2"}, StaticBody: map[string]httpcall.Value{"kind": {JSON: json.RawMessage(`"k"`)}},
			}
		}), `{"user":"u","page":3,"note":"secret","first":"A","last":"B"}`, "POST", "/u/u?page=3&v=2", `{"kind":"k","name":"A","surname":"B"}`},
	} {
		res, err := do(t, c.config, executor.Shape{}, c.arguments)
		require.NoError(t, err, c.name)
		require.Equal(t, `{"content":[{"type":"text","text":"{\"ok\":true}"}]}`, string(res.Raw))
		all := s.requests()
		got := all[len(all)-1]
		require.Equal(t, c.method, got.method, c.name)
		require.Equal(t, c.uri, got.uri, c.name)
		require.Equal(t, c.body, got.body, c.name)
	}
}

// A body that is one text needs all its arguments. The error names the one that is missing.
func TestMissingArgumentOfTheBody(t *testing.T) {
	s := serve(t, answer(`{}`))
	c := local(s, "/a", "POST")
	c.Body = &httpcall.Value{JSON: json.RawMessage(`"{first} {second}"`)}
	_, err := do(t, c, executor.Shape{}, `{"first":1}`)
	require.Equal(t, toolerr.MissingParameter, toolerr.CodeOf(err))
	require.ErrorContains(t, err, "argument second is missing, required by the body")
	_, err = do(t, c, executor.Shape{}, `{"second":1}`)
	require.ErrorContains(t, err, "argument first is missing, required by the body")
	require.Empty(t, s.requests())
}

func TestHeaders(t *testing.T) {
	s := serve(t, answer(`1`))
	c := local(s, "/", "POST")
	c.Headers = map[string]secret.Text{"X-Key": "k", "Authorization": "Bearer b"}
	c.Request.Headers = map[string]string{"X-Space": "s-{{.space}}"}
	c.Request.StaticHeaders = map[string]string{"X-Static": "1"}
	c.Key = "Idempotency-Key"
	_, err := do(t, c, executor.Shape{}, `{"space":"a","b":1}`)
	require.NoError(t, err)
	got := s.requests()[0]
	for name, want := range map[string]string{"X-Key": "k", "Authorization": "Bearer b", "X-Space": "s-a", "X-Static": "1", "User-Agent": "toolroom/test", "Content-Type": "application/json"} {
		require.Equal(t, want, got.header.Get(name), name)
	}
	require.NotEmpty(t, got.header.Get("Idempotency-Key"))
	require.Equal(t, `{"b":1}`, got.body, "what a header uses is not in the body")
	_, err = do(t, c, executor.Shape{}, `{"space":"a\r\nX-Evil: 1"}`)
	require.Equal(t, toolerr.InvalidParams, toolerr.CodeOf(err))
	_, err = do(t, c, executor.Shape{}, `{}`)
	require.Equal(t, toolerr.MissingParameter, toolerr.CodeOf(err))
	require.Len(t, s.requests(), 1)

	c = httpcall.Config{URL: secret.Text(strings.Replace(s.URL, "http://", "http://u:p@", 1)), Method: "GET", Private: true}
	_, err = do(t, c, executor.Shape{}, `{}`)
	require.NoError(t, err)
	require.Equal(t, "Basic dTpw", s.requests()[1].header.Get("Authorization"))
}

func TestArgumentsLeadNowhereElse(t *testing.T) {
	s := serve(t, answer(`1`))
	for _, id := range []string{`".."`, `"."`, `""`, `"a\nb"`, `null`} {
		_, err := do(t, local(s, "/a/{id}/b", "GET"), executor.Shape{}, `{"id":`+id+`}`)
		require.Contains(t, []toolerr.Code{toolerr.InvalidParams, toolerr.MissingParameter}, toolerr.CodeOf(err), id)
	}
	for path, id := range map[string]string{"/a/.{id}/b": ".", "/a/{id}/b": "../../x", "/a/{id}": "x/.."} {
		_, err := do(t, local(s, path, "GET"), executor.Shape{}, `{"id":"`+id+`"}`)
		require.Equal(t, toolerr.InvalidParams, toolerr.CodeOf(err), id)
	}
	require.Empty(t, s.requests())
}

func TestWhatComesBack(t *testing.T) {
	reply := func(kind, body string, status int) web.HandlerFunc {
		return func(w web.ResponseWriter, _ *web.Request) {
			w.Header()["Content-Type"] = []string{kind}
			w.WriteHeader(status)
			io.WriteString(w, body) //nolint:errcheck // a test's
		}
	}
	for _, c := range []struct {
		name    string
		handler web.HandlerFunc
		shape   executor.Shape
		adapt   func(*httpcall.Config)
		want    string
		err     string
		code    toolerr.Code
	}{
		{name: "a picture", handler: reply("image/png", "\x89PNG", 200), want: `{"content":[{"type":"image","mimeType":"image/png","data":"iVBORw=="}]}`},
		{name: "sound", handler: reply("audio/wav", "RIFF", 200), want: `{"content":[{"type":"audio","mimeType":"audio/wav","data":"UklGRg=="}]}`},
		{name: "text", handler: reply("text/plain; charset=utf-8", "héllo", 200), want: `{"content":[{"type":"text","text":"héllo"}]}`},
		{name: "text of another set", handler: reply("text/plain; charset=iso-8859-1", "h\xe9llo", 200), want: `{"content":[{"type":"text","text":"héllo"}]}`},
		{name: "quotation marks of Windows", handler: reply("text/plain; charset=windows-1252", "\x93h\xe9\x94", 200), want: `{"content":[{"type":"text","text":"“hé”"}]}`},
		{name: "Japanese text", handler: reply("text/plain; charset=Shift_JIS", "\x93\xfa\x96\x7b", 200), want: `{"content":[{"type":"text","text":"日本"}]}`},
		{name: "text of an unknown set", handler: reply("text/plain; charset=none", "h\xe9", 200), want: `{"content":[{"type":"text","text":"h�"}]}`},
		{name: "text where an object is declared", handler: reply("text/plain", "hello", 200), shape: executor.Shape{Declared: true}, want: `{"content":[{"type":"text","text":"{\"result\":\"hello\"}"}],"structuredContent":{"result":"hello"}}`},
		{name: "JSON that says it is text", handler: reply("text/plain", ` {"a": 1.0} `, 200), want: `{"content":[{"type":"text","text":"{\"a\": 1.0}"}]}`},
		{name: "a list where one is declared", handler: reply("application/json", `[1]`, 200), shape: executor.Shape{Declared: true, Wrapped: true}, want: `{"content":[{"type":"text","text":"[1]"}],"structuredContent":{"result":[1]}}`},
		{name: "a list where an object is declared", handler: reply("application/json", `[1]`, 200), shape: executor.Shape{Declared: true}, err: "it is a list, but the output schema requires an object", code: toolerr.ResultInvalid},
		{name: "no JSON", handler: reply("application/json", `{"a":`, 200), err: "the answer is declared as JSON but is not", code: toolerr.ResultInvalid},
		{name: "nothing", handler: reply("", ``, 204), want: `{"content":[{"type":"text","text":""}]}`},
		{name: "bytes", handler: reply("application/pdf", "%PDF\x00\xff", 200), want: `"mimeType":"application/pdf","blob":"JVBERgD/"`},
		{name: "redacted at any depth", handler: reply("application/json", `{"a":{"Token":{"x":1},"l":[{"token":"t","n":12345678901234567890}]},"token2":1}`, 200), adapt: func(c *httpcall.Config) { c.Redact = []string{"token"} },
			want: `"text":"{\"a\":{\"Token\":\"[REDACTED]\",\"l\":[{\"token\":\"[REDACTED]\",\"n\":12345678901234567890}]},\"token2\":1}"`},
		{name: "mapped", handler: reply("application/json", `{"items":[{"name":"a","x":1},{"name":"b"}]}`, 200), adapt: func(c *httpcall.Config) { c.Response = "{names: items[].name}" }, want: `"text":"{\"names\":[\"a\",\"b\"]}"`},
		{name: "not found", handler: reply("application/json", `{"error":"no such city","token":"t"}`, 404), adapt: func(c *httpcall.Config) { c.Redact = []string{"token"} }, want: `{"content":[{"type":"text","text":"HTTP 404 Not Found: {\"error\":\"no such city\",\"token\":\"[REDACTED]\"}"}],"isError":true}`},
		{name: "no right", handler: reply("text/plain", `who are you?`, 401), err: "HTTP 401 Unauthorized: who are you?", code: toolerr.AuthFailed},
		{name: "packed unasked", handler: func(w web.ResponseWriter, _ *web.Request) {
			w.Header().Set("Content-Encoding", "br")
			io.WriteString(w, "x") //nolint:errcheck // a test's
		}, err: "unsupported content encoding", code: toolerr.ProtocolError},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := local(serve(t, c.handler), "/", "GET")
			if c.adapt != nil {
				c.adapt(&cfg)
			}
			res, err := do(t, cfg, c.shape, `{}`)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				require.Equal(t, c.code, toolerr.CodeOf(err))
				return
			}
			require.NoError(t, err)
			require.Contains(t, string(res.Raw), c.want)
			require.True(t, json.Valid(res.Raw))
		})
	}
}

// faulty fails some times before it answers.
func faulty(fails int32, fail web.HandlerFunc) (web.HandlerFunc, *atomic.Int32) {
	var n atomic.Int32
	return func(w web.ResponseWriter, r *web.Request) {
		if n.Add(1) <= fails {
			fail(w, r)
			return
		}
		answer(`{}`)(w, r)
	}, &n
}

func TestWhatIsSentAgain(t *testing.T) {
	status := func(code int) web.HandlerFunc {
		return func(w web.ResponseWriter, _ *web.Request) { w.WriteHeader(code) }
	}
	slow := func(_ web.ResponseWriter, r *web.Request) { <-r.Context().Done() }
	cut := func(w web.ResponseWriter, _ *web.Request) {
		conn, _, err := w.(web.Hijacker).Hijack() //nolint:forcetypeassert,errcheck // net/http's
		if err == nil {
			conn.Close() //nolint:errcheck // that is what is meant
		}
	}
	for _, c := range []struct {
		name   string
		method string
		key    bool
		fail   web.HandlerFunc
		fails  int32
		sent   int32
		code   toolerr.Code // "": it succeeds
	}{
		{"GET, 503", "GET", false, status(503), 2, 3, ""},
		{"GET, 500 for ever", "GET", false, status(500), 99, 3, toolerr.TransportError},
		{"PUT, 502", "PUT", false, status(502), 1, 2, ""},
		{"POST, 503", "POST", false, status(503), 1, 1, toolerr.TransportError},
		{"POST with a key, 503", "POST", true, status(503), 2, 3, ""},
		{"PUT with a key, 503", "PUT", true, status(503), 2, 3, ""}, // repeated once, here, and not by the stage, too
		{"GET with a key, 500 for ever", "GET", true, status(500), 99, 3, toolerr.TransportError},
		{"POST, 429", "POST", false, status(429), 1, 1, toolerr.RateLimited},
		{"POST with a key, 429", "POST", true, status(429), 1, 2, ""},
		{"GET, 404", "GET", false, status(404), 1, 1, ""},
		{"GET, 403", "GET", false, status(403), 1, 1, toolerr.AuthFailed},
		{"GET, slow", "GET", false, slow, 1, 2, ""},
		{"POST, slow", "POST", false, slow, 1, 1, toolerr.Timeout},
		{"POST, cut off", "POST", false, cut, 1, 1, toolerr.TransportError},
		{"POST with a key, cut off", "POST", true, cut, 1, 2, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			handler, sent := faulty(c.fails, c.fail)
			s := serve(t, handler)
			cfg := local(s, "/", c.method)
			cfg.Timeout = 30 * time.Second
			if strings.Contains(c.name, "slow") {
				cfg.Timeout = time.Second
			}
			if c.key {
				cfg.Key = "Idempotency-Key"
			}
			_, err := do(t, cfg, executor.Shape{}, `{}`)
			require.Equal(t, c.sent, sent.Load())
			if c.code == "" {
				require.NoError(t, err)
			} else {
				require.Equal(t, c.code, toolerr.CodeOf(err), "%v", err)
			}
			if c.key {
				all := s.requests()
				for _, r := range all {
					require.Equal(t, all[0].header.Get("Idempotency-Key"), r.header.Get("Idempotency-Key"), "one key for all attempts")
				}
			}
		})
	}
}

// What must not be carried out twice is not sent again by net/http either, when
// the server closes a connection instead of answering.
func TestWhatIsNotIdempotentIsSentOnce(t *testing.T) {
	for name, set := range map[string]func(*httpcall.Config){
		"GET": func(c *httpcall.Config) { c.Method = "GET" },
		"POST": func(c *httpcall.Config) {
			c.Headers = map[string]secret.Text{"Idempotency-Key": "always the same"}
		},
	} {
		var sent atomic.Int32
		s := serve(t, func(w web.ResponseWriter, r *web.Request) {
			if sent.Add(1) > 1 {
				conn, _, err := w.(web.Hijacker).Hijack() //nolint:forcetypeassert,errcheck // net/http's
				if err == nil {
					conn.Close() //nolint:errcheck // that is what is meant
				}
				return
			}
			answer(`{}`)(w, r)
		})
		c := local(s, "/", "")
		set(&c)
		h, err := httpcall.New(c, executor.Shape{}, func() retry.Config { return retry.Config{} }, "toolroom/test")
		require.NoError(t, err)
		req := &call.Request{Tool: &call.Tool{Name: "tool"}, Params: []byte(`{"arguments":{"a":1}}`)}
		_, err = h(t.Context(), req)
		require.NoError(t, err)
		_, err = h(t.Context(), req)
		require.Equal(t, toolerr.TransportError, toolerr.CodeOf(err), name)
		require.EqualValues(t, 2, sent.Load(), name)
	}
}

func TestRetryAfterIsKept(t *testing.T) {
	for value, want := range map[string]int64{"7": 7000, "x": -1, "": -1, "-3": -1, time.Now().Add(-time.Hour).UTC().Format(web.TimeFormat): 0} {
		s := serve(t, func(w web.ResponseWriter, _ *web.Request) {
			w.Header().Set("Retry-After", value)
			w.WriteHeader(429)
		})
		_, err := do(t, local(s, "/", "POST"), executor.Shape{}, `{}`)
		var said *toolerr.Error
		require.True(t, errors.As(err, &said))
		ms, ok := said.Extra()["retryAfterMs"].(int64)
		require.Equal(t, want >= 0, ok, value)
		require.Equal(t, max(0, want), ms, value)
	}
	// One that asks for more than the stage waits is not sent again.
	handler, sent := faulty(99, func(w web.ResponseWriter, _ *web.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(429)
	})
	_, err := do(t, local(serve(t, handler), "/", "GET"), executor.Shape{}, `{}`)
	require.Equal(t, toolerr.RateLimited, toolerr.CodeOf(err))
	require.Equal(t, int32(1), sent.Load())
}

func TestAnswersAreBounded(t *testing.T) {
	const mib = 1 << 20
	huge := func(w web.ResponseWriter, _ *web.Request) {
		w.Header().Set("Content-Type", "text/plain")
		chunk := strings.Repeat("a", mib)
		for range 12 {
			if _, err := io.WriteString(w, chunk); err != nil {
				return
			}
		}
	}
	bomb := func(w web.ResponseWriter, _ *web.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		chunk := strings.Repeat(" ", mib)
		for range 12 {
			if _, err := io.WriteString(z, chunk); err != nil {
				return
			}
		}
		z.Close() //nolint:errcheck // a test's
	}
	for name, handler := range map[string]web.HandlerFunc{"huge": huge, "bomb": bomb} {
		_, err := do(t, local(serve(t, handler), "/", "POST"), executor.Shape{}, `{}`)
		require.Equal(t, toolerr.TooLarge, toolerr.CodeOf(err), name)
	}
	zipped := serve(t, func(w web.ResponseWriter, _ *web.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		io.WriteString(z, `{"a":1}`) //nolint:errcheck // a test's
		z.Close()                    //nolint:errcheck // a test's
	})
	res, err := do(t, local(zipped, "/", "GET"), executor.Shape{}, `{}`)
	require.NoError(t, err)
	require.Contains(t, string(res.Raw), `"text":"{\"a\":1}"`)
	deep := serve(t, answer(strings.Repeat(`{"a":`, 2000)+"1"+strings.Repeat("}", 2000)))
	c := local(deep, "/", "GET")
	c.Redact = []string{"b"}
	_, err = do(t, c, executor.Shape{}, `{}`)
	require.Equal(t, toolerr.ResultInvalid, toolerr.CodeOf(err))
}

func TestRedirects(t *testing.T) {
	other := serve(t, answer(`{"from":"other"}`))
	var to atomic.Pointer[string]
	status := atomic.Int32{}
	s := serve(t, func(w web.ResponseWriter, r *web.Request) {
		if r.URL.Path == "/end" {
			answer(`{"from":"here"}`)(w, r)
			return
		}
		w.Header().Set("Location", *to.Load())
		w.WriteHeader(int(status.Load()))
	})
	for _, c := range []struct {
		name, method, location string
		status                 int32
		networks               []netip.Prefix
		from                   string
		err                    string
		code                   toolerr.Code
		credentials            bool
	}{
		{name: "here", method: "GET", location: "/end", status: 302, from: "here", credentials: true},
		{name: "here with the body", method: "POST", location: "/end", status: 307, from: "here", credentials: true},
		{name: "elsewhere", method: "GET", location: other.URL + "/x", status: 302, from: "other"},
		{name: "elsewhere without the body", method: "POST", location: other.URL + "/x", status: 303, from: "other"},
		{name: "elsewhere with the body", method: "POST", location: other.URL + "/x", status: 307, err: "redirects the request with its body to another host", code: toolerr.PolicyDenied},
		{name: "for ever", method: "GET", location: "/again", status: 302, err: "redirects more than 5 times", code: toolerr.ExecutionError},
		{name: "to a file", method: "GET", location: "file:///etc/passwd", status: 302, err: "not http or https", code: toolerr.PolicyDenied},
		{name: "to a cloud's metadata", method: "GET", location: "http://169.254.169.254/latest", status: 302, err: "169.254.169.254, a link-local address", code: toolerr.PolicyDenied},
		{name: "to loopback that is not allowed", method: "GET", location: strings.Replace(other.URL, "127.0.0.1", "127.0.0.2", 1), status: 302,
			networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, err: "127.0.0.2, a loopback address", code: toolerr.PolicyDenied},
		{name: "nowhere", method: "GET", location: "http://[::1", status: 302, err: "to an invalid address", code: toolerr.ProtocolError},
	} {
		t.Run(c.name, func(t *testing.T) {
			to.Store(&c.location)
			status.Store(c.status)
			cfg := local(s, "/start?key=sekrit", c.method)
			cfg.Headers = map[string]secret.Text{"Authorization": "Bearer sekrit", "X-Api-Key": "sekrit", "Cookie": "sekrit"}
			if c.networks != nil {
				cfg.Private, cfg.Networks = false, c.networks
			}
			before := len(other.requests())
			res, err := do(t, cfg, executor.Shape{}, `{"secret":"in the body"}`)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				require.Equal(t, c.code, toolerr.CodeOf(err))
				require.NotContains(t, err.Error(), "sekrit")
				require.Len(t, other.requests(), before)
				return
			}
			require.NoError(t, err)
			require.Contains(t, string(res.Raw), `{\"from\":\"`+c.from)
			last := s.requests()[len(s.requests())-1]
			if c.from == "other" {
				last = other.requests()[len(other.requests())-1]
				require.Empty(t, last.body)
				require.NotContains(t, fmt.Sprint(last), "sekrit", "nothing of ours goes elsewhere, by Referer neither")
			}
			require.Equal(t, c.credentials, last.header.Get("X-Api-Key") != "")
		})
	}
}

// Another host that leads back here has the request made without what the
// declaration sets: it would choose what is done with our rights.
func TestRedirectsThereAndBack(t *testing.T) {
	var home atomic.Pointer[string]
	other := serve(t, func(w web.ResponseWriter, _ *web.Request) {
		w.Header().Set("Location", *home.Load()+"/delete")
		w.WriteHeader(302)
	})
	s := serve(t, func(w web.ResponseWriter, r *web.Request) {
		if r.URL.Path == "/delete" {
			answer(`{}`)(w, r)
			return
		}
		w.Header().Set("Location", other.URL)
		w.WriteHeader(302)
	})
	home.Store(&s.URL)
	cfg := local(s, "/start", "GET")
	cfg.URL = secret.Text(strings.Replace(s.URL, "http://", "http://user:sekrit@", 1) + "/start")
	cfg.Headers = map[string]secret.Text{"X-Api-Key": "sekrit"}
	_, err := do(t, cfg, executor.Shape{}, `{}`)
	require.NoError(t, err)
	all := s.requests()
	require.Equal(t, "sekrit", all[0].header.Get("X-Api-Key"))
	require.Equal(t, "/delete", all[1].uri)
	require.Empty(t, all[1].header.Get("X-Api-Key"))
	require.Empty(t, all[1].header.Get("Authorization"))
}

// An answer that is none, after which the connection is the server's to hold.
func TestAnUpgradeIsNoAnswer(t *testing.T) {
	held := make(chan struct{})
	s := serve(t, func(w web.ResponseWriter, _ *web.Request) {
		conn, _, err := w.(web.Hijacker).Hijack() //nolint:forcetypeassert,errcheck // net/http's
		if err != nil {
			return
		}
		defer conn.Close()
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n") //nolint:errcheck // a test's
		io.Copy(io.Discard, conn)                                                                             //nolint:errcheck // until the client goes
		close(held)
	})
	_, err := do(t, local(s, "/", "GET"), executor.Shape{}, `{}`)
	require.Equal(t, toolerr.ProtocolError, toolerr.CodeOf(err), "%v", err)
	<-held
}

func TestPrivateAddresses(t *testing.T) {
	s := serve(t, answer(`{}`))
	port := strings.TrimPrefix(s.URL, "http://127.0.0.1:")
	for _, c := range []struct {
		host     string
		private  bool
		networks string
		ok       bool
	}{
		{host: "127.0.0.1"},
		{host: "localhost"},
		{host: "[::1]"},
		{host: "[::ffff:127.0.0.1]"},
		{host: "10.0.0.1"},
		{host: "192.168.1.1"},
		{host: "169.254.169.254", private: true},
		{host: "[fd00:ec2::254]", private: true},
		{host: "[64:ff9b::7f00:1]", private: true},
		{host: "0.0.0.0", private: true},
		{host: "168.63.129.16", private: true},
		{host: "192.0.0.192", private: true},
		{host: "192.0.0.8", private: true},
		{host: "198.18.0.1", private: true},
		{host: "240.0.0.1", private: true},
		{host: "[64:ff9b::808:808]", private: true},
		{host: "[64:ff9b:1::1]", private: true},
		{host: "[2002:7f00:1::1]", private: true},
		{host: "[2001:0:7f00:1::1]", private: true},
		{host: "[::7f00:1]", private: true},
		{host: "100.64.0.1"},
		{host: "[fec0::1]"},
		{host: "127.0.0.1", private: true, ok: true},
		{host: "localhost", private: true, ok: true},
		{host: "127.0.0.1", networks: "127.0.0.0/8", ok: true},
		{host: "127.0.0.1", networks: "10.0.0.0/8"},
	} {
		t.Run(c.host, func(t *testing.T) {
			cfg := httpcall.Config{URL: secret.Text("http://" + c.host + ":" + port), Method: "GET", Private: c.private}
			if c.networks != "" {
				cfg.Networks = []netip.Prefix{netip.MustParsePrefix(c.networks)}
			}
			before := len(s.requests())
			_, err := do(t, cfg, executor.Shape{}, `{}`)
			if c.ok {
				require.NoError(t, err)
				return
			}
			require.Equal(t, toolerr.PolicyDenied, toolerr.CodeOf(err), "%v", err)
			require.Len(t, s.requests(), before)
		})
	}
}

func TestNothingSecretIsTold(t *testing.T) {
	c := httpcall.Config{URL: "http://user:sekrit@127.0.0.1:1/x?api_key=sekrit", Shown: "http://user:${PW}@127.0.0.1:1/x?api_key=${KEY}", Method: "GET", Private: true,
		Headers: map[string]secret.Text{"X-Key": "sekrit"}}
	_, err := do(t, c, executor.Shape{}, `{}`)
	require.Error(t, err)
	require.NotContains(t, err.Error(), "sekrit")
	require.NotContains(t, fmt.Sprintf("%+v %#v", c, c), "sekrit")
}

func TestTheCallersEndEndsTheCall(t *testing.T) {
	arrived := make(chan struct{})
	s := serve(t, func(_ web.ResponseWriter, r *web.Request) { close(arrived); <-r.Context().Done() })
	h, err := httpcall.New(local(s, "/", "GET"), executor.Shape{}, func() retry.Config { return retry.Config{} }, "x")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	_, err = h(ctx, &call.Request{Tool: &call.Tool{Name: "t"}})
	require.ErrorIs(t, err, context.Canceled)
}

func TestBadConfigurations(t *testing.T) {
	good := httpcall.Config{URL: "https://example.com/a", Method: "GET"}
	for _, c := range []struct {
		name string
		edit func(*httpcall.Config)
		want string
	}{
		{"none", func(c *httpcall.Config) { c.URL = "" }, "http.url: want an address that begins with http:// or https://"},
		{"another scheme", func(c *httpcall.Config) { c.URL = "ftp://h/" }, "http.url: want an address"},
		{"no host", func(c *httpcall.Config) { c.URL = "https:///x" }, "http.url: is malformed"},
		{"a parameter in the host", func(c *httpcall.Config) { c.URL = "https://{host}.example.com/" }, "http.url: has a parameter before the path"},
		{"a parameter in the port", func(c *httpcall.Config) { c.URL = "https://h:{{.port}}/" }, "http.url: has a parameter before the path"},
		{"a fragment", func(c *httpcall.Config) { c.URL = "https://h/#x" }, "http.url: has a fragment"},
		{"a bad escape", func(c *httpcall.Config) { c.URL = "https://h/%zz" }, "http.url: has a malformed path"},
		{"a method", func(c *httpcall.Config) { c.Method = "TRACE" }, `http.method: "TRACE" is not one of`},
		{"a body of GET", func(c *httpcall.Config) { c.Body = &httpcall.Value{} }, "http.body: GET requests have no body"},
		{"a header's name", func(c *httpcall.Config) { c.Headers = map[string]secret.Text{"a b": "x"} }, `http.headers: "a b" is not a valid header name`},
		{"a header's value", func(c *httpcall.Config) { c.Headers = map[string]secret.Text{"A": "x\ny"} }, "http.headers: the value of A has a control character"},
		{"a header of ours", func(c *httpcall.Config) { c.Headers = map[string]secret.Text{"host": "x"} }, "http.headers: host is set by the host itself"},
		{"a header parameter's name", func(c *httpcall.Config) { c.Request.Headers = map[string]string{"": "x"} }, `http.request.header_params: "" is not a valid header name`},
		{"a fixed header", func(c *httpcall.Config) { c.Request.StaticHeaders = map[string]string{"Content-Length": "1"} }, "http.request.static_headers: Content-Length is set"},
		{"a path of the request", func(c *httpcall.Config) { c.Request.Body = "{a:" }, "http.request.body_mapping: "},
		{"a path of the response", func(c *httpcall.Config) { c.Response = "a[" }, "http.response.body_mapping: "},
		{"a hidden member's name", func(c *httpcall.Config) { c.Redact = []string{"a", ""} }, "http.redact: a member's name is empty"},
		{"two bodies", func(c *httpcall.Config) { c.Method = "POST"; c.Body = &httpcall.Value{}; c.Request.Body = "a" }, "http.body: request also has a body_mapping"},
		{"a key's header", func(c *httpcall.Config) { c.Key = "a b" }, "http.idempotency_key: "},
	} {
		cfg := good
		c.edit(&cfg)
		require.ErrorContains(t, cfg.Validate(), c.want, c.name)
		_, err := httpcall.New(cfg, executor.Shape{}, nil, "")
		require.Error(t, err, c.name)
	}
	require.NoError(t, good.Validate())
}

func TestUses(t *testing.T) {
	c := httpcall.Config{URL: "https://h/{a}?x={{.b}}", Method: "POST", Request: httpcall.Mapping{Query: []string{"c"}, Headers: map[string]string{"X": "{d}"}}}
	require.Equal(t, []string{"a", "b", "c", "d"}, c.Uses())
}

// names answers every question for an A record with an address.
func names(t *testing.T, to [4]byte) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			query := buf[:n]
			end := 12
			for query[end] != 0 {
				end += int(query[end]) + 1
			}
			end += 5 // the root, type and class
			answer := append([]byte{}, query[:end]...)
			answer[2], answer[3] = 0x81, 0x80
			copy(answer[4:12], []byte{0, 1, 0, 0, 0, 0, 0, 0})
			if query[end-3] == 1 { // A
				answer[7] = 1
				answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
				answer = append(answer, to[:]...)
			}
			conn.WriteTo(answer, from) //nolint:errcheck // it is asked again
		}
	}()
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	t.Cleanup(func() {
		net.DefaultResolver = before
		conn.Close()
	})
}

// TestANameLeadsNowherePrivate is about names, also of redirects, that lead to
// addresses of the host's own network: what counts is the address that is
// dialled.
func TestANameLeadsNowherePrivate(t *testing.T) {
	s := serve(t, answer(`{}`))
	names(t, [4]byte{127, 0, 0, 1})
	port := strings.TrimPrefix(s.URL, "http://127.0.0.1:")
	c := httpcall.Config{URL: secret.Text("http://public.example.com:" + port + "/"), Method: "GET"}
	_, err := do(t, c, executor.Shape{}, `{}`)
	require.Equal(t, toolerr.PolicyDenied, toolerr.CodeOf(err), "%v", err)
	require.ErrorContains(t, err, "127.0.0.1, a loopback address")
	require.Empty(t, s.requests())

	c.Networks = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	_, err = do(t, c, executor.Shape{}, `{}`)
	require.NoError(t, err, "the name does lead there")
	require.Len(t, s.requests(), 1)
}
