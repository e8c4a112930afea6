package projectfile_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/projectfile"
)

// TestNpmReadsTheKey: npm's parser takes more forms of a key for script-shell than
// the plain one.
func TestNpmReadsTheKey(t *testing.T) {
	for _, line := range []string{
		"\ufeffscript-shell=./x", "script-shell\ufeff=./x", "\u00a0script-shell\u2028=./x", "\ufeff \ufeffscript-shell = ./x",
		"script-shell;x=./x", "script-shell#x=./x", "script-shell ; x=./x", "script-shell[];x=./x",
		`"script-shell"=./x`, `'"script-shell"'=./x`, `'  "script-shell"  '=./x`, `'["script-shell"]'=./x`, `'[["script-shell"]]'=./x`, `"script-shell" ;x=./x`,
		`"\u0073cript-shell"=./x`, `script\-shell=./x`, "SCRIPT-SHELL=./x", "onload-script=./x", "call=./x", "package[]=./x", "make=./x",
		"node-options=--require=./x", "node-options=-r ./x", "node-options[]=--import ./x",
		"node-options=--max-old-space-size=4096 --loader ./x", `node-options="--require ./x"`, "node-options=--openssl-config=x", "node-options=${X}", "node-options",
	} {
		require.Equal(t, []string{strings.TrimSpace(line)}, projectfile.LinesThatRun(".npmrc", []byte("a=1\n"+line+"\nb=2\n")), line)
		require.Equal(t, "a=1\nb=2\n", string(projectfile.WithoutLines([]byte("a=1\n"+line+"\nb=2\n"), []string{strings.TrimSpace(line)})), line)
	}
	for _, line := range []string{"; script-shell=x", " # script-shell=x", "x;script-shell=./x", "script-shellx=1", "node-options=--max-old-space-size=4096",
		`node-options="--max_old_space_size=4096 --no-warnings --experimental-vm-modules"`, "node-options=", "node-options;=--max-old-space-size=1", "@git:registry=https://x", "//git/:_authToken=${T}", "package-lock=false"} {
		require.Empty(t, projectfile.LinesThatRun(".npmrc", []byte(line)), line)
	}
}

func TestRuns(t *testing.T) {
	for _, c := range []struct {
		name, content string
		runs          []string
		rest          string
	}{
		{".npmrc", "registry=https://r\n//r/:_authToken=${T}\n; git=x\nsave-exact = true\n", nil, ""},
		{".npmrc", "a=b\n init-module = ./x.js\nc=d\n", []string{"init-module = ./x.js"}, "a=b\nc=d\n"},
		{".npmrc", "a=b\r\"git\"=./x\rc=d", []string{`"git"=./x`}, "a=b\rc=d"},
		{".npmrc", "a=b\r\ngit=./x\r\n\r\nc=d\r\n", []string{"git=./x"}, "a=b\r\n\r\nc=d\r\n"},
		{".npmrc", "script-shell[]=./x\nEditor=./x\nini${A?}t-module=./x", []string{"script-shell[]=./x", "Editor=./x", "ini${A?}t-module=./x"}, ""},
		{"rust-toolchain.toml", "[toolchain]\nchannel = \"1.80\"\ncomponents = [\"rustfmt\"]\n# path\n", nil, ""},
		{"rust-toolchain.toml", "[toolchain]\npath = \"/x\"\n", []string{`path = "/x"`}, "[toolchain]\n"},
		{"Rust-Toolchain", "toolchain = { path = \"/x\" }", []string{`toolchain = { path = "/x" }`}, ""},
		{"rust-toolchain.toml", "[toolchain]\n\"p\\u0061th\" = \"/x\"", []string{`"p\u0061th" = "/x"`}, "[toolchain]\n"},
		{".tool-versions", "nodejs 20.1.0\npython 3.12 system\n", nil, ""},
		{".tool-versions", "nodejs 20 path:./x\nruby {{exec(command='x')}}", []string{"nodejs 20 path:./x", "ruby {{exec(command='x')}}"}, ""},
		{".merlin", "S src\nB _build/**\nPKG lwt\nFLG -w +a-4 -open X\n# FLG -ppx ./x\n", nil, ""},
		{".merlin", "S src\nFLG -w +a -ppx './x --as-ppx'\n", []string{"FLG -w +a -ppx './x --as-ppx'"}, "S src\n"},
		{".merlin", "FLG -pp ./x\nREADER [\"./x\"]\nFINDLIB ./f\nFINDLIB_PATH ./f\n", []string{"FLG -pp ./x", "READER [\"./x\"]", "FINDLIB ./f", "FINDLIB_PATH ./f"}, ""},
		{"other", "git=x", nil, ""},
	} {
		require.Equal(t, c.runs, projectfile.LinesThatRun(c.name, []byte(c.content)), c.content)
		require.Equal(t, c.name != "other", projectfile.IsJudgedByContent(c.name))
		if c.runs != nil {
			require.Equal(t, c.rest, string(projectfile.WithoutLines([]byte(c.content), c.runs)), c.content)
		}
	}
}
