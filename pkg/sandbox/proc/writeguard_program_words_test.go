//go:build linux

package proc_test

// wordPlantings change programs that settings of git name in ways that only a
// shell reads.
var wordPlantings = func() map[string]planting {
	all := map[string]planting{}
	for value, file := range map[string]string{
		`"th"/fsm`: "th/fsm", `"th/f sm"`: "th/f sm", `th/f\ sm`: "th/f sm", `th/a\#b`: "th/a#b", `cd th && sh fsm`: "th/fsm", `cd -- th && ./fsm`: "th/fsm", `cd th; cd sub; ./fsm`: "th/sub/fsm",
		`bash -c "pushd th; ./fsm"`: "th/fsm", `env --chdir=th ./fsm`: "th/fsm", `sh fsm`: "fsm", `sh ./th/fsm`: "th/fsm", `PATH=th:$PATH fsm`: "th/fsm", `PATH=$PWD/th:$PATH fsm`: "th/fsm", `d=th; $d/fsm`: "th/fsm",
		`$(dirname $(git rev-parse --git-dir))/th/fsm`: "th/fsm", `git version >/dev/null; sh -s <fsm`: "fsm", `export T=th; $T/fsm`: "th/fsm", `export PATH="$PWD/th:$PATH"; fsm`: "th/fsm", `sh ${T:-th/fsm}`: "th/fsm",
		"sh <<E\nsh fsm\nE": "fsm", `bash -c "a=(sh fsm); \"\${a[@]}\""`: "fsm", `BASH_ENV=fsm bash -c true`: "fsm", `bash -c "sh th/{fsm,}"`: "th/fsm",
	} {
		all["the program "+value] = planting{`mkdir -p th/sub; printf '#!/bin/sh\n' > '` + file + `'; chmod +x '` + file + `'; git config core.fsmonitor '` + value + `'`,
			`printf 'EVIL' > '` + file + `'`, "git status"}
	}
	all["a script without its extension"] = planting{`mkdir th; echo 1 > th/fsm.js; git config alias.x '!node th/fsm'`, `echo 'require("fs").writeFileSync("../ran", "")' > th/fsm.js`, "git x; :"}
	all["a missing program in a variable"] = planting{`git config alias.x '!d=t; $d/fsm'`, `mkdir t; printf 'EVIL' > t/fsm; chmod +x t/fsm`, "git x; :"}
	all["a missing program in PATH"] = planting{`git config alias.x '!PATH=t:$PATH fsm'`, `mkdir t; printf 'EVIL' > t/fsm; chmod +x t/fsm`, "git x; :"}
	all["a remote helper's script"] = planting{`echo > run; git config remote.e.url 'ext::sh run'`, `printf 'EVIL' > run`, "git -c protocol.ext.allow=always fetch e; :"}
	for value, file := range map[string]string{
		`/usr/bin/python3 ./th`: "th/__main__.py", `/usr/bin/python3 th`: "th/__main__.py", `PYTHONPATH=th /usr/bin/python3 -m x`: "th/x.py", `env PYTHONPATH=th /usr/bin/python3 -m x`: "th/x.py",
	} {
		all["the program "+value] = planting{`mkdir -p th; echo x=1 > ` + file + `; git config core.fsmonitor '` + value + `'`,
			`printf 'EVIL' > x.sh; chmod +x x.sh; echo "import os; os.system('./x.sh')" > ` + file, "git status"}
	}
	return all
}()
