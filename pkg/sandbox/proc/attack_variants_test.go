//go:build linux

package proc_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
)

// payload makes git run $X, the planted program, when the user runs look in
// the repository. Without a hook, keys are settings in lines of KEY VALUE.
type payload struct{ hook, keys, extra, look string }

var payloads = map[string]payload{
	"fsmonitor":           {keys: "core.fsmonitor $X", look: "git status"},
	"external diff":       {keys: "diff.external $X", look: "echo z >> f; git diff"},
	"editor":              {keys: "core.editor $X", look: "git commit --allow-empty"},
	"sequence editor":     {keys: "sequence.editor $X", look: "git commit --allow-empty -qm 1; git rebase -i HEAD~1"},
	"ssh command":         {keys: "core.sshCommand $X\nremote.o.url ssh://h/x", look: "git fetch o"},
	"upload pack":         {keys: "remote.o.uploadpack $X\nremote.o.url .", look: "git fetch o"},
	"receive pack":        {keys: "remote.o.receivepack $X\nremote.o.url .", look: "git push o HEAD:x"},
	"git proxy":           {keys: "core.gitProxy $X\nremote.o.url git://h/x", look: "git fetch o"},
	"remote helper":       {keys: "protocol.ext.allow always\nremote.o.url ext::$X", look: "git fetch o"},
	"credential helper":   {keys: "credential.helper !$X", look: "echo url=https://h/x | git credential fill"},
	"one host's helper":   {keys: "credential.https://h.helper !$X", look: "echo url=https://h/x | git credential fill"},
	"ask pass":            {keys: "core.askPass $X", look: "echo url=https://h/x | git credential fill"},
	"clean filter":        {keys: "filter.x.clean $X", extra: "echo '* filter=x' > $R/.gitattributes", look: "echo z > new; git add new"},
	"smudge filter":       {keys: "filter.x.smudge $X", extra: "echo '* filter=x' > $R/.gitattributes", look: "rm f; git checkout f"},
	"filter process":      {keys: "filter.x.process $X\nfilter.x.required true", extra: "echo '* filter=x' > $R/.gitattributes", look: "echo z > new; git add new"},
	"filter by info":      {keys: "filter.x.clean $X", extra: "mkdir -p $D/info; echo '* filter=x' > $D/info/attributes", look: "echo z > new; git add new"},
	"attributes file":     {keys: "filter.x.clean $X\ncore.attributesFile $PWD/at", extra: "echo '* filter=x' > at", look: "echo z > new; git add new"},
	"text conversion":     {keys: "diff.x.textconv $X", extra: "echo '* diff=x' > $R/.gitattributes", look: "echo z >> f; git diff"},
	"diff command":        {keys: "diff.x.command $X", extra: "echo '* diff=x' > $R/.gitattributes", look: "echo z >> f; git diff"},
	"merge driver":        {keys: "merge.x.driver $X", extra: "echo '* merge=x' > $R/.gitattributes", look: "git checkout -qb v; echo 1 > f; git commit -qam 1; git checkout -q -; echo 2 > f; git commit -qam 2; git merge v"},
	"signing program":     {keys: "gpg.program $X\ncommit.gpgSign true", look: "git commit --allow-empty -qm s"},
	"ssh signing program": {keys: "gpg.format ssh\ngpg.ssh.program $X\ncommit.gpgSign true\nuser.signingKey $X", look: "git commit --allow-empty -qm s"},
	"x509 program":        {keys: "gpg.format x509\ngpg.x509.program $X\ncommit.gpgSign true", look: "git commit --allow-empty -qm s"},
	"default key command": {keys: "gpg.format ssh\ngpg.ssh.defaultKeyCommand $X\ncommit.gpgSign true", look: "git commit --allow-empty -qm s"},
	"hooks path":          {keys: "core.hooksPath $PWD/hk", extra: "mkdir hk; cp $X hk/pre-commit", look: "git commit --allow-empty -qm h"},
	"include":             {keys: "include.path $PWD/inc", extra: "git config -f inc core.fsmonitor $X", look: "git status"},
	"conditional include": {keys: "includeIf.gitdir:/.path $PWD/inc", extra: "git config -f inc core.fsmonitor $X", look: "git status"},
	"branch's include":    {keys: "includeIf.onbranch:*.path $PWD/inc", extra: "git config -f inc core.fsmonitor $X", look: "git status"},
	"alias":               {keys: "alias.st !$X", look: "git st"},
	"alias with options":  {keys: "alias.st -c core.fsmonitor=$X status", look: "git st"},
	"diff filter":         {keys: "interactive.diffFilter $X\ncolor.ui always", look: "echo z >> f; yes n | git add -p"},
	"alternates":          {keys: "core.alternateRefsCommand $X\nremote.o.url .", extra: "git init -q alt; mkdir -p $D/objects/info; echo $PWD/alt/.git/objects > $D/objects/info/alternates", look: "git fetch o"},
	"diff tool":           {keys: "diff.tool x\ndifftool.x.cmd $X", look: "echo z >> f; git difftool -y"},
	"merge tool":          {keys: "merge.tool x\nmergetool.x.cmd $X", look: "git checkout -qb v; echo 1 > f; git commit -qam 1; git checkout -q -; echo 2 > f; git commit -qam 2; git merge v; git mergetool -y"},
	"archive format":      {keys: "tar.x.command $X", look: "git archive --format=x HEAD"},
	"trailer":             {keys: "trailer.x.key X\ntrailer.x.command $X", look: "echo m | git interpret-trailers --trailer x=1; echo m | git interpret-trailers"},
	"trailer command":     {keys: "trailer.x.key X\ntrailer.x.cmd $X", look: "echo m | git interpret-trailers"},
	"browser":             {keys: "web.browser x\nbrowser.x.cmd $X", look: "git web--browse http://h"},
	"manual":              {keys: "man.viewer x\nman.x.cmd $X", look: "git help -m status"},
	"recent objects":      {keys: "gc.recentObjectsHook $X", look: "git gc --prune=now"},
	"templates":           {keys: "init.templateDir $PWD/tp", extra: "mkdir -p tp/hooks; cp $X tp/hooks/pre-commit", look: "git init -q again; cd again; git commit --allow-empty -qm t"},
	"mail command":        {keys: "sendemail.smtpServer $X\nsendemail.to a@example.com\nsendemail.from a@example.com\nsendemail.confirm never", look: "git send-email --quiet HEAD"},
	"sub-module update":   {keys: "submodule.s.update !$X\nsubmodule.s.url $PWD/sm\nsubmodule.s.active true", extra: "git init -q sm; git -C sm commit -q --allow-empty -m s; git -C $R update-index --add --cacheinfo 160000,$(git -C sm rev-parse HEAD),s; git config -f $R/.gitmodules submodule.s.path s; git config -f $R/.gitmodules submodule.s.url $PWD/sm", look: "git -c protocol.file.allow=always submodule update"},
	"work tree elsewhere": {keys: "core.worktree $PWD/elsewhere\ncore.fsmonitor $X", extra: "mkdir elsewhere", look: "git status"},
	"a key in upper case": {keys: "CORE.FSMONITOR $X", look: "git status"},
	"pre-commit":          {hook: "pre-commit", look: "git commit --allow-empty -qm h"},
	"commit-msg":          {hook: "commit-msg", look: "git commit --allow-empty -qm h"},
	"prepare-commit-msg":  {hook: "prepare-commit-msg", look: "git commit --allow-empty -qm h"},
	"post-commit":         {hook: "post-commit", look: "git commit --allow-empty -qm h"},
	"post-checkout":       {hook: "post-checkout", look: "git checkout -qb u"},
	"post-merge":          {hook: "post-merge", look: "git checkout -qb u; git commit --allow-empty -qm h; git checkout -q -; git merge u"},
	"pre-merge-commit":    {hook: "pre-merge-commit", look: "git checkout -qb u; git commit --allow-empty -qm h; git checkout -q -; git merge --no-ff -m x u"},
	"pre-push":            {hook: "pre-push", look: "git push . HEAD:x"},
	"pre-receive":         {hook: "pre-receive", look: "git push . HEAD:x"},
	"update":              {hook: "update", look: "git push . HEAD:x"},
	"post-update":         {hook: "post-update", look: "git push . HEAD:x"},
	"pre-rebase":          {hook: "pre-rebase", look: "git commit --allow-empty -qm 1; git rebase HEAD~1"},
	"post-rewrite":        {hook: "post-rewrite", look: "git commit --allow-empty --amend -qm 1"},
	"reference":           {hook: "reference-transaction", look: "git branch u"},
	"index change":        {hook: "post-index-change", look: "echo z > new; git add new"},
	"automatic gc":        {hook: "pre-auto-gc", look: "git -c gc.auto=1 gc --auto"},
	"applied patch":       {hook: "applypatch-msg", look: "echo z >> f; git commit -qam 1; git format-patch -1; git reset -q --hard HEAD~1; git am 0001*"},
	"upper case hook":     {hook: "Pre-Commit", look: "git commit --allow-empty -qm h"},
}

// repositories are scripts that set $R, a work tree in which git reads the
// settings of the directory $D. The user runs before first.
var repositories = map[string]struct{ before, script string }{
	"top":             {"", "R=. D=.git"},
	"new":             {"", "git init -q n; R=n D=n/.git; " + firstCommit},
	"new and deep":    {"mkdir -p d/e", "git init -q d/e/n; R=d/e/n D=d/e/n/.git; " + firstCommit},
	"gitlink":         {"", "git init -q n; R=n D=n/.git; " + firstCommit + "; git add n"},
	"nested":          {"git init -q n; cd n; echo f > f; git add f; git commit -qm n", "R=n D=n/.git"},
	"module":          {"git init -q ../s; git -C ../s commit -q --allow-empty -m s; git -c protocol.file.allow=always submodule --quiet add $PWD/../s s; git commit -qm s", "R=s D=.git/modules/s"},
	"worktree":        {"git worktree add -q w", "R=w D=.git"},
	"top made again":  {"", "git init -q q; mv .git .old; mv q/.git .git; R=. D=.git; " + firstCommit},
	"gitfile":         {"", "git init -q --separate-git-dir=$PWD/gd n; R=n D=gd; " + firstCommit},
	"link":            {"", "git init -q n; mv n/.git gd; ln -s ../gd n/.git; R=n D=gd; " + firstCommit},
	"bare":            {"", "git init -q --bare b; git -C b config core.bare false; git -C b config core.worktree .; R=b D=b; " + firstCommit},
	"clone":           {"", "git clone -q . n; R=n D=n/.git"},
	"copy":            {"", "mkdir n; cp -r .git n/.git; R=n D=n/.git"},
	"node_modules":    {"", "git init -q node_modules/p; R=node_modules/p D=node_modules/p/.git; " + firstCommit},
	"settings folder": {"", "git init -q .vscode/n; R=.vscode/n D=.vscode/n/.git; " + firstCommit},
	"odd name":        {"", "git init -q $'n\\n\\xff x'; R=$'n\\n\\xff x' D=$R/.git; " + firstCommit},
}

const firstCommit = `(cd "$R"; echo f > f; git add f; git -c user.name=x -c user.email=x@x commit -qm f)`

// writings are scripts that replace $F, a file in the git directory $D, by the
// file t.
var writings = map[string]string{
	"copy":            `cp t "$F"`,
	"rename":          `mv t "$F"`,
	"hard link":       `ln "$F" l; cat t > l`,
	"linked in":       `rm -f "$F"; ln t "$F"`,
	"link":            `rm -f "$F"; ln -s "$PWD/t" "$F"`,
	"directory":       `cp -r "$D" q; cp t "q/${F#$D/}"; mv "$D" old; mv q "$D"`,
	"moved away":      `mv "$D" q; cp t "q/${F#$D/}"; mv q "$D"`,
	"moved worktree":  `mv "$R" m; cp t "m/${F#$R/}"; mv m "$R"`,
	"no name":         `/usr/bin/python3 -c 'import os,sys; d=os.open(".",os.O_TMPFILE|os.O_RDWR,0o755); os.write(d,open("t","rb").read()); os.link("/proc/self/fd/%d"%d,"u",follow_symlinks=True)' && mv u "$F"`,
	"exchange":        `/usr/bin/python3 -c 'import ctypes,sys; sys.exit(ctypes.CDLL(None).renameat2(-100,b"t",-100,sys.argv[1].encode(errors="surrogateescape"),2))' "$F"`,
	"memory map":      `[ -e "$F" ] || touch "$F"; truncate -s $(stat -c %s t) "$F"; /usr/bin/python3 -c 'import mmap,sys; f=open(sys.argv[1],"r+b"); m=mmap.mmap(f.fileno(),0); m[:]=open("t","rb").read()' "$F"; chmod +x "$F"`,
	"descriptor":      `exec 9> "$F"; cat t >&9; chmod +x "$F"`,
	"many times":      `for i in $(seq 40); do cp t "$F"; done`,
	"in the past":     `cp t "$F"; touch -d '1 year ago' "$F" "$D" "$R"`,
	"among many":      `mkdir z; (cd z; seq 3000 | xargs touch; for i in $(seq 20); do mkdir -p r$i/.git/objects r$i/.git/refs; echo 'ref: refs/heads/main' > r$i/.git/HEAD; done); cp t "$F"`,
	"by a child":      `(setsid sh -c 'cp t "$0"' "$F" &); sleep 0.1`,
	"after the shell": `(sleep 0.1; cp t "$F") & disown`,
	"through /proc":   `exec 8< "$D"; cp t "/proc/self/fd/8/${F#$D/}"`,
	"upwards":         `cd "$D"; cp "$OLDPWD/t" "./../${D##*/}/${F#$D/}"`,
	"append":          `[ -e "$F" ] && tail -c +$(($(stat -c %s "$F") + 1)) t >> "$F"`,
}

// script returns a command that plants the payload in a repository, in one of
// the ways of writing.
func (c payload) script(repository, writing string) string {
	var b strings.Builder
	b.WriteString("git() { command git -c user.name=x -c user.email=x@x \"$@\"; }\nprintf 'EVIL' > x.sh; chmod +x x.sh; X=$PWD/x.sh\n" + repository + "\n")
	if c.hook != "" {
		fmt.Fprintf(&b, "F=$D/hooks/%s; cp x.sh t; mkdir -p $D/hooks\n", c.hook)
	} else {
		b.WriteString("F=$D/config; cp \"$F\" t\n")
		for key := range strings.SplitSeq(c.keys, "\n") {
			name, value, _ := strings.Cut(key, " ")
			fmt.Fprintf(&b, "git config -f t %s \"%s\"\n", name, value)
		}
	}
	return b.String() + c.extra + "\n" + writing + "\n:"
}

type variant struct {
	name, before, script, look string
}

// variants returns all payloads in two repositories, and two payloads in all
// repositories by all ways of writing.
func variants() (all []variant) {
	add := func(p, r, w string) {
		look := fmt.Sprintf("%s\n(cd \"$R\"; %s)\n%s", lookPlace(repositories[r].script), payloads[p].look, looks)
		all = append(all, variant{p + ", " + r + ", " + w, repositories[r].before, payloads[p].script(repositories[r].script, writings[w]), look})
	}
	for _, p := range slices.Sorted(maps.Keys(payloads)) {
		for _, r := range slices.Sorted(maps.Keys(repositories)) {
			for _, w := range slices.Sorted(maps.Keys(writings)) {
				every := p == "fsmonitor" || p == "pre-commit"
				if every || w == "copy" && (r == "top" || r == "new" || r == "nested" || r == "module") {
					add(p, r, w)
				}
			}
		}
	}
	return all
}

// lookPlace returns the part of a repository's script that sets R.
func lookPlace(script string) string {
	at := strings.Index(script, "R=")
	place, _, _ := strings.Cut(script[at:], ";")
	return place
}

// TestVariants plants programs for git in repositories of many kinds, by many
// ways of writing, and then uses git as the user. Variants that do not work
// unconfined do not count. With PROC_LONG it runs all of them, otherwise a
// sample.
func TestVariants(t *testing.T) {
	t.Parallel()
	enforced := levels(t)
	if len(enforced) == 1 {
		t.Skip("commands are not confined on this machine")
	}
	var mu sync.Mutex
	ran, useless, escaped := 0, 0, []string{}
	t.Run("all", func(t *testing.T) {
		for _, v := range variants() {
			sum := fnv.New32a()
			sum.Write([]byte(v.name))
			if !long && sum.Sum32()%150 != 0 {
				continue
			}
			t.Run(v.name, func(t *testing.T) {
				t.Parallel()
				if !v.plant(t, proc.Off) {
					mu.Lock()
					defer mu.Unlock()
					useless++
					return
				}
				for _, level := range enforced {
					if level == proc.Off {
						continue
					}
					bad := v.plant(t, level)
					mu.Lock()
					if ran++; bad {
						escaped = append(escaped, string(level)+": "+v.name)
					}
					mu.Unlock()
				}
			})
		}
	})
	t.Logf("%d variants at a level, %d that do not work unconfined, %d escapes", ran, useless, len(escaped))
	require.Empty(t, escaped)
	require.NotZero(t, ran)
}

// plant reports whether the planted program runs when the user runs look.
func (v variant) plant(t *testing.T, level proc.Level) bool {
	p := newProject(t)
	p.user("exec >/dev/null 2>&1\n" + v.before + "\n:")
	r := p.runner(level)
	run(t, r, p.command("true"))
	if _, out, err := r.Run(context.Background(), p.command(v.script)); err == nil {
		out.Close()
	}
	defer os.RemoveAll(p.dir)
	return p.ran("timeout 60 bash -c '\n" + strings.ReplaceAll(v.look, "'", `'\''`) + "'; :")
}

// TestVariantsAsAPlainUser runs the variants as a plain user.
func TestVariantsAsAPlainUser(t *testing.T) {
	if !long {
		t.Skip("PROC_LONG")
	}
	sandboxtest.AsPlainUser(t, "TestVariants")
}
