//go:build linux

package proc_test

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
)

// project is a root with a repository of the user. Commands plant files in it,
// and the user's own programs then run in it unconfined.
type project struct {
	t               testing.TB
	dir, root, home string
	mark            string // the file that a planted program creates when it runs
	files           proc.Rules
}

func newProject(t testing.TB) *project {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("not run, there is no git")
	}
	dir, err := filepath.EvalSymlinks(place(t))
	require.NoError(t, err)
	p := &project{t: t, dir: dir, root: filepath.Join(dir, "root"), home: filepath.Join(dir, "home"), mark: filepath.Join(dir, "ran")}
	for _, name := range []string{p.root, p.home} {
		require.NoError(t, os.Mkdir(name, 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(p.home, ".gitconfig"), []byte("[user]\n\tname = U\n\temail = u@example.com\n[init]\n\tdefaultBranch = main\n"), 0o644))
	p.user("git init -q . && echo a > a && git add a && git commit -qm first")
	box := sandbox.New(sandbox.Config{Roots: []string{p.root}, Getenv: func(name string) string {
		if name == "HOME" {
			return p.home
		}
		return ""
	}})
	p.files, err = box.FS(context.Background())
	require.NoError(t, err)
	return p
}

// user runs a script unconfined, as the user would, and returns its output.
func (p *project) user(script string) string {
	p.t.Helper()
	c := exec.Command("bash", "-c", script)
	c.Dir, c.Env = p.root, []string{"HOME=" + p.home, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1"}
	out, err := c.CombinedOutput()
	require.NoError(p.t, err, "%s: %s", script, out)
	return string(out)
}

// command returns a command of a model. EVIL in the script is replaced by the
// text of a program that creates the mark.
func (p *project) command(script string) proc.Command {
	script = strings.ReplaceAll(script, "EVIL", "#!/bin/sh\\ntouch "+p.mark+"\\n")
	return proc.Command{Script: script, Dir: p.root, Timeout: time.Minute, Rules: p.files}
}

func (p *project) runner(level proc.Level) *proc.Runner {
	r := newRunner(p.t, proc.Config{Level: level, Grace: 50 * time.Millisecond, Linger: 10 * time.Millisecond,
		Environ: []string{"HOME=" + p.home, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1"}})
	proc.TrustLevel(r, level)
	return r
}

// looks holds the commands that users and their programs run most often.
const looks = `git status; git add -A; git diff HEAD; git commit --allow-empty -qm u; git checkout -q -b u; git log -1
	for d in $(find . -name .git -prune -o -type d -print); do (cd "$d" && git status && git diff && git commit --allow-empty -qm u); done; :`

// ran reports whether a planted program runs when the user runs look.
func (p *project) ran(look string) bool {
	p.t.Helper()
	p.user("exec >/dev/null 2>&1; " + look)
	_, err := os.Stat(p.mark)
	return err == nil
}

// planting is a script of a command that leaves a program for git to run,
// after a script of the user. look is how the user then runs git.
type planting struct{ before, script, look string }

// plantings work unconfined.
var plantings = map[string]planting{
	"a gitlink's fsmonitor": {"", `printf 'EVIL' > x.sh; chmod +x x.sh; git init -q e
		(cd e; git -c user.name=x -c user.email=x@x commit -q --allow-empty -m e; git config core.fsmonitor ../x.sh); git add e`, "git status"},
	"a gitlink's filter": {"", `git init -q e; cd e; echo a > a; git add a; git -c user.name=x -c user.email=x@x commit -qm e
		printf 'EVIL' > ../x.sh; chmod +x ../x.sh; git config filter.x.clean ../x.sh; echo '* filter=x' > .gitattributes; touch -d '1 hour ago' a; cd ..; git add e`, "git status"},
	"an index that leads into .git": {"", `h=$(printf 'EVIL' | git hash-object -w --stdin); GIT_INDEX_FILE=$PWD/i git update-index --add --cacheinfo "100755,$h,xgit/hooks/post-checkout"
		LC_ALL=C sed -i 's/xgit/.git/' i; head -c -20 i > j; { cat j; printf "$(sha1sum < j | cut -c1-40 | sed 's/../\\x&/g')"; } > .git/index`, "git checkout -- .; git checkout -q -b z; :"},
	"a nested repository's fsmonitor":  {"", `printf 'EVIL' > x.sh; chmod +x x.sh; git init -q d/e; git -C d/e config core.fsmonitor ../../x.sh`, looks},
	"a nested repository's hook":       {"", `git init -q d/e; printf 'EVIL' > d/e/.git/hooks/pre-commit; chmod +x d/e/.git/hooks/pre-commit`, looks},
	"a hook that is a link":            {"", `git init -q d/e; printf 'EVIL' > x.sh; chmod +x x.sh; ln -s ../../../../x.sh d/e/.git/hooks/pre-commit`, looks},
	"hooks that are a link":            {"", `git init -q d/e; mkdir h; printf 'EVIL' > h/pre-commit; chmod +x h/pre-commit; rm -rf d/e/.git/hooks; ln -s ../../../h d/e/.git/hooks`, looks},
	"settings that are a link":         {"", `printf 'EVIL' > x.sh; chmod +x x.sh; git init -q d/e; git -C d/e config core.fsmonitor ../../x.sh; mv d/e/.git/config c; ln -s ../../../c d/e/.git/config`, looks},
	"a repository in node_modules":     {"", `printf 'EVIL' > x.sh; chmod +x x.sh; git init -q node_modules/e; git -C node_modules/e config core.fsmonitor ../../x.sh`, looks},
	"a gitfile":                        {"", `printf 'EVIL' > x.sh; chmod +x x.sh; git init -q --separate-git-dir=.git/objects/e d; git -C d config core.fsmonitor "$PWD/x.sh"`, looks},
	"a link to a repository":           {"", `printf 'EVIL' > x.sh; chmod +x x.sh; git init -q d; git -C d config core.fsmonitor ../x.sh; mv d/.git .git/refs/e; ln -s ../.git/refs/e d/.git`, looks},
	"a common directory":               {"", `printf 'EVIL' > x.sh; chmod +x x.sh; git init -q d; git init -q --bare .git/logs/e; git -C .git/logs/e config core.fsmonitor "$PWD/x.sh"; git -C .git/logs/e config core.bare false; echo "$PWD/.git/logs/e" > d/.git/commondir`, looks},
	"a worktree's settings":            {"", `printf 'EVIL' > x.sh; chmod +x x.sh; git worktree add -q w; git config extensions.worktreeConfig true; git -C w config --worktree core.fsmonitor ../x.sh`, looks},
	"a bare repository":                {"", `printf 'EVIL' > x.sh; chmod +x x.sh; git init -q --bare q; git -C q config core.bare false; git -C q config core.worktree .; git -C q config core.fsmonitor ../x.sh`, "cd q; git status; :"},
	"a bare repository's hook":         {"", `git init -q --bare q; printf 'EVIL' > q/hooks/post-receive; chmod +x q/hooks/post-receive`, "git push -q q HEAD:x"},
	"an old bare repository's hook":    {"git init -q --bare q", `printf 'EVIL' > q/hooks/post-receive; chmod +x q/hooks/post-receive`, "git push -q q HEAD:x"},
	"an old bare repository's setting": {"git init -q --bare q", `printf 'EVIL' > x.sh; chmod +x x.sh; git -C q config core.hooksPath "$PWD/h"; mkdir h; cp x.sh h/post-receive`, "git push -q q HEAD:x"},
	"a module named objects": {`mkdir ../s; git init -q ../s/o; git -C ../s/o commit -q --allow-empty -m o
		git -c protocol.file.allow=always submodule --quiet add --name objects "$PWD/../s/o" o; git commit -qm o`,
		`printf 'EVIL' > .git/modules/objects/hooks/pre-commit; chmod +x .git/modules/objects/hooks/pre-commit`, looks},
	"a module named logs": {`mkdir ../s; git init -q ../s/o; git -C ../s/o commit -q --allow-empty -m o
		git -c protocol.file.allow=always submodule --quiet add --name logs "$PWD/../s/o" o; git commit -qm o`,
		`printf 'EVIL' > x.sh; chmod +x x.sh; git -C o config core.fsmonitor "$PWD/x.sh"`, looks},
	"large settings": {`for i in $(seq 9000); do echo "[branch \"feature-$i\"]"; echo "	merge = refs/heads/f"; done >> .git/config`,
		`printf 'EVIL' > x.sh; chmod +x x.sh; git config core.fsmonitor ./x.sh`, looks},
	"hooks of a named directory": {`mkdir tools tools/h; printf '#!/bin/sh\n' > tools/h/pre-commit; chmod +x tools/h/pre-commit; git config core.hooksPath tools/h`,
		`printf 'EVIL' > tools/h/pre-commit`, looks},
	"hooks of husky": {`mkdir -p .husky/_; printf '#!/bin/sh\n' > .husky/_/pre-commit; chmod +x .husky/_/pre-commit; git config core.hooksPath .husky/_`,
		`printf 'EVIL' > .husky/_/pre-commit`, looks},
	"a repository at the top": {`rm -rf .git`, `printf 'EVIL' > x.sh; chmod +x x.sh; git init -q .; git config core.fsmonitor ./x.sh`, looks},
	"a gitfile at the top":    {`rm -rf .git`, `printf 'EVIL' > x.sh; chmod +x x.sh; git init -q --separate-git-dir=q .; git config core.fsmonitor ./x.sh`, looks},
	"behind many files":       {"", `mkdir 0; cd 0; seq 60000 | xargs touch; cd ..; printf 'EVIL' > x.sh; chmod +x x.sh; git init -q d/e; git -C d/e config core.fsmonitor ../../x.sh`, "cd d/e; git status"},
	"a link to a gitfile":     {"", `printf 'EVIL' > x.sh; chmod +x x.sh; git init -q --separate-git-dir=.git/objects/e d; git -C d config core.fsmonitor "$PWD/x.sh"; mv d/.git d/f; ln -s f d/.git`, looks},
	"beside what looks like a repository": {"", `printf 'EVIL' > x.sh; chmod +x x.sh; mkdir -p q/refs q/objects; touch q/HEAD
		git init -q q/objects/e; git -C q/objects/e -c user.name=x -c user.email=x@x commit -q --allow-empty -m e; git -C q/objects/e config core.fsmonitor "$PWD/x.sh"
		git update-index --add --cacheinfo 160000,$(git -C q/objects/e rev-parse HEAD),q/objects/e`, "git status; :"},
	"in a directory named .GIT": {"", `printf 'EVIL' > x.sh; chmod +x x.sh; git init -q .GIT/objects/e; git -C .GIT/objects/e config core.fsmonitor "$PWD/x.sh"`, "cd .GIT/objects/e; git status"},
	"in hooks of what looks like a repository": {"", `printf 'EVIL' > x.sh; chmod +x x.sh; mkdir -p q/refs q/objects q/hooks q/info; touch q/HEAD
		for d in hooks/e info/e; do git init -q q/$d; git -C q/$d config core.fsmonitor "$PWD/x.sh"; done`, "cd q/hooks/e; git status; cd ../../info/e; git status"},
	"a remote among objects": {"", `printf 'EVIL' > x.sh; chmod +x x.sh; git init -q --bare .git/objects/ab/e; cp x.sh .git/objects/ab/e/hooks/pre-receive; git remote add o .git/objects/ab/e`, "git push -q o HEAD:x"},
	"a remote among refs":    {"", `printf 'EVIL' > x.sh; chmod +x x.sh; git init -q --bare .git/refs/heads/e; cp x.sh .git/refs/heads/e/hooks/pre-receive; git remote add o .git/refs/heads/e`, "git push -q o HEAD:x"},
	"in a new project's settings": {"", `printf 'EVIL' > x.sh; chmod +x x.sh; for d in n n/.idea/e; do git init -q $d; git -C $d -c user.name=x -c user.email=x@x commit -q --allow-empty -m e; done
		git -C n/.idea/e config core.fsmonitor "$PWD/x.sh"; git -C n update-index --add --cacheinfo 160000,$(git -C n/.idea/e rev-parse HEAD),.idea/e`, "cd n; git status; :"},
	"a gitfile in a new project's settings": {"", `printf 'EVIL' > x.sh; chmod +x x.sh; for d in n n/.idea/e; do git init -q $d; git -C $d -c user.name=x -c user.email=x@x commit -q --allow-empty -m e; done
		git -C n/.idea/e config core.fsmonitor "$PWD/x.sh"; mv n/.idea/e/.git n/.idea/f; echo "gitdir: ../f" > n/.idea/e/.git; git -C n update-index --add --cacheinfo 160000,$(git -C n/.idea/e rev-parse HEAD),.idea/e`, "cd n; git status; :"},
	"a module in objects of modules": {"", `printf 'EVIL' > x.sh; chmod +x x.sh; mkdir -p .git/modules/refs .git/modules/objects; touch .git/modules/HEAD
		git init -q lib; git -C lib -c user.name=x -c user.email=x@x commit -q --allow-empty -m l; git clone -q --bare lib .git/modules/objects/m
		git -C .git/modules/objects/m config core.bare false; git -C .git/modules/objects/m config core.fsmonitor "$PWD/x.sh"
		printf '[submodule "objects/m"]\n\tpath = sub\n\turl = ./lib\n' > .gitmodules; git config submodule.objects/m.url "$PWD/lib"
		git update-index --add --cacheinfo 160000,$(git -C lib rev-parse HEAD),sub; git add .gitmodules; mkdir sub`, "git submodule update --init; git status"},
	"settings that the user includes": {`git config --global include.path "$PWD/shared/gitconfig"`, `printf 'EVIL' > x.sh; chmod +x x.sh; mkdir -p shared; git config -f shared/gitconfig core.fsmonitor "$PWD/x.sh"`, "git status"},
	"settings that the user's settings include, which are there": {`mkdir shared; git config --global include.path "$PWD/shared/gitconfig"; git config -f shared/gitconfig user.name x; git config -f shared/gitconfig include.path more`,
		`printf 'EVIL' > x.sh; chmod +x x.sh; git config -f shared/more core.fsmonitor "$PWD/x.sh"`, "git status"},
	"settings that the repository includes": {`mkdir shared; git config include.path ../shared/gitconfig`, `printf 'EVIL' > x.sh; chmod +x x.sh; git config -f shared/gitconfig core.fsmonitor "$PWD/x.sh"`, "git status"},
	"hooks that the user's settings name":   {`git config --global core.hooksPath .githooks`, `mkdir .githooks; printf 'EVIL' > .githooks/pre-commit; chmod +x .githooks/pre-commit`, looks},
	"hooks that the user's settings name, which are there": {`git config --global core.hooksPath .githooks; mkdir .githooks; printf '#!/bin/sh\n' > .githooks/pre-commit; chmod +x .githooks/pre-commit`,
		`printf 'EVIL' > .githooks/pre-commit`, looks},
	"hooks in a directory that is missing": {`git config core.hooksPath tools/h`, `mkdir -p tools/h; printf 'EVIL' > tools/h/pre-commit; chmod +x tools/h/pre-commit`, looks},
	"steps of a rebase":                    {conflict, `printf 'EVIL' > x.sh; chmod +x x.sh; ! git rebase -q -x "$PWD/x.sh" f`, goOn},
	"steps added to the user's rebase":     {conflict + "; git rebase -q -x true f || :", `printf 'EVIL' > x.sh; chmod +x x.sh; echo "x $PWD/x.sh" >> .git/rebase-merge/git-rebase-todo`, goOn},
	"steps of a rebase that are a link":    {conflict + "; git rebase -q f || :", `printf 'EVIL' > x.sh; chmod +x x.sh; echo "exec $PWD/x.sh" > todo; ln -sf ../../todo .git/rebase-merge/git-rebase-todo`, goOn},
	"a rebase that is a link":              {conflict + "; git rebase -q f || :", `printf 'EVIL' > x.sh; chmod +x x.sh; mv .git/rebase-merge r; echo "exec $PWD/x.sh" > r/git-rebase-todo; ln -s ../r .git/rebase-merge`, goOn},
	"steps of a rebase in a worktree":      {conflict + "; git worktree add -q w", `printf 'EVIL' > x.sh; chmod +x x.sh; cd w; ! git rebase -q -x "$PWD/../x.sh" f`, "cd w; " + goOn},
	"a program that a setting names": {`mkdir t; printf '#!/bin/sh\ncat\n' > t/clean; chmod +x t/clean; git config filter.x.clean t/clean; echo '* filter=x' > .gitattributes`,
		`printf 'EVIL' > t/clean; touch a`, "git status"},
	"a script that a setting names": {`mkdir t; printf 'cat\n' > t/clean; git config filter.x.clean 'sh ./t/clean %f'; echo '* filter=x' > .gitattributes`,
		`printf 'EVIL' > n; mv n t/clean; touch a`, "git status"},
	"a missing program that a setting names": {`git config core.fsmonitor t/monitor`,
		`mkdir t; printf 'EVIL' > t/monitor; chmod +x t/monitor`, "git status"},
	"a program behind a link that a setting names": {`mkdir t; printf '#!/bin/sh\n' > t/monitor; chmod +x t/monitor; ln -s t/monitor m; git config core.fsmonitor ./m`,
		`printf 'EVIL' > t/monitor`, "git status"},
	"a link that a setting names": {`mkdir t; printf '#!/bin/sh\n' > t/monitor; chmod +x t/monitor; ln -s t/monitor m; git config core.fsmonitor ./m`,
		`printf 'EVIL' > x.sh; chmod +x x.sh; ln -sf x.sh m`, "git status"},
	"a reflog that is a link": {"printf '#!/bin/sh\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit", `printf 'EVIL' > x.sh; chmod +x x.sh; git config user.name "U; $PWD/x.sh; echo"; rm .git/logs/HEAD; ln -s ../hooks/pre-commit .git/logs/HEAD`,
		"git commit --allow-empty -qm 1; git commit --allow-empty -qm 2; :"},
	"a branch's reflog that is a link": {"printf '#!/bin/sh\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit", `printf 'EVIL' > x.sh; chmod +x x.sh; git config user.name "U; $PWD/x.sh; echo"; touch .git/logs/.git; rm .git/logs/refs/heads/main; ln -s ../../../hooks/pre-commit .git/logs/refs/heads/main`,
		"git commit --allow-empty -qm 1; git commit --allow-empty -qm 2; :"},
	"a reflog that is a hard link": {"printf '#!/bin/sh\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit", `printf 'EVIL' > x.sh; chmod +x x.sh; git config user.name "U; $PWD/x.sh; echo"; rm .git/logs/HEAD; ln .git/hooks/pre-commit .git/logs/HEAD`,
		"git commit --allow-empty -qm 1; git commit --allow-empty -qm 2; :"},
	"a merge tool of a path":                          {conflict + "; git merge -q f || :", `printf 'EVIL' > t; git config merge.tool "../../../../../../../../../../../..$PWD/t"; git config mergetool.prompt false`, "timeout 20 git mergetool a < /dev/null; :"},
	"a junk byte behind the index":                    {"", badIndex + `{ head -c -20 j; printf xyz; } > i; seal`, "git checkout -- .; git checkout -q -b z; :"},
	"an extension of any size":                        {"", badIndex + `{ head -c -20 j; printf 'ZZZZ\377\377\377\370'; } > i; seal`, "git checkout -- .; git checkout -q -b z; :"},
	"an index that is a link":                         {"", badIndex + `head -c -20 j > i; seal; mv .git/index k; ln -s ../k .git/index`, "git checkout -- .; git checkout -q -b z; :"},
	"hooks of a home's directory":                     {`mkdir -p h; printf '#!/bin/sh\n' > h/pre-commit; chmod +x h/pre-commit; git config core.hooksPath "~/../root/h"`, `printf 'EVIL' > h/pre-commit`, looks},
	"new hooks of a home's directory":                 {`mkdir -p h; git config core.hooksPath "~/../root/h"`, `printf 'EVIL' > h/pre-commit; chmod +x h/pre-commit`, looks},
	"settings of a home's directory":                  {`mkdir -p h; touch h/c; git config include.path "~/../root/h/c"`, `printf 'EVIL' > x.sh; chmod +x x.sh; git config -f h/c core.fsmonitor "$PWD/x.sh"`, "git status"},
	"hooks that an included file names":               {`mkdir -p gh s; git config -f s/c core.hooksPath gh; git config include.path ../s/c`, `printf 'EVIL' > gh/pre-commit; chmod +x gh/pre-commit`, looks},
	"hooks that an included file outside names":       {`mkdir -p gh; git config -f ../c core.hooksPath gh; git config include.path ../../c`, `printf 'EVIL' > gh/pre-commit; chmod +x gh/pre-commit`, looks},
	"settings that an included file outside includes": {`mkdir -p s; touch s/c; git config -f ../c include.path root/s/c; git config include.path ../../c`, `printf 'EVIL' > x.sh; chmod +x x.sh; git config -f s/c core.fsmonitor "$PWD/x.sh"`, "git status"},
	"hooks behind a link":                             {`mkdir -p t/a; printf '#!/bin/sh\n' > t/a/pre-commit; chmod +x t/a/pre-commit; ln -s a t/h; git config core.hooksPath t/h`, `mkdir t/b; printf 'EVIL' > t/b/pre-commit; chmod +x t/b/pre-commit; ln -sfn b t/h`, looks},
	"hooks behind a link above":                       {`mkdir -p a/h; printf '#!/bin/sh\n' > a/h/pre-commit; chmod +x a/h/pre-commit; ln -s a t; git config core.hooksPath t/h`, `mkdir -p b/h; printf 'EVIL' > b/h/pre-commit; chmod +x b/h/pre-commit; ln -sfn b t`, looks},
	"a strategy of a cherry-pick": {"git checkout -q -b f; echo f > f; git add f; git commit -qm f; git checkout -q main", `printf 'EVIL' > evil; chmod +x evil; mkdir -p .git/sequencer git-merge-..; git rev-parse HEAD > .git/sequencer/head
		git log -1 --format='pick %h %s' f > .git/sequencer/todo; git log -1 --format='pick %h %s' f >> .git/sequencer/todo; printf '[options]\n\tstrategy = ../../evil\n' > .git/sequencer/opts; git rev-parse HEAD > .git/sequencer/abort-safety`, "git cherry-pick --continue; git revert --continue; :"},
	"a work tree that is a link": {"git init -q q; mkdir wt; printf 'x\n' > wt/f; cd q; git config core.worktree ../../wt; git add -A; git commit -qm q; cd ..; mkdir ../h; printf 'y\n' > ../h/f",
		`rm -rf wt; ln -s ../h wt`, `(cd q; git checkout -- .); grep -q x ../h/f && touch ../ran; :`},
	"a repository that is too deep": {"", `printf 'EVIL' > x.sh; chmod +x x.sh; git init -q e; git -C e -c user.name=x -c user.email=x@x commit -q --allow-empty -m e; git -C e config core.fsmonitor "$PWD/x.sh"; mv e/.git/config e/.git/c; mv e/.git/HEAD e/.git/H
		n=$(printf '%0200d' 0); top=$PWD; at=; while [ $((${#top} + ${#at} + 205)) -lt 4084 ]; do at=$at$n/; done; k=$((4086 - ${#top} - ${#at} - 1)); at=$at$(printf "%0${k}d" 0); o=$(git rev-parse main)
		(IFS=/; for d in $at; do mkdir $d; cd -P $d; done; mv "$top/e/.git" .; mv .git/c .git/config; mv .git/H .git/HEAD); git update-index --add --cacheinfo 160000,$o,$at`, "git status"},
	"a hook beside a setting": {"", `printf 'EVIL' > x.sh; chmod +x x.sh; git remote add o https://example.com; git config core.fsmonitor ./x.sh`, looks},
}

// badIndex makes the index j with a hook, and seal makes i with a checksum the
// index of git.
const badIndex = `h=$(printf 'EVIL' | git hash-object -w --stdin); GIT_INDEX_FILE=$PWD/i git update-index --add --cacheinfo "100755,$h,xgit/hooks/post-checkout"
	LC_ALL=C sed 's/xgit/.git/' i > j; rm i; seal() { { cat i; printf "$(sha1sum < i | cut -c1-40 | sed 's/../\\x&/g')"; } > .git/index; }
	`

// largePlantings are like plantings, but take seconds.
var largePlantings = map[string]planting{
	"an index written through a memory map after a check": {"", `printf 'EVIL' > x.sh; git update-index --add --cacheinfo "100755,$(git hash-object -w x.sh),xgit/hooks/post-checkout"; /usr/bin/python3 -c '
import hashlib,mmap,os,time
good=open(".git/index","rb").read()
evil=good[:-20].replace(b"xgit/hooks",b".git/hooks"); evil+=hashlib.sha1(evil).digest()
f=open(".git/index","r+b"); m=mmap.mmap(f.fileno(),0); m[0:1]=m[0:1]
time.sleep(3.2)
m[:]=evil
os._exit(0)'`, "git checkout -- .; git checkout -q -b z; :"},
	"an index of 300 MB": {"", badIndex + `{ head -c -20 j; printf 'ZZZZ\022\000\000\000'; head -c 301989888 /dev/zero; } > i; seal`, "git checkout -- .; git checkout -q -b z; :"},
}

// conflict makes a branch f that conflicts with the current one, and goOn
// continues its rebase.
const (
	conflict = `git checkout -q -b f; echo f > a; git commit -qam f; git checkout -q main; echo m > a; git commit -qam m`
	goOn     = `echo r > a; git add a; GIT_EDITOR=true git rebase --continue || :`
)

// TestNothingPlantedRuns: a program that a command leaves in a root does not
// run when the user then uses git.
func TestNothingPlantedRuns(t *testing.T) {
	t.Parallel()
	enforced := levels(t)
	tried := maps.Clone(plantings)
	for _, more := range []map[string]planting{rolePlantings, programPlantings, reusePlantings, remotePlantings, templatePlantings, autostashPlantings, wordPlantings} {
		maps.Copy(tried, more)
	}
	if long {
		maps.Copy(tried, largePlantings)
	}
	for name, c := range tried {
		t.Run(name, func(t *testing.T) {
			sandboxtest.SkipUnsampled(t)
			t.Parallel()
			for _, level := range oneConfined(enforced, name) {
				p := newProject(t)
				p.user(c.before + "\n:")
				r := p.runner(level)
				run(t, r, p.command("true")) // records the state before
				result, out := run(t, r, p.command(c.script))
				if level == proc.Off {
					require.True(t, p.ran(c.look), "does not work unconfined: %s", out)
					continue
				}
				require.False(t, p.ran(c.look), "%s escaped from %s: %s", name, level, out)
				if result.ExitCode == 0 {
					t.Logf("%s: undone: %v", level, result.Reverted)
				}
			}
		})
	}
}

// TestSecondNamesAreNoWayAround: a file mounted read-only at L2 can be written
// through another hard link made earlier; that change is reverted.
func TestSecondNamesAreNoWayAround(t *testing.T) {
	t.Parallel()
	for _, level := range levels(t) {
		if level == proc.Off {
			continue
		}
		for name, c := range map[string]struct{ before, first, second string }{
			"a command's": {"", `git init -q n; printf '#!/bin/sh\n' > n/.git/hooks/pre-commit; ln n/.git/hooks/pre-commit y`, `printf 'EVIL' > y; chmod +x y; rm y`},
			"the user's":  {`printf '#!/bin/sh\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; ln .git/hooks/pre-commit y`, `:`, `printf 'EVIL' > y`},
		} {
			t.Run(string(level)+"/"+name, func(t *testing.T) {
				t.Parallel()
				p := newProject(t)
				p.user(c.before + "\n:")
				r := p.runner(level)
				for _, script := range []string{"true", c.first, c.second, "true"} {
					run(t, r, p.command(script))
				}
				require.False(t, p.ran(looks))
			})
		}
	}
}

// TestOverlappingCommandsHaveTheSameBefore: a command that starts while
// another one has planted a file does not take the file for the user's.
func TestOverlappingCommandsHaveTheSameBefore(t *testing.T) {
	t.Parallel()
	for _, level := range levels(t) {
		if level == proc.Off {
			continue
		}
		for name, plant := range map[string]string{
			"settings": `printf 'EVIL' > x.sh; chmod +x x.sh; git config core.fsmonitor ./x.sh`,
			"an agent": `printf 'EVIL' > .mcp.json`,
		} {
			t.Run(string(level)+"/"+name, func(t *testing.T) {
				t.Parallel()
				p := newProject(t)
				r := p.runner(level)
				first, err := r.Start(context.Background(), p.command(plant+"; echo ready; sleep 1000"))
				require.NoError(t, err)
				waitFor(t, first, "ready")
				second, err := r.Start(context.Background(), p.command("echo begun; until [ -e go ]; do sleep 0.01; done; "+plant))
				require.NoError(t, err)
				waitFor(t, second, "begun")
				first.Stop()
				first.Wait()
				require.NoError(t, os.WriteFile(filepath.Join(p.root, "go"), nil, 0o644))
				second.Wait()
				require.False(t, p.ran(looks))
				require.NoFileExists(t, filepath.Join(p.root, ".mcp.json"))
			})
		}
	}
}

// everyday holds ordinary work of developers. Each case ends with a check.
var everyday = map[string]struct{ before, script, after string }{
	"commit":            {"", `echo b > b; git add -A; git commit -qm b`, `git log -1 --format=%s | grep -qx b`},
	"a branch upstream": {"git init -q --bare ../o.git; git push -q ../o.git HEAD:main; git clone -q ../o.git c", `cd c; git checkout -q -b f origin/main; git config branch.f.merge`, `git -C c config branch.f.remote | grep -qx origin`},
	"a remote":          {"", `git remote add o https://example.com/o; git remote rename o p`, `git remote | grep -qx p`},
	"rebase":            {"", `git checkout -q -b f; echo f > f; git add f; git commit -qm f; git checkout -q main; echo g > g; git add g; git commit -qm g; git checkout -q f; git rebase -q main`, `git log --format=%s | grep -c . | grep -qx 3`},
	"a worktree":        {"", `git worktree add -q -b w w; cd w; echo w > w; git add w; git commit -qm w`, `git -C w log -1 --format=%s | grep -qx w; git worktree list | grep -c . | grep -qx 2`},
	"remove a worktree": {"git worktree add -q -b w w", `git worktree remove w`, `test ! -e w; git worktree list | grep -c . | grep -qx 1`},
	"move a worktree":   {"git worktree add -q -b w w", `git worktree move w v; git -C v commit -q --allow-empty -m v`, `git -C v log -1 --format=%s | grep -qx v`},
	"delete a worktree": {"git worktree add -q -b w w", `rm -r w; git worktree prune`, `test ! -e w; git worktree list | grep -c . | grep -qx 1`},
	"deinit a submodule": {"git init -q lib; git -C lib commit -q --allow-empty -m lib; git -c protocol.file.allow=always submodule --quiet add \"$PWD/lib\" sub; git commit -qm sub",
		`git submodule --quiet deinit -f sub; git rm -qf sub; git commit -qm gone`, `test ! -e sub/.git; git log -1 --format=%s | grep -qx gone`},
	"a submodule":     {"git init -q lib; git -C lib commit -q --allow-empty -m lib", `git -c protocol.file.allow=always submodule --quiet add "$PWD/lib" sub; git commit -qm sub; git submodule update --init -q; git -C sub commit -q --allow-empty -m s`, `git submodule status | grep -q sub; git -C sub log -1 --format=%s | grep -qx s`},
	"stash":           {"", `echo b > a; git stash -q; test "$(cat a)" = a; git stash pop -q`, `grep -qx b a`},
	"clone":           {"", `git clone -q . c; cd c; git commit -q --allow-empty -m c`, `git -C c log -1 --format=%s | grep -qx c`},
	"init":            {"", `git init -q n; cd n; echo n > n; git add n; git commit -qm n`, `git -C n log -1 --format=%s | grep -qx n`},
	"init at the top": {"rm -rf .git", `git init -q; git add a; git commit -qm n`, `git log -1 --format=%s | grep -qx n`},
	"a bare clone":    {"", `git clone -q --bare . b; git push -q b HEAD:x`, `git -C b rev-parse -q --verify x`},
	"a hook that was there": {`printf '#!/bin/sh\necho ran > hooked\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit`,
		`git commit -q --allow-empty -m h`, `grep -qx ran hooked`},
	"hooks of husky run":   {`mkdir -p .husky/_; printf '#!/bin/sh\necho ran > hooked\n' > .husky/_/pre-commit; chmod +x .husky/_/pre-commit; git config core.hooksPath .husky/_`, `git commit -q --allow-empty -m h; cp -p .husky/_/pre-commit x; mv x .husky/_/pre-commit`, `grep -qx ran hooked`},
	"a repository deleted": {"", `git init -q n; rm -rf n`, `test ! -e n`},
	"clean":                {"echo x > junk; mkdir d; echo y > d/y", `git clean -qfd`, `test ! -e junk; test ! -e d`},
	"Claude Code's worktrees": {`mkdir -p .claude; echo '{}' > .claude/settings.json; git worktree add -q .claude/worktrees/w -b w`,
		`cd .claude/worktrees/w; echo x > f; git add f; git commit -qm w; ! touch ../../new || rm ../../new`, `test -e .claude/worktrees/w/f`},
	"a worktree in a bare clone":   {"", `git clone -q --bare . b; cd b; git worktree add -q -b w w; cd w; echo w > w; git add w; git commit -qm w`, `git -C b/w log -1 --format=%s | grep -qx w`},
	"a submodule's worktree":       {"git init -q lib; git -C lib commit -q --allow-empty -m lib; git -c protocol.file.allow=always submodule --quiet add \"$PWD/lib\" sub; git commit -qm sub", `git worktree add -q w; cd w; git -c protocol.file.allow=always submodule --quiet update --init; git -C sub commit -q --allow-empty -m s`, `git -C w/sub log -1 --format=%s | grep -qx s`},
	"an am that stops":             {startedAm + "rm -rf pp", `echo 1 > a1; git add a1; git am --continue`, `git log -1 --format=%s | grep -qx 2`},
	"an am that is aborted":        {"", startedAm + `git am --abort; rm -rf pp`, `git log -1 --format=%s | grep -qx zz`},
	"a rebase by patches":          {conflict, `! git rebase -q --apply main f; echo r > a; git add a; git rebase --continue`, `git log -1 --format=%s | grep -qx f`},
	"links of packages":            {"mkdir -p packages/a node_modules/.bin bin; touch node_modules/.bin/t; ln -s ../node_modules/.bin/t bin/t", `ln -s ../packages/a node_modules/a; ln -sfn ../node_modules/.bin/./t bin/t; ln -s packages/a current; ln -sfn node_modules/a x; mkdir -p packages/b/.vscode; echo x > packages/b/.vscode/settings.json; ln -sfn packages/b y`, `test -L bin/t -a -L current -a -L x -a -f packages/b/.vscode/settings.json`},
	"a user's hook that is a link": {`mkdir scripts; printf '#!/bin/sh\necho ran > hooked\n' > scripts/pc; chmod +x scripts/pc; ln -s ../../scripts/pc .git/hooks/pre-commit`, `git commit -q --allow-empty -m h; echo x > scripts/other`, `grep -qx ran hooked`},
	"a user's alias":               {`git config alias.st '!echo'`, `git remote add o x; git config user.name Z`, `git config alias.st | grep -q echo; git config user.name | grep -qx Z`},
	"maintenance":                  {"", `git gc -q; git pack-refs --all; git reflog expire --all`, `git fsck --no-progress`},
}

// TestEverydayGit: ordinary work of developers succeeds, and nothing of it is
// reverted.
func TestEverydayGit(t *testing.T) {
	t.Parallel()
	enforced := levels(t)
	for name, c := range everyday {
		t.Run(name, func(t *testing.T) {
			sandboxtest.SkipUnsampled(t)
			t.Parallel()
			for _, level := range enforced {
				p := newProject(t)
				p.user("set -e; " + c.before + "\n:")
				r := p.runner(level)
				result, out := run(t, r, p.command("set -e; "+c.script))
				require.Equal(t, 0, result.ExitCode, "%s: %s", level, out)
				require.Empty(t, result.Reverted, level)
				p.user("set -e; " + c.after)
				result, out = run(t, r, p.command("git status --porcelain; true"))
				require.Empty(t, result.Reverted, level)
				require.NotContains(t, out, "fatal", level)
			}
		})
	}
}

// TestStepsOfOneRebase: one command stops in a rebase, the next one continues
// it.
func TestStepsOfOneRebase(t *testing.T) {
	t.Parallel()
	for _, level := range levels(t) {
		p := newProject(t)
		p.user("for i in 1 2 3; do echo $i > a; git commit -qam $i; done")
		r := p.runner(level)
		for _, script := range []string{"GIT_SEQUENCE_EDITOR='sed -i 1s/pick/edit/' git rebase -q -i HEAD~2", "git status", "git rebase --continue",
			"git cherry-pick HEAD~2 HEAD~1; echo x > a; git add a", "git cherry-pick --abort"} {
			result, out := run(t, r, p.command(script))
			require.Empty(t, result.Reverted, "%s: %s: %s", level, script, out)
		}
		p.user("! test -e .git/rebase-merge && ! test -e .git/sequencer && git log -1 --format=%s | grep -qx 3")
	}
}

// TestGitTriesALink: a check while git init runs does not remove the link that git
// tries, which would make git write core.symlinks = false. It does not stay.
func TestGitTriesALink(t *testing.T) {
	t.Parallel()
	for _, level := range levels(t) {
		if level == proc.Off {
			continue
		}
		p := newProject(t)
		result, out := run(t, p.runner(level), p.command("git init -q n; ln -s testing n/.git/tQPVyN8; ln -s testing n/.git/tesT; sleep 3; ls n/.git"))
		require.Contains(t, out, "tQPVyN8", level)
		require.NotContains(t, out, "tesT", level)
		require.Contains(t, result.Reverted, filepath.Join(p.root, "n/.git/tQPVyN8"), level)
		require.NoFileExists(t, filepath.Join(p.root, "n/.git/tQPVyN8"), level)
	}
}

// writeSetting returns a script that writes the file $f. It tries several
// times, because a setting may be reverted, with its directory, between mkdir
// and the write.
func writeSetting(text string) string {
	return "for i in 1 2 3 4 5 6 7 8; do mkdir -p $(dirname $f) && echo " + text + " > $f && break; done"
}

// TestProjectSettingsAreKept: changed settings are restored, new ones removed.
func TestProjectSettingsAreKept(t *testing.T) {
	t.Parallel()
	const names = ".claude/commands/x.md .claude/hooks/x .codex/config.toml .cursor/hooks.json .devcontainer/devcontainer.json .gemini/settings.json " +
		".husky/pre-commit .vscode/mcp.json .vscode/settings.json .vscode/tasks.json .mcp.json .envrc"
	write := "for f in " + names + "; do " + writeSetting("$1") + "; done 2>/dev/null; "
	for _, level := range levels(t) {
		if level == proc.Off {
			continue
		}
		p := newProject(t)
		r := p.runner(level)
		result, _ := run(t, r, p.command("set -- evil; "+write+`printf '[submodule "x"]\n\tpath = x\n\turl = u\n\tupdate = !./x.sh\n' > .gitmodules`))
		for _, name := range strings.Fields(names) {
			require.Contains(t, result.Reverted, filepath.Join(p.root, name), level)
			require.NoFileExists(t, filepath.Join(p.root, name), level)
		}
		text, err := os.ReadFile(filepath.Join(p.root, ".gitmodules"))
		require.NoError(t, err)
		require.Equal(t, "[submodule \"x\"]\n\tpath = x\n\turl = u\n", string(text), level)

		p.user("set -- mine; " + write)
		_, _ = run(t, r, p.command("set -- evil; "+write+"rm -rf .claude .vscode; mv .codex c; mkdir .codex; "+write))
		for _, name := range strings.Fields(names) {
			text, err := os.ReadFile(filepath.Join(p.root, name))
			require.NoError(t, err, level)
			require.Equal(t, "mine\n", string(text), "%s at %s", name, level)
		}
	}
}

// New settings of a project below its top are reverted in directories that
// existed before, under every name, even if the directory was moved away for a
// time. Settings that arrive with packages and clones are kept.
func TestProjectSettingsAtAnyDepth(t *testing.T) {
	t.Parallel()
	const names = ".vscode/tasks.json .mcp.json .claude/settings.json .config/mise/config.toml .config/mise.toml .github/hooks/x.json mise.ci.toml x.code-workspace .envrc .hg/hgrc .pdbrc .agents/x .jj/repo/config.toml"
	for _, level := range levels(t) {
		if level == proc.Off {
			continue
		}
		p := newProject(t)
		p.user(`mkdir -p p/b/c .jj/repo .github .config p/.github m/.config; touch p/b/c/f; git init -q ../lib; mkdir -p ../lib/.vscode; echo mine > ../lib/.vscode/tasks.json; git -C ../lib add -A; git -C ../lib commit -qm l; cp -r ../lib lib.git`)
		r := p.runner(level)
		run(t, r, p.command("true"))
		for _, dir := range []string{".", "p", "p/b/c", "m"} {
			result, out := run(t, r, p.command("cd "+dir+" && for f in "+names+"; do "+writeSetting("evil")+"; done"))
			for _, name := range strings.Fields(names) {
				path := filepath.Join(p.root, dir, name)
				require.Contains(t, result.Reverted, path, "%s %s", level, out)
				require.NoFileExists(t, path, level)
			}
		}
		result, _ := run(t, r, p.command("git init -q p/b; mkdir p/b/.vscode; echo evil > p/b/.vscode/tasks.json"))
		require.Contains(t, result.Reverted, filepath.Join(p.root, "p/b/.vscode/tasks.json"), level)
		run(t, r, p.command("mv p/b d; mkdir d/.cursor; echo evil > d/.cursor/mcp.json"))
		run(t, r, p.command("mv d p/b"))
		require.NoFileExists(t, filepath.Join(p.root, "p/b/.cursor/mcp.json"), level)
		p.user("mkdir -p p/b")

		result, out := run(t, r, p.command("git clone -q lib.git p/clone; git clone -q lib.git node_modules/x; mkdir -p new/pkg/.vscode vendor/y/.idea node_modules/z; echo x > new/pkg/.vscode/settings.json; echo x > vendor/y/.idea/x.xml"))
		require.Zero(t, result.ExitCode, out)
		require.Empty(t, result.Reverted, level)
		for _, name := range []string{"p/clone/.vscode/tasks.json", "node_modules/x/.vscode/tasks.json", "new/pkg/.vscode/settings.json", "vendor/y/.idea/x.xml"} {
			require.FileExists(t, filepath.Join(p.root, name), level)
		}
		result, _ = run(t, r, p.command("mkdir -p node_modules/z/.idea vendor/y/.vscode; echo x > node_modules/z/.idea/a.xml; echo x > vendor/y/.vscode/settings.json"))
		require.Empty(t, result.Reverted, level)
	}
}
