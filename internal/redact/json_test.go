package redact_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/internal/redact"
)

func TestCredentialsAreHidden(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{"path":"a/b.go","n":1.50,"deep":{"a":[true,null,"x"]}}`, ``},
		{`{"password":"hunter2"}`, `{"password":"***"}`},
		{`{"headers":{"Authorization":"Bearer abc"},"x":[{"api_key":"k"}]}`, `{"headers":{"Authorization":"***"},"x":[{"api_key":"***"}]}`},
		{`{"apiKey":{"value":"k"},"client-secret":["k"],"pass\u0077ord":"k","PASSWD":12345}`, `{"apiKey":"***","client-secret":"***","password":"***","PASSWD":"***"}`},
		{`{"max_tokens":100,"token":null,"author":"ada","key":"name","keyboard":"qwerty","pattern":"x"}`, `{"max_tokens":100,"token":null,"author":"ada","key":"name","keyboard":"qwerty","pattern":"x"}`},
		{`{"command":"curl -H 'Authorization: Bearer abcdef' https://ada:pw@example.com/x"}`, `{"command":"curl -H 'Authorization: Bearer ***' https://***@example.com/x"}`},
		{`{"command":"export GITHUB_TOKEN=abc; run --password hunter2 --api-key=k --user ada"}`, `{"command":"export GITHUB_TOKEN=***; run --password *** --api-key=*** --user ada"}`},
		{`{"command":"git clone https://example.com/?token=abc&x=1"}`, `{"command":"git clone https://example.com/?token=***&x=1"}`},
		{`{"text":"the key is sk-abcdefghijkl and ghp_0123456789ab, AKIA0123456789AB"}`, `{"text":"the key is *** and ***, ***"}`},
		{`{"text":"password = hunter2\nuser: ada"}`, `{"text":"password = ***\nuser: ada"}`},
		{`{"text":"X=eyJhbGciOiJIUzI1NiJ9.e30.x"}`, `{"text":"X=***"}`},
		{`{"text":"DB=postgres://u:p@h/d"}`, `{"text":"DB=postgres://***@h/d"}`},
		{`{"text":"a -----BEGIN RSA PRIVATE KEY-----\nMIIE"}`, `{"text":"a -----BEGIN RSA PRIVATE KEY-----***"}`},
		{`["sk-abcdefghijkl"]`, `["***"]`},
		{`"plain"`, `"plain"`},
		{`{"a":`, `null`},
		{`{"a" 1}`, `null`},
		{`{"token":{]}`, `{"token":"***"}`},
		{`{"a":"x}`, `null`},
		{``, `null`},
	} {
		if c.want == "" {
			c.want = c.in
		}
		require.Equal(t, c.want, string(redact.AppendJSON(nil, json.RawMessage(c.in), 4096)), c.in)
	}
}

func TestWhatIsLongIsCutAndSaidSo(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"text", `{"t":"` + strings.Repeat("é", 300) + `"}`, `{"t":"` + strings.Repeat("é", 256) + `… (of 600 bytes)"}`},
		{"a long text", `{"t":"` + strings.Repeat("x", 1<<20) + `","u":1}`, `{"t":"` + strings.Repeat("x", 512) + `… (of 1048576 bytes)","u":1}`},
		{"escapes", `["` + strings.Repeat(`\u00e9`, 5000) + `"]`, `["` + strings.Repeat("é", 256) + `… (of 30000 bytes)"]`},
		{"backslashes", `["` + strings.Repeat(`\\`, 5000) + `"]`, `["` + strings.Repeat(`\\`, 512) + `… (of 10000 bytes)"]`},
		{"items", `[` + strings.Repeat(`1000,`, 5000) + `1]`, `[` + strings.Repeat(`1000,`, 819) + `1000,"4181 more"]`},
		{"members", `{"a":"` + strings.Repeat("x", 500) + `","b":"` + strings.Repeat("x", 4000) + `","c":"` + strings.Repeat("x", 500) + `"}`, ""},
		{"name", `{"` + strings.Repeat("n", 1000) + `":1}`, `{"` + strings.Repeat("n", 128) + `…":1}`},
		{"depth", strings.Repeat("[", 1000) + strings.Repeat("]", 1000), `null`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := redact.AppendJSON(nil, json.RawMessage(c.in), 4096)
			require.True(t, json.Valid(got))
			require.Less(t, len(got), 8000)
			if c.want != "" {
				require.Equal(t, c.want, string(got))
			}
		})
	}
	got := redact.AppendJSON(nil, json.RawMessage(`{"a":"`+strings.Repeat("x", 500)+`","b":{"c":1},"d":[2,"]"],"e":"\"}"}`), 100)
	require.Equal(t, `{"a":"`+strings.Repeat("x", 500)+`","…":"3 more"}`, string(got))
}

func FuzzRedact(f *testing.F) {
	f.Add(`{"a":["x",{"token":"y"}],"b":"\u00e9\\"}`, 10)
	f.Add(`{"command":"export A_TOKEN=x && run"}`, 4096)
	f.Fuzz(func(t *testing.T, in string, max int) {
		got := redact.AppendJSON([]byte("x"), json.RawMessage(in), min(max, 1<<16))
		if !json.Valid(got[1:]) {
			t.Fatalf("%q became %q", in, got)
		}
		if json.Valid([]byte(in)) && strings.Count(in, "[")+strings.Count(in, "{") < 60 && string(got[1:]) == "null" && strings.TrimSpace(in) != "null" {
			t.Fatalf("%q was dropped", in)
		}
	})
}
