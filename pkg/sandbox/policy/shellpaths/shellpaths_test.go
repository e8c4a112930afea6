package shellpaths_test

import (
	"slices"
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
		`sh<fsm`:                            "fsm",
		`git status; sh -s < fsm`:           "fsm",
		"sh <<E\nsh fsm\nE":                 "fsm",
		`bash -c 'sh <<< "sh fsm"'`:         "fsm",
		`export T=th; $T/fsm`:               "th/fsm",
		`f() { local d=th; sh "$d/fsm"; }`:  "th/fsm",
		`export PATH="$PWD/th:$PATH"; fsm`:  "th/fsm",
		`sh ${T:-th/fsm}`:                   "th/fsm",
		`"${T:=th}/fsm"`:                    "th/fsm",
		`sh ${T:+th/fsm}`:                   "th/fsm",
		`a=(sh fsm); "${a[@]}"`:             "fsm",
		`sh $'th/f\x73m'`:                   "th/fsm",
		`sh th/{fsm,}`:                      "th/fsm",
		`for t in fsm x; do sh th/$t; done`: "th/fsm",
		`BASH_ENV=fsm bash -c true`:         "fsm",
		`bash --rcfile fsm -i`:              "fsm",
		`timeout 5 nice -n 3 th/fsm`:        "th/fsm",
	} {
		require.Contains(t, all(shellpaths.Of(command)), want, command)
	}
	for _, command := range []string{`git add notes`, `make`, `x$y/z`, `'`, `echo "$1"`} {
		require.Empty(t, all(shellpaths.Of(command)), command)
	}
}

func all(p shellpaths.Paths) []string { return slices.Concat(p.Scripts, p.Programs, p.Words) }

func TestPathsOfScripts(t *testing.T) {
	for script, want := range map[string]string{
		`[ -s ./env/rc ] && \. ./env/rc`:                   "env/rc",
		"source \\\n  env/rc":                              "env/rc",
		`builtin source env/rc; :`:                         "env/rc",
		`command . env/rc`:                                 "env/rc",
		`source -- env/rc`:                                 "env/rc",
		`while source env/rc; do break; done`:              "env/rc",
		`if false; then :; elif source env/rc; then :; fi`: "env/rc",
		`case a in a) source env/rc;; esac`:                "env/rc",
		`eval "source env/rc"`:                             "env/rc",
		`cd env; source ./rc`:                              "env/rc",
		`unstrict_env source env/rc`:                       "env/rc",
		`A=1 source env/rc`:                                "env/rc",
		`D=env; source "$D/rc"`:                            "env/rc",
		`source_env env`:                                   "env",
		`eval "$(./env/rc)"`:                               "env/rc",
		`export A=$(bash env/rc)`:                          "env/rc",
		`direnv_load ./env/rc x`:                           "env/rc",
		"PATH_add env\nrc":                                 "env/rc",
		`export BASH_ENV=$PWD/env/rc`:                      "env/rc",
		`source /dev/stdin < env/rc`:                       "env/rc",
		`for f in env/rc env/x; do source $f; done`:        "env/rc",
		"for i in 1; do\n# source env/x\n  [ -f a ] && source env/rc\ndone": "env/rc",
	} {
		require.Contains(t, all(shellpaths.OfScript(script)), want, script)
	}
	for _, script := range []string{"watch_file go.mod .env\ndotenv .env", `export GOFLAGS=-mod=mod X=go.mod/x`, `layout python3 python3.11`, `log_status "use node package.json"`, `PATH_add bin`, `files=(a/b c/d)`} {
		require.Empty(t, all(shellpaths.OfScript(script)), script)
	}
}

func FuzzPaths(f *testing.F) {
	f.Add(`cd "$d" && PATH=a:b sh -c 'x ${y}'`)
	f.Fuzz(func(t *testing.T, command string) {
		shellpaths.Of(command)
		shellpaths.OfScript(command)
	})
}
