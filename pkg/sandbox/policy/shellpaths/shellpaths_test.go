package shellpaths_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/policy/shellpaths"
)

func TestPathsOfCommands(t *testing.T) {
	for command, want := range map[string]string{
		`"th"/fsm`:                          "th/fsm",
		`"th/f sm" -x`:                      "th/f sm",
		`th/f\ sm`:                          "th/f sm",
		`th/a\#b`:                           "th/a#b",
		`cd th && sh fsm`:                   "th/fsm",
		`cd -- th && ./fsm`:                 "th/fsm",
		`cd th; cd sub; ./fsm`:              "th/sub/fsm",
		`bash -c "pushd th; ./fsm"`:         "th/fsm",
		`env --chdir=th ./fsm`:              "th/fsm",
		`sh fsm`:                            "fsm",
		`python3 ./th`:                      "th",
		`node ./th`:                         "th",
		`PYTHONPATH=th python3 -m x`:        "th/x.py",
		`env PYTHONPATH=th python3 -m x`:    "th/x.py",
		`PATH=th:$PATH fsm`:                 "th/fsm",
		`PATH=$PWD/th:$PATH fsm`:            "th/fsm",
		`d=th; $d/fsm`:                      "th/fsm",
		`$(dirname $(git rev-parse x))/t/f`: "t/f",
		`sh "$(git rev-parse x)"/th/fsm`:    "th/fsm",
		`f() { th/fsm; }; f`:                "th/fsm",
		`~/bin/x`:                           "~/bin/x",
		`test -x th/fsm && { th/fsm; }`:     "th/fsm",
	} {
		p := shellpaths.Of(command)
		require.Contains(t, append(p.Scripts, p.Words...), want, command)
	}
	for _, command := range []string{`git add notes`, `make`, `x$y/z`, `'`, `echo "$1"`} {
		p := shellpaths.Of(command)
		require.Empty(t, append(p.Scripts, p.Words...), command)
	}
}

func FuzzPaths(f *testing.F) {
	f.Add(`cd "$d" && PATH=a:b sh -c 'x ${y}'`)
	f.Fuzz(func(t *testing.T, command string) { shellpaths.Of(command) })
}
