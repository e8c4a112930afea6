//go:build linux

package proc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// reuse is a script that makes the user's next git commit write the file evil
// over the file $1, whose content is that of $2, by git rerere. $3 is the
// repository, $4 the number of the variant.
const reuse = `i=$(printf %040d 1); mkdir -p $3/rr-cache/$i; cp "$2" $3/rr-cache/$i/preimage; cp evil $3/rr-cache/$i/postimage; printf "$i$4\t$1\0" > $3/MERGE_RR; `

const lookAtReuse = "git commit --allow-empty -qm u; git commit --allow-empty -qm u; git status; "

// reusePlantings are plantings by git rerere.
var reusePlantings = map[string]planting{
	"a reused resolution out of the root": {"echo old > ../victim", "echo old > u; echo evil > evil; set -- ../victim u .git .-1; " + reuse,
		lookAtReuse + "grep -q evil ../victim && touch ../ran; :"},
	"a reused resolution of the first variant": {`printf '<<<<<<< a\nold\n=======\nx\n>>>>>>> b\n' > ../victim`,
		`echo evil > evil; { printf '<<<<<<<\nold\n=======\nx\n>>>>>>>\n'; } > u; set -- ../victim u .git; ` + reuse,
		lookAtReuse + "grep -q evil ../victim && touch ../ran; :"},
	"a reused resolution in a hook": {`printf '#!/bin/sh\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit`,
		"printf 'EVIL' > evil; set -- .git/hooks/pre-commit .git/hooks/pre-commit .git .-1; " + reuse, lookAtReuse},
	"a reused resolution in settings": {"", `printf 'EVIL' > x.sh; chmod +x x.sh; cp .git/config evil; git config -f evil core.fsmonitor "$PWD/x.sh"; set -- .git/config .git/config .git .-1; ` + reuse, lookAtReuse},
	"a reused resolution in project settings": {`mkdir p p/.vscode; echo old > p/.vscode/tasks.json`, `echo evil > evil; set -- p/.vscode/tasks.json p/.vscode/tasks.json .git .-1; ` + reuse,
		lookAtReuse + "grep -q evil p/.vscode/tasks.json && touch ../ran; :"},
	"a reused resolution in a named program": {`mkdir t; printf '#!/bin/sh\n' > t/monitor; chmod +x t/monitor; git config core.fsmonitor t/monitor`,
		"printf 'EVIL' > evil; set -- t/monitor t/monitor .git .-1; " + reuse, lookAtReuse},
	"a reused resolution behind a link": {"echo old > ../victim", "echo old > u; echo evil > evil; ln -s ../victim l; set -- l u .git .-1; " + reuse,
		lookAtReuse + "grep -q evil ../victim && touch ../ran; :"},
	"a reused resolution in a bare repository": {"git init -q --bare b; printf '#!/bin/sh\n' > b/hooks/post-receive; chmod +x b/hooks/post-receive",
		"printf 'EVIL' > evil; set -- b/hooks/post-receive b/hooks/post-receive .git .-1; " + reuse, lookAtReuse + "git push -q b HEAD:x; :"},
	"a reused resolution of a worktree": {"git worktree add -q w; echo old > ../victim", "echo old > u; echo evil > evil; set -- ../../victim u .git .-1; " + reuse + "mv .git/MERGE_RR .git/worktrees/w",
		"(cd w; " + lookAtReuse + "); grep -q evil ../victim && touch ../ran; :"},
}

// TestReuseOfResolutions: git rerere keeps working across commands, and nothing
// is reverted.
func TestReuseOfResolutions(t *testing.T) {
	t.Parallel()
	for _, level := range levels(t) {
		p := newProject(t)
		p.user("git config rerere.enabled true; mkdir d; echo a > d/b; git add d; git commit -qm d; git checkout -q -b f; echo f > d/b; git commit -qam f; git checkout -q main; echo m > d/b; git commit -qam m")
		r := p.runner(level)
		for _, script := range []string{"! git merge -q f && test -s .git/MERGE_RR", "git status; git rerere status | grep -q d/b", "echo fm > d/b; git add d; git commit -qm merged",
			"git reset -q --hard HEAD^; ! git merge -q f; grep -qx fm d/b"} {
			result, out := run(t, r, p.command(script))
			require.Zero(t, result.ExitCode, "%s: %s: %s", level, script, out)
			require.Empty(t, result.Reverted, "%s: %s: %s", level, script, out)
		}
		p.user("git rerere; grep -qx fm d/b")
		if level == proc.Off {
			continue
		}
		p.user("git reset -q --hard; rm -r .git/rr-cache/*; git merge -q f; test -s .git/MERGE_RR")
		result, _ := run(t, r, p.command("rm d/b; ln -s ../../victim d/b"))
		require.Contains(t, result.Reverted, p.root+"/.git/MERGE_RR", level)
	}
}
