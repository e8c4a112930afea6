package projectfile_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/projectfile"
)

func TestRuns(t *testing.T) {
	for _, c := range []struct {
		name, content string
		runs          []string
		rest          string
	}{
		{".npmrc", "registry=https://r\n//r/:_authToken=${T}\n; git=x\nsave-exact = true\n", nil, ""},
		{".npmrc", "a=b\n init-module = ./x.js\nc=d\n", []string{"init-module = ./x.js"}, "a=b\nc=d\n"},
		{".npmrc", "a=b\r\"git\"=./x\rc=d", []string{`"git"=./x`}, "a=b\nc=d"},
		{".npmrc", "script-shell[]=./x\nEditor=./x\nini${A?}t-module=./x", []string{"script-shell[]=./x", "Editor=./x", "ini${A?}t-module=./x"}, ""},
		{"rust-toolchain.toml", "[toolchain]\nchannel = \"1.80\"\ncomponents = [\"rustfmt\"]\n# path\n", nil, ""},
		{"rust-toolchain.toml", "[toolchain]\npath = \"/x\"\n", []string{`path = "/x"`}, "[toolchain]\n"},
		{"Rust-Toolchain", "toolchain = { path = \"/x\" }", []string{`toolchain = { path = "/x" }`}, ""},
		{"rust-toolchain.toml", "[toolchain]\n\"p\\u0061th\" = \"/x\"", []string{`"p\u0061th" = "/x"`}, "[toolchain]\n"},
		{".tool-versions", "nodejs 20.1.0\npython 3.12 system\n", nil, ""},
		{".tool-versions", "nodejs 20 path:./x\nruby {{exec(command='x')}}", []string{"nodejs 20 path:./x", "ruby {{exec(command='x')}}"}, ""},
		{"other", "git=x", nil, ""},
	} {
		require.Equal(t, c.runs, projectfile.Runs(c.name, []byte(c.content)), c.content)
		require.Equal(t, c.name != "other", projectfile.IsJudged(c.name))
		if c.runs != nil {
			require.Equal(t, c.rest, string(projectfile.WithoutLines([]byte(c.content), c.runs)), c.content)
		}
	}
}
