package sandboxtest

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
)

// MovesTreeScript is a script that makes the tree for scripts of RandomMoves.
const MovesTreeScript = `mkdir -p d/s e; for f in a b d/x d/s/y; do echo "content of $f" > $f; done; ln b h; ln -s a l; touch -d @1700000000 a b d/x d/s/y d/s d e .`

// movesPrelude defines the functions that scripts of RandomMoves call. A call
// that fails changes nothing.
const movesPrelude = `perl - <<'END'
use File::Path;
$T = "$ENV{TMPDIR}/";
sub content { my ($path, $mode) = @_; open(my $file, $mode, $path) and print $file 'more'; }
sub exchange { my ($one, $other) = @_; syscall(SYS_renameat2, -100, $one, -100, $other, 2); }
sub move { system('mv', '-T', @_); }
`

// RandomMoves returns a script of 3 to 12 random calls that create, move, link,
// write and remove files and directories in the tree of MovesTreeScript. It uses
// few names, so that calls often meet the entries of earlier calls.
func RandomMoves(r *rand.Rand) string {
	dirs := []string{"", "d/", "d/s/", "e/", "q/", "q/r/", "q/d/"}
	path := func() string {
		if r.IntN(3) == 0 {
			return []string{"d", "d/s", "e", "q", "q/r", "q/d", "q2"}[r.IntN(7)]
		}
		return dirs[r.IntN(len(dirs))] + []string{"a", "b", "x", "y", "l"}[r.IntN(5)]
	}
	call := func(function string, paths ...string) string {
		return fmt.Sprintf("%s('%s');", function, strings.Join(paths, "', '"))
	}
	outside := func() string { return fmt.Sprintf("$T . '%d'", r.IntN(2)) }
	steps := []func() string{
		func() string { return call("mkdir", []string{"q", "q/r", "d", "e", "q2"}[r.IntN(5)]) },
		func() string { return call("mkdir", "q") + " " + call("rename", path(), "q/a") },
		func() string { return call("rename", path(), path()) },
		func() string { return call("rename", path(), path()) },
		func() string { return call("rename", path(), path()) },
		func() string { return call("exchange", path(), path()) },
		func() string { return call("link", path(), path()) },
		func() string { return call("symlink", "a", path()) },
		func() string { return call("unlink", path()) },
		func() string { return call("rmdir", path()) },
		func() string { return call("rmtree", path()) },
		func() string { return call("content", path(), ">") },
		func() string { return call("content", path(), ">>") },
		func() string { return fmt.Sprintf("truncate('%s', 1);", path()) },
		func() string { return fmt.Sprintf("chmod(0%o, '%s');", 0o700|r.IntN(0o100), path()) },
		func() string { return fmt.Sprintf("rename('%s', %s);", path(), outside()) },
		func() string { return fmt.Sprintf("rename(%s, '%s');", outside(), path()) },
		func() string { return fmt.Sprintf("link('%s', %s);", path(), outside()) },
		func() string { return fmt.Sprintf("move('%s', %s);", path(), outside()) },
		func() string { return fmt.Sprintf("content(%s, '>>');", outside()) },
	}
	lines := []string{strings.Replace(movesPrelude, "SYS_renameat2", renameat2Number(), 1)}
	for range 3 + r.IntN(10) {
		lines = append(lines, steps[r.IntN(len(steps))]())
	}
	return strings.Join(append(lines, "END"), "\n")
}

// renameat2Number returns the number of the system call renameat2.
func renameat2Number() string {
	if runtime.GOARCH == "arm64" {
		return "276"
	}
	return "316"
}
