package httpcall_test

import (
	"encoding/json"
	"io"
	web "net/http"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/executor"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/httpcall"
)

// says answers with a body of a type, whatever that is.
func says(kind, body string, status int) web.HandlerFunc {
	return func(w web.ResponseWriter, _ *web.Request) {
		w.Header()["Content-Type"] = []string{kind}
		w.WriteHeader(status)
		io.WriteString(w, body) //nolint:errcheck // a test's
	}
}

func utf16le(text string) string {
	var out []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		out = append(out, byte(unit), byte(unit>>8))
	}
	return string(out)
}

// What is to be left out is so whatever the answer says of itself, and whether
// it is a success.
func TestWhatIsRedactedWhateverItsType(t *testing.T) {
	const secretOf = `{"a":1,"token":"sekrit \\\"sekrit","l":[{"Token":{"x":"sekrit"}}],"text":"{\"token\":\"sekrit\"}","last":2}`
	kinds := []string{"", "application/json", "application/json; charset=utf-8", "application/problem+json", "text/plain", "text/html", "application/xml", "application/x-www-form-urlencoded",
		"application/octet-stream", "image/png", "audio/wav", "image/svg+xml", "application/pdf", "text/event-stream", "application/x-ndjson", "; broken", "multipart/form-data; boundary=x"}
	bodies := map[string]string{
		"JSON":         secretOf,
		"a mark":       "\xef\xbb\xbf" + secretOf,
		"a mark of 16": "\xff\xfe" + utf16le(secretOf),
		"lines":        secretOf + "\n" + secretOf,
		"events":       "event: x\ndata: " + secretOf + "\n\n",
		"a callback":   "cb(" + secretOf + ");",
		"cut off":      secretOf[:strings.Index(secretOf, "x")+9],
		"cut in it":    secretOf[:strings.Index(secretOf, "sekrit")+6],
		"a page":       "<html><script>var x = " + secretOf + "</script></html>",
		"a form":       "a=1&token=sekrit&last=2",
		"a header":     "X: 1\r\nToken: Bearer sekrit\r\n",
		"XML":          `<r><a>1</a><ns:token kind="sekrit"><x>sekrit</x></ns:token><token v="sekrit"/><last>2</last></r>`,
		"an attribute": `<r token="sekrit" last="2">x</r>`,
		"YAML":         "a: 1\ntoken: 'sek''rit sekrit'\nlast: 2\n",
		"Python":       `{'a': 1, 'token': 'it\'s sekrit', 'last': 2}`,
		"escaped":      `say "{\"token\":\"a \\\"sekrit\", \"last\":2}"`,
		"latin-1":      "{\"name\":\"caf\xe9\",\"token\":\"sekrit\"}",
	}
	var now atomic.Pointer[web.HandlerFunc]
	s := serve(t, func(w web.ResponseWriter, r *web.Request) { (*now.Load())(w, r) })
	s.Config.SetKeepAlivesEnabled(false) // each call has connections of its own
	for _, kind := range kinds {
		for _, status := range []int{200, 404, 500} {
			for name, body := range bodies {
				handler := says(kind, body, status)
				now.Store(&handler)
				cfg := local(s, "/", "POST")
				cfg.Redact = []string{"token", "[x"}
				res, err := do(t, cfg, executor.Shape{}, `{}`)
				if err != nil {
					require.NotContains(t, err.Error(), "sekrit", "%s of %q", name, kind)
					continue
				}
				require.NotContains(t, string(res.Raw), "sekrit", "%s of %q", name, kind)
				require.True(t, json.Valid(res.Raw))
				if status == 200 {
					require.NotContains(t, string(res.Raw), `"blob"`, "%s of %q", name, kind)
					require.Contains(t, string(res.Raw), httpcall.Redacted, "%s of %q", name, kind)
				}
			}
		}
	}
}

func TestWhatIsNotRedacted(t *testing.T) {
	for _, c := range []struct{ kind, body, want string }{
		{"text/plain", "the token is gone; tokens: 2, mytoken=3", `{"content":[{"type":"text","text":"the token is gone; tokens: 2, mytoken=3"}]}`},
		{"text/html", "a=1&token=x&last=2", `{"content":[{"type":"text","text":"a=1&token=[REDACTED]&last=2"}]}`},
		{"application/json", `{"text":" {\"a\": 1.0} ","n":1.50}`, `"text":"{\"text\":\" {\\\"a\\\": 1.0} \",\"n\":1.50}"`},
		{"image/png", "\x89PNG\x00token=x", `"type":"image"`},
		{"application/pdf", "%PDF\x00\xff", `"blob"`},
	} {
		cfg := local(serve(t, says(c.kind, c.body, 200)), "/", "GET")
		cfg.Redact = []string{"token"}
		res, err := do(t, cfg, executor.Shape{}, `{}`)
		require.NoError(t, err)
		require.Contains(t, string(res.Raw), c.want)
	}
}

func TestTextOfSixteenBits(t *testing.T) {
	for kind, body := range map[string]string{
		"text/plain; charset=utf-16le": utf16le("héllo 😀"),
		"text/plain; charset=utf-16":   "\xff\xfe" + utf16le("héllo 😀"),
		"text/plain":                   "\xff\xfe" + utf16le("héllo 😀"),
		"text/plain; charset=utf-16be": "\x00h\x00\xe9\x00l\x00l\x00o\x00 \xd8\x3d\xde\x00",
	} {
		res, err := do(t, local(serve(t, says(kind, body, 200)), "/", "GET"), executor.Shape{}, `{}`)
		require.NoError(t, err)
		require.Contains(t, string(res.Raw), `"text":"héllo 😀"`, kind)
	}
}

// Mappings of what is sent and of what comes back leave numbers as they are.
func TestMappingsLeaveNumbersAsTheyAre(t *testing.T) {
	const ids = `{"items":[{"id":1234567890123456791,"v":12345678901234.123456789},{"id":1234567890123456789,"v":1.50},{"id":9007199254740993,"v":1e400},{"id":9007199254740992,"v":-12345678901234567890},{"id":7,"v":0}]}`
	for _, c := range []struct{ path, want string }{
		{"items[].id", `[1234567890123456791,1234567890123456789,9007199254740993,9007199254740992,7]`},
		{"items[].v", `[12345678901234.123456789,1.50,1e400,-12345678901234567890,0]`},
		{"items[].to_string(id)", `["1234567890123456791","1234567890123456789","9007199254740993","9007199254740992","7"]`},
		{"sort_by(items, &id)[].id", `[7,9007199254740992,9007199254740993,1234567890123456789,1234567890123456791]`},
		{"items[?id > `10`].id", `[1234567890123456791,1234567890123456789,9007199254740993,9007199254740992]`},
		{"items[?id == `1234567890123456789`].id", `[1234567890123456789]`},
		{"max_by(items, &id).id", `1234567890123456791`},
		{"sort(items[:4].id)", `[9007199254740992,9007199254740993,1234567890123456789,1234567890123456791]`},
		{"length(items)", `5`},
		{"sum(items[4:].id)", `7`},
	} {
		s := serve(t, answer(ids))
		cfg := local(s, "/", "POST")
		cfg.Response, cfg.Request.Body = c.path, c.path
		res, err := do(t, cfg, executor.Shape{Declared: true, Wrapped: true}, ids)
		require.NoError(t, err, c.path)
		require.Contains(t, string(res.Raw), `"structuredContent":{"result":`+c.want+`}}`, c.path)
		require.Equal(t, c.want, s.requests()[0].body, c.path)
	}
	cfg := local(serve(t, answer(`{"a":{},"l":[{}]}`)), "/", "GET")
	cfg.Response = "contains(l, a)"
	_, err := do(t, cfg, executor.Shape{}, `{}`)
	require.ErrorContains(t, err, "http.response.body_mapping cannot be applied", "the library panics")
	// A mapping is of JSON, whatever type it says it is.
	cfg = local(serve(t, says("text/html", `{"a":1,"more":"x"}`, 200)), "/", "GET")
	cfg.Response = "{a: a}"
	res, err := do(t, cfg, executor.Shape{}, `{}`)
	require.NoError(t, err)
	require.Contains(t, string(res.Raw), `"text":"{\"a\":1}"`)
}
