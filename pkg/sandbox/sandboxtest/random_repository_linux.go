package sandboxtest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// repositoryEnv names a git repository, whose clone RepositoryTemplate then uses
// instead of its own history.
const repositoryEnv = "SANDBOXTEST_REPOSITORY"

// repositoryHistory makes a repository with two branches that conflict with each
// other.
const repositoryHistory = `git init -q -b main .; mkdir -p src/a/b doc/x; for i in 1 2 3 4 5; do seq $i 60 > src/a/f$i; seq $i 9 > doc/g$i; echo $i > src/a/b/h$i; done
git add -A; git commit -qm first; git checkout -qb side; sed -i 's/^5$/side/' src/a/f1; git mv doc/g1 doc/x/g; git commit -qam side; echo two >> doc/g2; git commit -qam two
git checkout -q main; sed -i 's/^5$/main/' src/a/f1; git rm -q doc/g3; git commit -qam main; git tag v1`

// repositoryFiles adds files that git does not record: hard links, files with holes,
// names that are no valid UTF-8, pipes, and unusual modes and times. It gives the files
// times in different seconds: git compares only seconds and sizes (see GitSettings), so it
// would find that a file was replaced by another one only sometimes.
const repositoryFiles = `mkdir -p odd/dir odd/closed odd/empty odd/deep/1/2/3; echo line > odd/$'new\nline'; echo bytes > odd/$'\xff\xfe\x80'; echo dash > odd/-rf; echo space > 'odd/ a b '; echo glob > 'odd/*[x]?'
echo whiteout > odd/.wh.name; echo opaque > odd/.wh..wh..opq; echo long > odd/$(printf 'n%.0s' {1..255}); echo $'\u00e9' > odd/$'\u00e9'; echo $'e\u0301' > odd/$'e\u0301'; mkdir odd/$'d\n\xff'; echo in > odd/$'d\n\xff'/in
echo linked > odd/one; ln odd/one odd/two; ln odd/one odd/dir/three; truncate -s 3M odd/holes; printf data | dd of=odd/holes bs=1 seek=1500000 conv=notrunc status=none; head -c 400000 /dev/zero | tr '\0' x > odd/large
mkfifo odd/pipe; ln -s one odd/link; ln -s ../src odd/srclink; ln -s nowhere odd/dangling; ln -s $'\xfe' odd/linkbytes; for i in 1 2 3; do echo $i > odd/deep/$i; echo $i > odd/deep/1/2/3/d$i; done; echo c > odd/closed/c; : > odd/zero
chmod 600 odd/one; chmod 444 odd/zero; chmod 2775 odd/deep/1; chmod 1777 odd/dir; touch -d '1965-02-03 04:05:06.5' odd/large; touch -d '2001-02-03 04:05:06.123456789' odd/deep odd/deep/1/2; touch -h -d 2003-03-03 odd/link
n=1600000000; find . -name .git -prune -o -type f -newermt 2020-01-01 -print0 | sort -z | while IFS= read -rd '' f; do touch -d @$((n++)) "$f"; done; git update-index -q --refresh
chmod 500 odd/closed
`

// RepositoryTemplate makes a git repository with unusual files in a new directory, and
// returns its path. FillFrom copies it into a root.
func RepositoryTemplate(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(MakeDir(t), "template")
	require.NoError(t, os.Mkdir(dir, 0o755))
	history := repositoryHistory
	if from := os.Getenv(repositoryEnv); from != "" {
		history = "git clone -q " + from + " . && git branch side HEAD~1 && git checkout -q side && echo side > side && git add side && git commit -qm side && git checkout -q -"
	}
	cmd := exec.Command("bash", "-c", GitSettings+history+"\n"+repositoryFiles)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	for name, attribute := range map[string]string{"odd/one": "user.one", "odd/deep": "user.dir", "odd/large": "user.large"} {
		err := unix.Setxattr(filepath.Join(dir, name), attribute, []byte("value"), 0)
		require.True(t, err == nil || err == unix.ENOTSUP, err)
	}
	return dir
}

// FillFrom replaces the files of the root by a copy of a template.
func (b *CommandRoot) FillFrom(template string) {
	b.T.Helper()
	exec.Command("chmod", "-R", "u+rwX", b.Root).Run() //nolint:errcheck // if it fails, the removal reports it
	b.RemoveFiles()
	b.RunOutside("cp -a -- '" + template + "/.' . && git update-index -q --refresh; true")
}

// repositoryPrelude defines functions for the steps of RepositorySteps.Script. file,
// dir and any set the variables f, d and e to the entry with a number, and F, D and E to
// another one. They leave out git's own files, since a command may not leave every index.
const repositoryPrelude = `export LC_ALL=C; entries() { mapfile -d '' list < <(find . -name .git -prune -o ! -path . "$@" -print0 | sort -z); }
file() { entries -type f; n=${#list[@]}; [ $n -gt 0 ] || { f=none; F=none; return; }; f=${list[$1 % n]}; F=${list[$2 % n]}; }
dir() { entries -type d; n=${#list[@]}; [ $n -gt 0 ] || { d=none; D=none; return; }; d=${list[$1 % n]}; D=${list[$2 % n]}; }
any() { entries; n=${#list[@]}; [ $n -gt 0 ] || { e=none; E=none; return; }; e=${list[$1 % n]}; E=${list[$2 % n]}; }
exchange() { perl -e 'syscall(RENAMEAT2, -100, $ARGV[0], -100, $ARGV[1], 2)' -- "$1" "$2"; }
git() { command git -c gc.auto=0 -c pack.threads=1 -c maintenance.auto=false -c core.editor=true -c advice.detachedHead=false "$@"; }
`

// repositoryFileSteps replace, move and remove files, and remove directories. Each %d becomes a random number.
var repositoryFileSteps = []string{
	`file %d %d; rm -f "$f"`, `dir %d %d; rm -rf "$d"`, `any %d %d; rm -rf "$e"; echo instead > "$e"`, `any %d %d; rm -rf "$e"; mkdir -p "$e/in"; echo in > "$e/in/side"`,
	`any %d %d; rm -rf "$e"; ln -s "$E" "$e"`, `any %d %d; rm -rf "$e"; mkfifo "$e"`, `file %d %d; sed -i 's/[0-9]$/&x/' "$f" "$F"`, `file %d %d; cp -a "$f" "$F".copy`,
	`file %d %d; mv -f "$f" "$F"`, `any %d %d; ln -sfn "$e" "$E"`, `dir %d %d; mkdir -p "$d"/$'\xfe\n'; echo odd > "$d"/$'\xfe\n'/$'x\n\xff'`,
	`file %d %d; mv "$f" tmpx; mv "$F" "$f"; mv tmpx "$F"`, `head -c 18000000 /dev/zero > big%d; rm -f big%d`, `dir %d %d; rm -rf "$d"/*; mkdir "$d/empty"`, `file %d %d; exchange "$f" "$F"`,
}

// repositoryDirMoves copy directories, and move them with mv, which copies them if it cannot rename them.
var repositoryDirMoves = []string{
	`any %d %d; mv -f "$e" "$E"`, `dir %d %d; mv "$d" "$D"`, `dir %d %d; mv -T "$d" "$d".moved`, `dir %d %d; mkdir new; mv "$d" new/; mv new "$d"`,
	`dir %d %d; for i in {1..40}; do echo $i > "$d/m$i"; done; rm -f "$d"/m1?; mv "$d"/m2? "$D"`, `dir %d %d; mv "$d" tmpd && mv "$D" "$d"; mv tmpd "$D"`,
	`dir %d %d; mv "$d" o && mkdir "$d" && cp -r o/. "$d"/ && rm -rf o`, `dir %d %d; cp -a "$d" copied; mv -T copied "$D/copied"`,
	`dir %d %d; tar cf t.tar "$d"; rm -rf "$d"; tar xf t.tar; rm t.tar`,
}

// repositoryInPlaceSteps change files, modes and times in place.
var repositoryInPlaceSteps = []string{
	`file %d %d; echo over > "$f"`, `file %d %d; echo more >> "$f"`, `file %d %d; cp "$f" "$F"`, `file %d %d; truncate -s 5M "$f"; echo end >> "$f"`, `file %d %d; truncate -s 0 "$f"`,
	`file %d %d; fallocate -p -o 4096 -l 200000 "$f"`, `file %d %d; printf abc | dd of="$f" bs=1 seek=5000 conv=notrunc status=none`, `file %d %d; chmod 751 "$f"; chmod 400 "$F"`,
	`dir %d %d; chmod 500 "$d"; chmod 711 "$D"`, `dir %d %d; chmod -R u+rwX,go-rwx "$d"`, `dir %d %d; chmod 3775 "$d"`, `file %d %d; touch -d @1000000000 "$f"`,
	`any %d %d; touch -h -d @1000000001.5 "$e"`, `dir %d %d; touch -d @4102444800 "$d"`, `dir %d %d; find "$d" -type f -exec touch {} +`,
	`file %d %d; exec 7>>"$f"; mv "$f" moved; echo late >&7; rm moved; echo later >&7; exec 7>&-`, `file %d %d; ln "$f" "$F".link; echo more >> "$F".link; rm "$F".link`,
}

// repositoryLinkSteps make hard links.
var repositoryLinkSteps = []string{
	`file %d %d; ln -f "$f" "$F"`, `dir %d %d; file %d 0; ln "$f" "$d/hard"`, `file %d %d; ln "$f" "$F".link`,
}

// repositoryRenameSteps rename directories with one system call and give up if that fails, or move the working directory.
var repositoryRenameSteps = []string{
	`any %d %d; exchange "$e" "$E"`, `dir %d %d; git worktree move wt0 "$d/wt"`, `dir %d %d; git mv "$d" moved%d`,
	`dir %d %d; (cd "$d" && mv ../"${d##*/}" ../renamed && echo below > below && rm -rf sub && mkdir sub)`,
}

// repositoryGitSteps run git. Small numbers let them meet.
var repositoryGitSteps = []string{
	`git add -A; git commit -qm more%d-%d`, `git commit -qam all%d-%d`, `git checkout -qf side`, `git checkout -qf main || git checkout -qf -`, `git checkout -q -b b%d-%d`, `git merge -q side`,
	`git merge --abort`, `git merge -q -X ours side`, `git rebase -q side`, `git rebase --abort`, `git add -A; git rebase --continue`, `git rebase -q -f HEAD~1`,
	`git rebase -q --autostash side`, `git cherry-pick side`, `git cherry-pick --abort`, `git revert --no-edit HEAD`, `git stash -q -u`, `git stash -q`, `git stash pop -q`,
	`git stash apply -q`, `git stash drop -q`, `git stash clear`, `git worktree add -q -f wt%d -b w%d`, `git worktree add -q --detach odd/tree%d`, `git worktree remove -f wt%d`,
	`git worktree prune`, `(cd wt0 && echo in > worktree && git add -A && git commit -qm in-worktree%d)`, `git gc -q --prune=now`, `git repack -qad`, `git pack-refs --all`, `git prune`,
	`git reflog expire --expire=now --all`, `git reset -q --hard`, `git reset -q --hard HEAD~1`, `git reset -q --soft HEAD~1`, `git clean -qfdx`, `git clean -qfd odd`, `git tag t%d-%d`,
	`git branch -qD side`, `git checkout -q --orphan o%d`, `file %d %d; git rm -qf "$f"`, `git commit -q --amend -m amended%d`,
	`git format-patch -q -1 --stdout > p.patch; git reset -q --hard HEAD~1; git am -q p.patch`, `git diff HEAD~1 > d.patch; git apply -R d.patch`, `git checkout -q HEAD~1 -- .`,
	`git restore -s HEAD~1 .`, `git sparse-checkout set src`, `git sparse-checkout disable`, `git init -q nested%d; git -C nested%d commit -q --allow-empty -m n`, `git clone -q --no-hardlinks . cloned`,
	`rm -rf cloned`, `git read-tree HEAD`, `git update-ref -d refs/tags/v1`, `git notes add -m note%d`, `git bisect start HEAD HEAD~1; git bisect reset`, `git switch -q --detach`,
}

// RepositorySteps selects the steps of random scripts for the tree of
// RepositoryTemplate.
type RepositorySteps struct {
	InPlace   bool // changes in place; with HardLinks, all names of a file change
	HardLinks bool // new hard links
	DirMoves  bool // directories that are moved with mv or copied
	Renames   bool // directories that are renamed, or exchanged, with one system call
}

// Script returns a script of one to six random steps. A step that is not possible in
// the current tree changes nothing. The output of the script are the errors of the steps.
func (s RepositorySteps) Script(r *rand.Rand) string {
	files := slices.Clone(repositoryFileSteps)
	for _, more := range []struct {
		use   bool
		steps []string
	}{{s.InPlace, repositoryInPlaceSteps}, {s.HardLinks, repositoryLinkSteps}, {s.DirMoves, repositoryDirMoves}, {s.Renames, repositoryRenameSteps}} {
		if more.use {
			files = append(files, more.steps...)
		}
	}
	lines := []string{GitSettings + strings.Replace(repositoryPrelude, "RENAMEAT2", renameat2Number(), 1) + `errors=$(mktemp); `}
	for range 1 + r.IntN(6) {
		steps, bound := files, 1000
		if r.IntN(3) == 0 {
			steps, bound = repositoryGitSteps, 3
		}
		step := steps[r.IntN(len(steps))]
		numbers := make([]any, strings.Count(step, "%d"))
		for i := range numbers {
			numbers[i] = r.IntN(bound)
		}
		lines = append(lines, "{ "+fmt.Sprintf(step, numbers...)+`; } >/dev/null 2>>"$errors"`)
	}
	lines = append(lines, `cat "$errors"; rm "$errors"`)
	return strings.Join(lines, "\n")
}
