package secret_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"go.yaml.in/yaml/v3"
)

func TestTextIsNeverShown(t *testing.T) {
	const value = "hunter2"
	held := struct {
		Env map[string]secret.Text
		Key secret.Text
	}{map[string]secret.Text{"K": value}, value}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%08.3f", "%z"} {
		require.NotContains(t, fmt.Sprintf(verb, held.Key), value, verb)
		require.NotContains(t, fmt.Sprintf(verb, held), value, verb)
		require.NotContains(t, fmt.Sprintf(verb, held.Key), "68756e74", verb)
	}
	raw, err := json.Marshal(held)
	require.NoError(t, err)
	require.Equal(t, `{"Env":{"K":"***"},"Key":"***"}`, string(raw))
	raw, err = yaml.Marshal(held)
	require.NoError(t, err)
	require.NotContains(t, string(raw), value)
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "key", held.Key)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "held", held)
	require.NotContains(t, log.String(), value)
	require.Equal(t, value, held.Key.Reveal())
}

func TestArgs(t *testing.T) {
	for _, c := range []struct{ in, want []string }{
		{[]string{"npx", "-y", "@modelcontextprotocol/server-filesystem", "/data"}, nil},
		{[]string{"x", "--token", "abc", "--port", "80"}, []string{"x", "--token", "***", "--port", "80"}},
		{[]string{"x", "--api-key=abc"}, []string{"x", "--api-key=***"}},
		{[]string{"x", "--api-key", "${API_KEY}"}, nil},
		{[]string{"x", "--token", "--verbose"}, nil},
		{[]string{"docker", "run", "-e", "GITHUB_TOKEN=abc", "-e", "MODE=x", "img"}, []string{"docker", "run", "-e", "GITHUB_TOKEN=***", "-e", "MODE=x", "img"}},
		{[]string{"mcp-remote", "https://u:p@h/mcp?key=abc&b=c", "--header", "Authorization: Bearer abc"}, []string{"mcp-remote", "https://***@h/mcp?key=***&b=***", "--header", "Authorization:***"}},
		{[]string{"x", "--url=https://h/p?k=v"}, []string{"x", "--url=https://h/p?k=***"}},
		{[]string{"x", "postgresql://me:pw@localhost/db"}, []string{"x", "postgresql://***@localhost/db"}},
		{[]string{"sh", "-c", "TOKEN=abc run"}, []string{"sh", "-c", "TOKEN=***"}},
		{[]string{"sh", "-c", "exec run  --api-key k a  b"}, []string{"sh", "-c", "exec run --api-key *** a b"}},
		{[]string{"sh", "-c", "echo  a"}, nil},
		{[]string{"x", "ghp_0123456789abcdef"}, []string{"x", "***"}},
		{[]string{"x", "0123456789abcdef0123456789abcdef01234567"}, []string{"x", "***"}},
		{[]string{"x", "https://h/s/0123456789abcdef0123456789abcdef/mcp"}, []string{"x", "https://h/s/***/mcp"}},
		// By name wherever it stands: in JSON, quoted once more or not, in
		// connection strings, behind a flag.
		{[]string{"x", "--config", `{"dbPassword":"two words","url":"https://h/mcp","n":1}`}, []string{"x", "--config", `{"dbPassword":***,"url":"https://h/mcp","n":1}`}},
		{[]string{"x", `"{\"apiKey\":\"abc\", \"mode\":\"m\"}"`}, []string{"x", `"{\"apiKey\":***, \"mode\":\"m\"}"`}},
		{[]string{"x", "Server=h;User Id=sa;Password=a,b@c;Encrypt=true"}, []string{"x", "Server=h;User Id=sa;Password=***;Encrypt=true"}},
		{[]string{"x", "--env=DB_PASSWORD=abc"}, []string{"x", "--env=DB_PASSWORD=***"}},
		{[]string{"sh", "-c", "curl -H 'Authorization: Bearer abc' https://h"}, []string{"sh", "-c", "curl -H 'Authorization: ***' https://h"}},
		{[]string{"x", `{"token":"${TOKEN}"}`}, nil},
		// A password that is not escaped.
		{[]string{"x", "postgresql://me:p@w@localhost/db"}, []string{"x", "postgresql://***@localhost/db"}},
		{[]string{"x", "postgresql://me:p/w?y@localhost/db"}, []string{"x", "postgresql://***@localhost/db"}},
		{[]string{"x", "--dsn=mysql://me:p#w@h/db"}, []string{"x", "--dsn=***"}},
		{[]string{"x", "https://h:80/token=abc/mcp?b=c"}, []string{"x", "https://h:80/token=***"}},
		{[]string{"x", "http://h:80/@scope/pkg", "https://h/@scope/pkg"}, nil},
	} {
		if c.want == nil {
			c.want = c.in
		}
		require.Equal(t, c.want, secret.RedactArgs(c.in))
	}
}

// However long or nested what is hidden from, it takes no time that matters.
func TestArgsOfAnyLength(t *testing.T) {
	for _, unit := range []string{"a:", "a=", "a=:// ", `"a":`, `\"`, "token ", "//a:"} {
		arg := strings.Repeat(unit, 1_500)
		got := secret.RedactArgs([]string{"x", arg + " token=SEKRIT", arg + "://token=SEKRIT", "--" + arg})
		require.NotContains(t, strings.Join(got, " "), "SEKRIT", unit)
	}
}

func TestName(t *testing.T) {
	for _, name := range []string{"GITHUB_TOKEN", "apiKey", "API-KEY", "DB_PASSWORD", "Authorization", "Cookie", "AWS_SECRET_ACCESS_KEY", "MY_PAT", "key"} {
		require.True(t, secret.IsSecretName(name), name)
	}
	for _, name := range []string{"PATH", "MODE", "keyboard", "PORT", "MONKEY", "compat"} {
		require.False(t, secret.IsSecretName(name), name)
	}
}
