//go:build linux

package proc_test

// wordPlantings change programs that settings of git name in ways that only a
// shell reads.
var wordPlantings = func() map[string]planting {
	all := map[string]planting{}
	for value, file := range map[string]string{
		`"th"/fsm`: "th/fsm", `"th/f sm"`: "th/f sm", `th/f\ sm`: "th/f sm", `th/a\#b`: "th/a#b", `cd th && sh fsm`: "th/fsm", `cd -- th && ./fsm`: "th/fsm", `cd th; cd sub; ./fsm`: "th/sub/fsm",
		`bash -c "pushd th; ./fsm"`: "th/fsm", `env --chdir=th ./fsm`: "th/fsm", `sh fsm`: "fsm", `sh ./th/fsm`: "th/fsm", `PATH=th:$PATH fsm`: "th/fsm", `PATH=$PWD/th:$PATH fsm`: "th/fsm", `d=th; $d/fsm`: "th/fsm",
		`$(dirname $(git rev-parse --git-dir))/th/fsm`: "th/fsm",
	} {
		all["the program "+value] = planting{`mkdir -p th/sub; printf '#!/bin/sh\n' > '` + file + `'; chmod +x '` + file + `'; git config core.fsmonitor '` + value + `'`,
			`printf 'EVIL' > '` + file + `'`, "git status"}
	}
	for value, file := range map[string]string{
		`/usr/bin/python3 ./th`: "th/__main__.py", `/usr/bin/python3 th`: "th/__main__.py", `PYTHONPATH=th /usr/bin/python3 -m x`: "th/x.py", `env PYTHONPATH=th /usr/bin/python3 -m x`: "th/x.py",
	} {
		all["the program "+value] = planting{`mkdir -p th; echo x=1 > ` + file + `; git config core.fsmonitor '` + value + `'`,
			`printf 'EVIL' > x.sh; chmod +x x.sh; echo "import os; os.system('./x.sh')" > ` + file, "git status"}
	}
	return all
}()
