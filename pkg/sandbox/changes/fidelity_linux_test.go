package changes_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/changes"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
)

// scripts holds commands by name, for the tree that prepare makes. Each must
// leave the same tree when it runs in the root as when its changes are
// applied.
var scripts = map[string]string{
	"link made":                   `ln a new`,
	"link made, other order":      `ln d/x 0; ln d/x d/z`,
	"link over its content":       `ln -f attributes d/attributes; ln attributes new`,
	"link over a hard link":       `ln -f a h2; ln -f d/attributes attributes; chmod 640 attributes`,
	"link to one of several":      `ln h1 h3; ln h2 d/h4`,
	"link, then write":            `ln a new; echo more >> new`,
	"link of a new file":          `echo n > n1; ln n1 n2; ln n1 d/n3`,
	"link broken":                 `rm h1; echo other > h1`,
	"link removed":                `rm h1`,
	"mode of one of several":      `chmod 600 h1`,
	"time of one of several":      `touch -d @1600000000 h2`,
	"mode of a directory only":    `chmod 700 d`,
	"mode of the root only":       `chmod 711 .`,
	"mode of the root":            `chmod 711 .; echo n > n`,
	"time of a file only":         `touch -d @1600000000 a`,
	"exchange":                    exchange + `exchange a d/x`,
	"exchange of directories":     `mkdir n1 n2; echo 1 > n1/f; ` + exchange + `exchange n1 n2`,
	"exchange with a link":        exchange + `exchange a link`,
	"fifo":                        `mkfifo -m 640 d/fifo; rm fifo; mkfifo -m 600 fifo`,
	"fifo and file":               `rm a fifo; mkfifo a; echo f > fifo`,
	"sparse":                      `truncate -s 30M sparse; echo x | dd of=sparse bs=1 seek=1M conv=notrunc status=none; echo more >> holes`,
	"attributes":                  `echo more >> attributes; chmod 600 d/attributes`,
	"made again":                  `rm attributes; echo at > attributes; rm -r d/sub; mkdir d/sub; cp attributes new; mv new d/attributes`,
	"made again, with modes":      `rm attributes; echo at > attributes; chmod 400 attributes; rm -r d/sub; mkdir -m 500 d/sub`,
	"another file of its content": `mv d/attributes a; rm attributes; echo at > attributes; mv attributes d/attributes`,
	"replaced by a directory":     `rm a; mkdir a; echo x > a/x; rm -r d; echo d > d`,
	"names that need no quoting":  `echo n > 'd/new line'; mv link $'d/\n'; mkdir -p ...; echo x > .../..x`,
}

// exchange swaps two files with RENAME_EXCHANGE.
const exchange = `exchange() { python3 -c 'import ctypes,sys; l=ctypes.CDLL(None,use_errno=True); r=l.renameat2(-100,sys.argv[1].encode(),-100,sys.argv[2].encode(),2); sys.exit(r and "exchange: "+str(ctypes.get_errno()))' "$@"; }; `

// requirePython skips the test if this machine has no Python.
func requirePython(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
}

func prepare(t *testing.T, b *bench) {
	b.RemoveFiles()
	b.RunOutside(`echo a > a; mkdir -p d/sub; echo x > d/x; echo h > h1; ln h1 h2; ln -s a link; mkfifo fifo; truncate -s 20M holes; echo at > attributes; echo at > d/attributes; touch -d @1700000000 a d/x h1 link fifo holes attributes d/attributes d .`)
	for _, name := range []string{"attributes", "d/attributes", "d/sub"} {
		if err := unix.Setxattr(filepath.Join(b.Root, name), "user.test", []byte("value"), 0); err != nil {
			t.Logf("no attributes of users here: %v", err)
		}
	}
}

// ownTime matches the time of an entry that a command changed.
var ownTime = regexp.MustCompile(` 1(7[1-9]|[89]\d)\d{7}\.\d{9}`)

// keptAndLayered are benches on which the same commands run: kept without layers, and the
// others with layers on the root's file system and on another one, if there is one.
type keptAndLayered struct {
	kept    *bench
	layered []*bench
}

func newKeptAndLayered(t *testing.T) keptAndLayered {
	c := keptAndLayered{newBench(t), []*bench{newBench(t)}}
	if memory := benchWithStore(t, otherFileSystem(t)); memory != nil {
		c.layered = append(c.layered, memory)
	}
	return c
}

// requireAppliedIsAsKept runs the scripts, one command each, on all benches. The commands print
// the same, the root does not change before their changes are applied, and is then the same.
func (c keptAndLayered) requireAppliedIsAsKept(t *testing.T, scripts ...string) {
	t.Helper()
	if strings.Contains(strings.Join(scripts, ""), "python3") {
		requirePython(t)
	}
	prepare(t, c.kept)
	var said []string
	for _, script := range scripts {
		said = append(said, c.kept.run(nil, script))
	}
	want := ownTime.ReplaceAllString(sandboxtest.DescribeTree(t, c.kept.Root), " now")
	for _, b := range c.layered {
		prepare(t, b)
		before := sandboxtest.DescribeTree(t, b.Root)
		set, err := b.store.Create([]string{b.Root})
		require.NoError(t, err)
		for i, script := range scripts {
			require.Equal(t, said[i], b.run(set, script))
		}
		require.Equal(t, before, sandboxtest.DescribeTree(t, b.Root))
		report, err := set.Apply(nil, nil)
		require.NoError(t, err)
		require.Zero(t, report.Remaining)
		require.NotEmpty(t, report.Applied)
		require.Equal(t, want, ownTime.ReplaceAllString(sandboxtest.DescribeTree(t, b.Root), " now"))
		for _, sparse := range []string{"sparse", "holes"} {
			if info, err := os.Stat(filepath.Join(b.Root, sparse)); err == nil {
				require.Less(t, info.Sys().(*syscall.Stat_t).Blocks*512, int64(4<<20), sparse)
			}
		}
	}
}

func TestAppliedIsAsKept(t *testing.T) {
	benches := newKeptAndLayered(t)
	for name, script := range scripts {
		t.Run(name, func(t *testing.T) {
			sandboxtest.SkipUnsampled(t)
			benches.requireAppliedIsAsKept(t, script)
		})
	}
}

// Overlayfs copies a file that is written or moved. The other hard links stay
// linked to each other and keep the content.
func TestOneOfSeveralNamesIsWritten(t *testing.T) {
	b := newBench(t)
	prepare(t, b)
	set, err := b.store.Create([]string{b.Root})
	require.NoError(t, err)
	require.Equal(t, "h\n", b.run(set, `echo more >> h1; cat h2; rm d/x; ln h2 d/x; mv d/x moved`))
	list, err := set.Changes()
	require.NoError(t, err)
	require.Equal(t, "deleted d/x, modified h1, created moved", summary(list))
	for _, c := range list {
		if c.Path == "h1" {
			require.Equal(t, 1, c.OtherHardLinks())
		}
	}
	_, err = set.Apply(nil, nil)
	require.NoError(t, err)
	require.Equal(t, "h\nmore\nh\n", b.run(nil, `cat h1 h2`))
}

// A file with other hard links is listed as such, whatever a command has done to it: with
// equal content, nobody can tell a new time from another file.
func TestLinkedFilesAreListed(t *testing.T) {
	for script, want := range map[string]string{
		`touch -d @1600000000 h1`: "touched h1 true",
		`cp -p h1 n; mv n h1`:     "touched h1 true",
		`chmod 600 h1`:            "modified h1 true",
		`echo more >> h1`:         "modified h1 true",
		`rm h1`:                   "deleted h1 true",
		`touch -d @1600000000 a; echo x >> d/x; rm link`: "touched a false, modified d/x false, deleted link false",
	} {
		b := newBench(t)
		prepare(t, b)
		set, err := b.store.Create([]string{b.Root})
		require.NoError(t, err)
		b.run(set, script)
		list, err := set.Changes()
		require.NoError(t, err)
		var said []string
		for _, c := range list {
			if !c.Dir {
				said = append(said, fmt.Sprint(c.Kind, " ", c.Path, " ", c.Linked))
				require.Equal(t, c.Linked, c.OtherHardLinks() == 1)
			}
		}
		require.Equal(t, want, strings.Join(said, ", "))
	}
}

// A socket is not applied: the program that listened on it has ended.
func TestSockets(t *testing.T) {
	requirePython(t)
	b := newBench(t)
	prepare(t, b)
	set, err := b.store.Create([]string{b.Root})
	require.NoError(t, err)
	b.run(set, `python3 -c 'import os,socket; os.remove("a"); [socket.socket(socket.AF_UNIX).bind(n) for n in ("a","new")]'`)
	list, err := set.Changes()
	require.NoError(t, err)
	require.Equal(t, "deleted a", summary(list))
	report, err := set.Apply(nil, nil)
	require.NoError(t, err)
	require.Zero(t, report.Remaining)
	require.NoFileExists(t, filepath.Join(b.Root, "a"))
	require.NoFileExists(t, filepath.Join(b.Root, "new"))
}

// benchWithStore returns a bench that stores changes in dir, on another file
// system, so that they cannot be renamed into the root. It returns nil if
// overlayfs cannot use dir.
func benchWithStore(t *testing.T, dir string) *bench {
	if dir == "" {
		return nil
	}
	c := proc.Config{Level: proc.L2, Hidden: []string{dir}}
	b := &bench{CommandRoot: sandboxtest.NewCommandRoot(t, sandboxtest.MakeDir(t), c), store: changes.New(dir), dir: dir}
	set, err := b.store.Create([]string{b.Root})
	require.NoError(t, err)
	if said := b.run(set, "echo ran"); !strings.Contains(said, "ran") {
		t.Logf("overlayfs does not take %s: %s", dir, said)
		return nil
	}
	require.NoError(t, set.Discard())
	return b
}

// otherFileSystem makes a directory on a tmpfs. It returns "" on an error.
func otherFileSystem(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "changes-test-")
	if err != nil {
		t.Log(err)
		return ""
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// Applying removes no attribute that somebody else set after the command, and removes
// those of an entry that the command made again, even if that cannot be read.
func TestAttributesOfOthersStay(t *testing.T) {
	b := newBench(t)
	b.RunOutside(`mkdir -p d/again; echo m > m; echo r > r`)
	set := func(value string, names ...string) {
		for _, name := range names {
			if err := unix.Setxattr(filepath.Join(b.Root, name), "user."+value, []byte(value), 0); err != nil {
				t.Skipf("no attributes of users here: %v", err)
			}
		}
	}
	set("old", "d", "d/again", "m", "r")
	changed, err := b.store.Create([]string{b.Root})
	require.NoError(t, err)
	b.run(changed, `echo y > d/y; chmod 600 m; rm -r d/again r; mkdir -m 300 d/again; echo r > r; chmod 200 r`)
	set("theirs", "d", "m", "d/again", "r")
	_, err = changed.Apply(nil, nil)
	require.NoError(t, err)
	for name, want := range map[string]string{
		"d": "user.old user.theirs", "m": "user.old user.theirs", "d/again": "user.theirs", "r": "user.theirs",
	} {
		list := make([]byte, 4096)
		n, err := unix.Listxattr(filepath.Join(b.Root, name), list)
		require.NoError(t, err)
		var found []string
		for _, attribute := range strings.Split(string(list[:n]), "\x00") {
			if strings.HasPrefix(attribute, "user.") {
				found = append(found, attribute)
			}
		}
		slices.Sort(found)
		require.Equal(t, want, strings.Join(found, " "), name)
	}
}
