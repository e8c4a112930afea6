package proc_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

func TestEnvironmentIsFiltered(t *testing.T) {
	passed := []string{
		"HOME=/home/x", "LANG=C.UTF-8", "GOPATH=/go", "KEYMAP=us", "PASSAGE=1", "OLDPWD=/x", "PWD=/y", "KEY=1", "MONKEY=1",
		"AUTHOR=me", "GIT_AUTHOR_NAME=me", "CI=true", "URL=https://example.com/a@b", "SKIP=sk-1", "TOKENIZERS_PARALLELISM=false",
		"REPO=ssh://git@example.com/x", "FORMAT=%(pwd)=1", "MAIL=https://example.com/?q=a@b", "BYPASS=1", "HOOK=x",
		"FZF=cd $pwd", "OPTS=--password-file=/x", "DOCKER=-u 1000", "URL=https://example.com/?user=x", "PROMPT=pwd: %~", "X=password=", "STYLE=color:red",
	}
	held := []string{
		"GITHUB_TOKEN=x", "API_KEY=x", "AWS_SECRET_ACCESS_KEY=x", "AWS_ACCESS_KEY_ID=x", "DB_PASSWORD=x", "PGPASSWORD=x", "MYTOKEN=x",
		"OPENAI_API_KEY=x", "anthropic_api_key=x", "SESSION_COOKIE=x", "X=ghp_0123456789abcdef", "X=AKIA0123456789ABCDEF",
		"DATABASE_URL=postgres://user:secret@host/db", "LD_PRELOAD=/x.so", "LD_LIBRARY_PATH=/x", "BASH_ENV=/x", "ENV=/x",
		"BASH_FUNC_ls%%=() { echo; }", "X=() { :; }", "http_proxy=http://x", "HTTPS_PROXY=http://x", "SSH_AUTH_SOCK=/x",
		"DBUS_SESSION_BUS_ADDRESS=unix:/x", "GIT_SSH_COMMAND=x", "GIT_CONFIG_COUNT=1", "PS4=$(x)", "IFS=x", "PROMPT_COMMAND=x",
		"SHELLOPTS=xtrace", "XDG_RUNTIME_DIR=/run/user/1", "DOCKER_HOST=unix:///x", "TOOLROOM_TOKEN=x", "noequals", "=x",
		"SSHPASS=x", "SECRETKEY=x", "MASTERKEY=x", "AUTHORIZATION=Bearer x", "SLACK_WEBHOOK_URL=https://x", "X=https://hooks.slack.com/services/T000/B000/x",
		"STORAGE=DefaultEndpointsProtocol=https;AccountName=x;AccountKey=x", "SQL=Server=h;User Id=u;Password=x;", "X=Authorization: Bearer x",
		"INDEXES=https://example.com/simple https://u:secret@example.com/simple", "INDEX=https://token@example.com/simple",
		"JDBC=jdbc:postgresql://h/db?user=x&password=x", "JDBC=jdbc:mysql://h/db?password=x", "PG=host=h user=u password=x", "PG=password = 'x'", "SPRING={\"password\": \"x\"}",
		"OPTS=-Dspring.datasource.password=x", "CURL=-u user:x", "CURL=-s --user=me:x", "X={'api_key':'x'}", "X=client_secret=x", "MSSQL=Server=h;PWD=x", "APP_PW=x",
	}
	for _, pair := range passed {
		env, _ := proc.Environ{Base: []string{pair}}.Build()
		require.Contains(t, env, pair)
	}
	for _, pair := range held {
		env, _ := proc.Environ{Base: []string{pair}}.Build()
		require.NotContains(t, env, pair)
		_, refused := proc.Environ{Extra: []string{pair}}.Build()
		require.Len(t, refused, 1, "the call's own passes the same filter: %s", pair)
	}
	env, refused := proc.Environ{Base: []string{"GITHUB_TOKEN=x", "LD_PRELOAD=y"}, PassSecrets: []string{"GITHUB_TOKEN", "LD_PRELOAD"}}.Build()
	require.Contains(t, env, "GITHUB_TOKEN=x")
	require.NotContains(t, env, "LD_PRELOAD=y", "no secret")
	require.Empty(t, refused)
}

func TestEnvironmentIsNotInteractive(t *testing.T) {
	env, _ := proc.Environ{Base: []string{"PAGER=less", "TERM=xterm", "GIT_EDITOR=vi"}, Extra: []string{"GIT_TERMINAL_PROMPT=1"}}.Build()
	for _, pair := range []string{
		"PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true", "TERM=dumb", "NO_COLOR=1", "DEBIAN_FRONTEND=noninteractive",
	} {
		require.Contains(t, env, pair)
	}
	require.True(t, slices.IsSorted(env))
}

func TestSearchPathHasNoPlaceToWriteInto(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	root, bin := filepath.Join(dir, "root"), filepath.Join(dir, "bin")
	require.NoError(t, os.MkdirAll(filepath.Join(root, "bin"), 0o755))
	require.NoError(t, os.Mkdir(bin, 0o755))
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(filepath.Join(root, "bin"), link))
	list := strings.Join([]string{"", ".", "bin", filepath.Join(root, "bin"), link, bin, filepath.Join(dir, "missing"), bin}, string(filepath.ListSeparator))
	env, _ := proc.Environ{Base: []string{"PATH=" + list}, Writable: []string{root}}.Build()
	require.Contains(t, env, "PATH="+bin)
}
