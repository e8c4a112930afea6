package secret_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/secret"
)

func TestMaskSecrets(t *testing.T) {
	cases := []struct{ name, in, want string }{
		{"plain", "KEY=value\n", "KEY=***\n"},
		{"no newline at the end", "KEY=value", "KEY=***"},
		{"line ends stay", "A=1\r\nB=2\r\n\r\n", "A=***\r\nB=***\r\n\r\n"},
		{"white space stays", "  A = 1 \n", "  A = ***\n"},
		{"export", "export TOKEN='x y'\n", "export TOKEN=***\n"},
		{"empty values", "A=\nB= \nC=3\n", "A=\nB= \nC=***\n"},
		{"comments", "# about\n\n#OLD=secret\n; see\nA=1 # why\n", "# about\n\n#OLD=***\n; see\nA=***\n"},
		{"addresses in comments", "# was https://me:pw@host/x and ftp://a@b\n", "# was https://***@host/x and ftp://***@b\n"},
		{"several lines in quotes", "A=\"one\ntwo=2\nthree\"\nB=1\n", "A=***\n***\n***\nB=***\n"},
		{"an escaped quote", "A=\"x\\\"y\nz\"\nB=1\n", "A=***\n***\nB=***\n"},
		{"a quote that never ends", "A='it\nB=2\n", "A=***\nB=***\n"},
		{"a key without quotes", "K=-----BEGIN RSA PRIVATE KEY-----\nMIIE=\nabc==\n-----END RSA PRIVATE KEY-----\nB=2\n", "K=***\n***\n***\n***\nB=***\n"},
		{"a key alone", "-----BEGIN X-----\na=b\n-----END X-----\n", "***\n***\n***\n"},
		{"base64 over lines", "K=abcd\nefgh1234==\nijkl=\n", "K=***\n***\n***\n"},
		{"a backslash goes on", "A=one\\\ntwo=three\nB=1\n", "A=***\n***\nB=***\n"},
		{"what is not understood", "just-a-token\nbearer abc\n", "***\n***\n"},
		{"with a colon", "A: 1\nB:2\n", "A: ***\nB:***\n"},
		{"as JSON", "{\n  \"A\": \"1\",\n  \"B\": \"2\"\n}\n", "{\n  \"A\": ***\n  \"B\": ***\n}\n"},
		{"npm", "//registry.example.com/:_authToken=npm_x\n@me:registry=https://x\n_auth = abc=\nsave-exact=true\n", "//registry.example.com/:_authToken=***\n@me:registry=***\n_auth = ***\nsave-exact=***\n"},
		{"a section", "[default]\nA=1\n", "[default]\nA=***\n"},
		{"an = in the value", "A=b=c\n", "A=***\n"},
		{"one token in base64", "c3VwZXJzZWNyZXRwYXNzd29yZA=\n", "***\n"},
		{"a short one", "aHVudGVyMg=\n", "***\n"},
		{"base64 below a key", "password:\n  c3VwZXJzZWNyZXRwYXNzd29yZB=\nuser: x\n", "password:\n***\nuser: ***\n"},
		{"a short one below a key", "password:\n  aHVudGVy=\nuser: x\n", "password:\n***\nuser: ***\n"},
		{"base64 behind a key of JSON5", "{\n password:\n aHVudGVy=\n}\n", "{\n password:\n***\n}\n"},
		{"base32", "A=1\nJBSWY3DPEHPK3PXPJBSW=\n", "A=***\n***\n"},
		{"base64 between settings", "A=1\nc3VwZXJzZWNyZXQx=\nB=2\n", "A=***\n***\nB=***\n"},
		{"a sequence below a key", "tokens:\n  [supersecret]\n", "tokens:\n***\n"},
		{"a sequence of JSON5", "{tokens:\n[supersecret]\n}\n", "***\n***\n}\n"},
		{"a scalar with a colon below a key", "auth:\n  user:hunter2\nb: 1\n", "auth:\n***\nb: ***\n"},
		{"an assignment below a key", "auth:\n  token=hunter2\n  more\nb: 1\n", "auth:\n***\n***\nb: ***\n"},
		{"mappings", "a:\n  b:\n    c: 1\n  d: 2\n", "a:\n  b:\n    c: ***\n  d: ***\n"},
		{"a number in brackets", "[12345678]\n", "***\n"},
		{"sections after empty values", "A=\n[one.two]\nB=\n[three]\n", "A=\n[one.two]\nB=\n[three]\n"},
		{"empty values of many kinds", "API_KEY=\nsave-exact=\napiKey=\nexport TOKEN=\nx.y=\nDB_PASSWORD_2=\nA_VERY_LONG_NAME_OF_A_VARIABLE=\n", "API_KEY=\nsave-exact=\napiKey=\nexport TOKEN=\nx.y=\nDB_PASSWORD_2=\nA_VERY_LONG_NAME_OF_A_VARIABLE=\n"},
		{"no keys of npm", "// see x=1\n//user:token@host/:k=v\n@a b@x=1\n", "***\n***\n***\n"},
		{"nothing", "", ""},
		{"only newlines", "\n\n", "\n\n"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			require.Equal(t, tc.want, string(secret.Mask([]byte(tc.in))))
		})
	}
}

// Whatever the text, lines stay lines and a value behind = never shows.
func FuzzMask(f *testing.F) {
	f.Add([]byte("A=1\nB=\"x\ny\"\n# c\n"), "hunter2")
	f.Add([]byte("{\r\n\"a\":'\\"), "s3cr3t")
	f.Fuzz(func(t *testing.T, text []byte, value string) {
		out := secret.Mask(text)
		require.Equal(t, bytes.Count(text, []byte("\n")), bytes.Count(out, []byte("\n")))
		if len(value) < 4 || bytes.ContainsAny([]byte(value), "\n\r*=#") || len(bytes.TrimSpace([]byte(value))) != len(value) || bytes.Contains(text, []byte(value)) {
			return
		}
		withSecret := append(append(append([]byte{}, text...), "\nTOKEN="...), value...)
		require.NotContains(t, string(secret.Mask(withSecret)), value)
	})
}
