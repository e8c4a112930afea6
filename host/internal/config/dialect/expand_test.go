package dialect_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
)

func variables(set ...string) dialect.Variables {
	env := map[string]string{}
	for i := 0; i < len(set); i += 2 {
		env[set[i]] = set[i+1]
	}
	eu := "eu"
	return dialect.Variables{
		Env: func(name string) (string, bool) {
			value, ok := env[name]
			return value, ok
		},
		Folder: "/srv/project", Home: "/home/me",
		Inputs: map[string]dialect.Input{"api-key": {ID: "api-key", Description: "The key"}, "region": {ID: "region", Default: &eu}},
	}
}

func TestVariables(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"${X}", "x"}, {"$X", "x"}, {"${env:X}", "x"}, {"${env://X}", "x"}, {"{env:X}", "x"},
		{"${X:-d}", "x"}, {"${env:X:-d}", "x"}, {"${env://X:-d}", "x"}, {"{env:X:-d}", "x"},
		{"${NO:-d}", "d"}, {"${env://NO:-d}", "d"}, {"${EMPTY:-d}", "d"}, {"${EMPTY}", ""}, {"${NO:-}", ""},
		{"${NO:-${X}}", "x"}, {"${NO:-${ALSO:-${X}y}z}", "xyz"}, {"${NO:-a:-b}", "a:-b"}, {"${NO:-{env:X}}z", "xz"},
		{"a${X}b$X.c{env:X}", "axbx.cx"},
		{"${NO:-https://h/p?q=1}/mcp", "https://h/p?q=1/mcp"},
		{"$$X", "$X"}, {"$$${X}", "$x"}, {"100$", "100$"}, {"^a$|b", "^a$|b"}, {"$1", "$1"}, {"{X}", "{X}"}, {"{envy}", "{envy}"},
		{"${VALUE}", "${X}"}, // what a variable holds is not expanded again
		{"${workspaceFolder}/t", "/srv/project/t"}, {"${workspaceFolderBasename}", "project"}, {"${userHome}", "/home/me"},
		{"${input:region}", "eu"},
		{"ünï${X}", "ünïx"},
	} {
		s := dialect.Server{Name: "s", URL: c.text}
		got, problems := s.Expand(variables("X", "x", "EMPTY", "", "VALUE", "${X}"))
		require.Empty(t, problems, c.text)
		require.Equal(t, c.want, got.URL, c.text)
	}
}

// What {file:path} stands for is what the file holds, which no listing shows.
func TestFiles(t *testing.T) {
	files := map[string]string{"key": " SEKRIT\n", "/home/me/k": "SEKRIT2", "var": "${X}{file:key}", "none": ""}
	v := variables("X", "x")
	v.File = func(path string) (string, error) {
		text, ok := files[path]
		if !ok {
			return "", errors.New("no such file")
		}
		return text, nil
	}
	for text, want := range map[string]string{
		"{file:key}": "SEKRIT", "Bearer {file:~/k}": "Bearer SEKRIT2", "${NO:-{file:key}}": "SEKRIT", "{file:none}": "",
		"{file:var}": "${X}{file:key}", // is not expanded again
		"{files:x}":  "{files:x}", "{file}": "{file}",
	} {
		s := dialect.Server{Name: "s", APIKey: secret.Text(text), Files: true}
		got, problems := s.Expand(v)
		require.Empty(t, problems, text)
		require.Equal(t, want, got.APIKey.Reveal(), text)
	}
	for text, want := range map[string]string{
		"{file:key": "{file: without a closing brace", "{file: }": "without a file name", "{file:no}": "s: api_key: {file:no}: no such file",
	} {
		_, problems := dialect.Server{Name: "s", APIKey: secret.Text(text), Files: true}.Expand(v)
		require.ErrorContains(t, problems, want)
	}
	// For those who do not have it, it is a text as any other.
	for _, text := range []string{"{file:key}", "--format={file:line}", "{file:"} {
		got, problems := dialect.Server{Name: "s", APIKey: secret.Text(text)}.Expand(v)
		require.Empty(t, problems)
		require.Equal(t, text, got.APIKey.Reveal())
	}
	for file, text := range map[string]string{
		"opencode.json": `{"mcp": {"x": {"type": "local", "command": ["c", "{file:key}"]}}}`,
		"toolroom.yaml": "servers: {x: {command: c, args: ['{file:key}']}}",
		"cursor.json":   `{"mcpServers": {"x": {"command": "c", "args": ["{file:key}"]}}}`,
	} {
		d := dialect.Parse(file, []byte(text), dialect.Options{})
		require.Empty(t, d.Problems)
		require.Equal(t, file != "cursor.json", d.Servers[0].Files, file)
	}

	s := dialect.Server{Name: "s", Command: []string{"c", "pre{file:key}post", "{file:~/k}"}, Files: true}
	got, problems := s.Expand(v)
	require.Empty(t, problems)
	require.Equal(t, []string{"c", "preSEKRITpost", "SEKRIT2"}, got.Command)
	require.Len(t, got.Contents, 2)
	require.NotContains(t, fmt.Sprintf("%v %+v %#v %s %+v", got, got, got, got.RedactedTarget(), got.View()), "SEKRIT")
	got, problems = dialect.Server{Name: "s", URL: "https://h/{file:key}/mcp", Files: true}.Expand(v)
	require.Empty(t, problems)
	require.Equal(t, "https://h/SEKRIT/mcp", got.URL)
	require.Equal(t, "https://h/***/mcp", got.View().URL)

	// It is relative to the file that it stands in, wherever that is taken over to.
	moved := s.FromFiles(func(path string) string { return "/etc/" + path })
	require.Equal(t, []string{"c", "pre{file:/etc/key}post", "{file:/etc/~/k}"}, moved.Command)
	require.Equal(t, "pre{file:key}post", s.Command[1], "the original stays as it is")
}

func TestVariablesThatAreNotSet(t *testing.T) {
	d := dialect.Parse("a.json", []byte(`{"mcpServers": {"x": {
"command": "${NO_COMMAND}",
"args": ["$NO_ARG"],
"env": {"K": "pre${env:NO_ENV}post", "L": "${input:api-key}", "M": "${input:none}"},
"cwd": "{env:NO_DIR}"}}}`), dialect.Options{})
	require.Empty(t, d.Problems)
	_, problems := d.Servers[0].Expand(variables())
	const hint = "; set it, give a default with "
	require.Equal(t, strings.Join([]string{
		"a.json:2: server x: command: variable NO_COMMAND is not set" + hint + "${NO_COMMAND:-default}, or write $$ for a dollar sign",
		"a.json:3: server x: args: variable NO_ARG is not set" + hint + "${NO_ARG:-default}, or write $$ for a dollar sign",
		"a.json:4: server x: env: K: variable NO_ENV is not set" + hint + "${NO_ENV:-default}, or write $$ for a dollar sign",
		"a.json:4: server x: env: L: input api-key (The key): set the environment variable TOOLROOM_INPUT_API_KEY",
		"a.json:4: server x: env: M: input none is not declared under inputs",
		"a.json:5: server x: cwd: variable NO_DIR is not set" + hint + "${NO_DIR:-default}, or write $$ for a dollar sign",
	}, "\n"), problems.Error())

	got, problems := d.Servers[0].Expand(variables("NO_COMMAND", "~/bin/c", "NO_ARG", "a b", "NO_ENV", "-", "TOOLROOM_INPUT_API_KEY", "k", "NO_DIR", "~"))
	require.Len(t, problems, 1)
	require.Equal(t, []string{"/home/me/bin/c", "a b"}, got.Command)
	require.Equal(t, "pre-post", got.Env["K"].Reveal())
	require.Equal(t, "k", got.Env["L"].Reveal())
	require.Equal(t, "/home/me", got.Dir)
	require.Equal(t, []string{"${NO_COMMAND}", "$NO_ARG"}, d.Servers[0].Command, "the original stays as it is")

	for text, want := range map[string]string{
		"${X":               "unclosed ${",
		"{env:X":            "{env: without a closing brace",
		"${}":               "invalid variable name",
		"${X?}":             "invalid variable name",
		"${env:}":           "invalid variable name",
		"pa$SekritPassword": "a variable ($ and a name, not shown) is not set; write $$ for a dollar sign",
		strings.Repeat("${A:-", 10) + strings.Repeat("}", 10): "nested too deep",
	} {
		_, problems := dialect.Server{Name: "x", APIKey: secret.Text(text)}.Expand(variables())
		require.ErrorContains(t, problems, want, text)
		require.NotContains(t, problems.Error(), "Sekrit")
	}
}

func TestList(t *testing.T) {
	for _, c := range []struct {
		text string
		want [][]string
	}{
		{"", nil},
		{" ; ", nil},
		{"a;b -arg1 arg;c c1 c2 c3", [][]string{{"a"}, {"b", "-arg1", "arg"}, {"c", "c1", "c2", "c3"}}},
		{"   trim  ;  spaces  args  ", [][]string{{"trim"}, {"spaces", "args"}}},
		{"cmd args;ENV=V cmd2", [][]string{{"cmd", "args"}, {"ENV=V", "cmd2"}}},
		{`a "b c;d" 'e "f"' "g'h" i\ j \;k ""`, [][]string{{"a", "b c;d", `e "f"`, "g'h", "i j", ";k", ""}}},
		{`A="1 2" B='$X' c`, [][]string{{"A=1 2", "B=$X", "c"}}},
		{`"A=1" b`, [][]string{{"A=1", "b"}}},
		{`C:\tools\x.exe "C:\Program Files\y" \\z "\"q\\" a\\b`, [][]string{{`C:\tools\x.exe`, `C:\Program Files\y`, `\z`, `"q\`, `a\b`}}},
		{"x --opt=a=b 1A=2", [][]string{{"x", "--opt=a=b", "1A=2"}}},
	} {
		d := dialect.ParseList(c.text, nil)
		require.Empty(t, d.Problems, c.text)
		var got [][]string
		for _, s := range d.Servers {
			words := []string{}
			for _, name := range []string{"ENV", "A", "B"} {
				if value, ok := s.Env[name]; ok {
					words = append(words, name+"="+value.Reveal())
				}
			}
			got = append(got, append(words, s.Command...))
		}
		require.Equal(t, c.want, got, c.text)
	}
	require.Len(t, dialect.ParseList(`"A=1" b`, nil).Servers[0].Env, 0, "what is quoted is no assignment")
	for text, want := range map[string]string{
		`a "SEKRIT`: `--mcpservers: unclosed quote (")`, `a 'SEKRIT`: `--mcpservers: unclosed quote (')`,
		"a;K=SEKRIT": "--mcpservers: server 2 has no command",
	} {
		require.Equal(t, want, dialect.ParseList(text, nil).Problems.Error())
	}
}

func TestListNamesServersAfterWhatTheyRun(t *testing.T) {
	for text, want := range map[string]string{
		"/opt/bin/mcp-thing --x": "thing", `C:\b\GlobTool.exe`: "GlobTool", "npx -y @modelcontextprotocol/server-everything": "everything",
		"npx -y my-mcp@1.2": "my-mcp", "uvx mcp-server-git": "git", "docker run -i --rm mcp/fetch": "fetch", "python -m srv": "srv",
		"node dist/index.js": "index", "é": "server", "cmd /c npx": "npx",
	} {
		require.Equal(t, want, dialect.ParseList(text, nil).Servers[0].Name, text)
	}
	d := dialect.ParseList("ls;bin/ls;ls -x", func(name string) bool { return name == "ls" })
	require.Equal(t, "ls-2 ls-3 ls-4", d.Servers[0].Name+" "+d.Servers[1].Name+" "+d.Servers[2].Name)
}

func TestEnvFile(t *testing.T) {
	set, bad := dialect.ParseEnvFile("\ufeff# c\n\nA=1\r\nexport B = two words # c\nC='#$x' # c\nD=\"a\\n\\\"b\\\"\"\nE=\nF=a#b\nG=x=y")
	require.Zero(t, bad)
	got := map[string]string{}
	for name, value := range set {
		got[name] = value.Reveal()
	}
	require.Equal(t, map[string]string{"A": "1", "B": "two words", "C": "#$x", "D": "a\n\"b\"", "E": "", "F": "a#b", "G": "x=y"}, got)
	for text, line := range map[string]int{"A=1\nB": 2, "=1": 1, "A='x": 1, "A B=1": 1} {
		_, bad := dialect.ParseEnvFile(text)
		require.Equal(t, line, bad, text)
	}
}

func TestTransportIsInferred(t *testing.T) {
	for address, want := range map[string]string{
		"": dialect.Stdio, "http://h/mcp": dialect.StreamableHTTP, "http://h": dialect.StreamableHTTP, "http://h/sse": dialect.SSE,
		"http://h/sse/?k=v": dialect.SSE, "http://h/?u=/sse": dialect.StreamableHTTP, "http://h/assess": dialect.StreamableHTTP,
	} {
		require.Equal(t, want, dialect.Server{URL: address}.TransportKind(), address)
	}
}
