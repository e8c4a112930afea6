package changes_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Another program changes mode, time or attributes of an entry after the command: Apply
// keeps them, or reports a conflict if the command has changed the same ones, or replaced
// or removed the file.
func TestMetadataOfOthersStay(t *testing.T) {
	const theirTime = "1500000000.000000000"
	for name, c := range map[string]struct{ script, theirs, want string }{ // want: in the description of d or f; "": a conflict
		"mode of a directory":           {`echo ours > d/x`, `chmod 711 d`, "d drwx--x--x"},
		"mode of both":                  {`echo ours > d/x; chmod 750 d`, `chmod 711 d`, ""},
		"the same mode of both":         {`echo ours > d/x; chmod 750 d`, `chmod 750 d`, "d drwxr-x---"},
		"mode of a file":                {`echo ours > f`, `chmod 711 f`, ""},
		"mode of the root":              {`echo ours > new`, `chmod 711 .`, ". drwx--x--x"},
		"mode of the root by both":      {`chmod 750 .`, `chmod 711 .`, ""},
		"mode of a new directory":       {`mkdir n; echo ours > n/x`, `mkdir n; chmod 711 n`, "n drwx--x--x"},
		"time of a directory":           {`chmod 750 d`, `touch -d @1500000000 d`, theirTime},
		"time of a file":                {`chmod 600 f`, `touch -d @1500000000 f`, theirTime},
		"time of a file by both":        {`touch -d @1400000000 f`, `touch -d @1500000000 f`, ""},
		"attribute of a directory":      {`echo ours > d/x`, `set d`, `user.of="theirs"`},
		"attribute of a removed one":    {`rm -r d`, `set d`, ""},
		"attribute in a removed one":    {`rm -r d`, `set d/sub`, ""},
		"attribute of a file":           {`chmod 600 f`, `set f`, `user.of="theirs"`},
		"attribute of a replaced file":  {`echo ours > f`, `set f`, ""},
		"attribute of a removed file":   {`rm f`, `set f`, ""},
		"attribute of one made again":   {`rm f; echo f > f; touch -d @1700000000 f`, `set f`, ""},
		"attribute of a copied content": {`rm f; echo f > f; chmod 644 f; touch -d @1700000000 f`, `unset f`, "f -rw-r--r--"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.RunOutside(`mkdir -p d/sub; echo x > d/x; echo f > f; touch -d @1700000000 d/x d f .`)
			attribute := func(name, value string) {
				if err := unix.Setxattr(filepath.Join(b.Root, name), "user.of", []byte(value), 0); err != nil {
					t.Skipf("no attributes of users here: %v", err)
				}
			}
			attribute("d", "before")
			attribute("f", "before")
			set, err := b.store.Create([]string{b.Root})
			require.NoError(t, err)
			b.run(set, c.script)
			switch verb, entry, _ := strings.Cut(c.theirs, " "); verb {
			case "set":
				attribute(entry, "theirs")
			case "unset":
				require.NoError(t, unix.Removexattr(filepath.Join(b.Root, entry), "user.of"))
			default:
				b.RunOutside(c.theirs)
			}
			before := sandboxtest.DescribeTree(t, b.Root)
			report, err := set.Apply(nil, nil)
			if c.want == "" {
				require.Equal(t, toolerr.Conflict, toolerr.CodeOf(err), "%v", err)
				require.Len(t, report.Refused, 1)
				require.Equal(t, before, sandboxtest.DescribeTree(t, b.Root))
				require.NoError(t, set.Discard())
				return
			}
			require.NoError(t, err, "%v", report.Refused)
			require.Zero(t, report.Remaining)
			require.Contains(t, sandboxtest.DescribeTree(t, b.Root), c.want)
		})
	}
}

// A directory that another program makes in a removed directory, after Apply has
// examined it, stays, also if it is empty.
func TestDirectoryIsCreatedInARemovedOne(t *testing.T) {
	b := newBench(t)
	b.RunOutside(`mkdir -p d/sub; echo x > d/sub/x`)
	set, err := b.store.Create([]string{b.Root})
	require.NoError(t, err)
	b.run(set, "rm -r d")
	_, err = set.Apply(nil, func(string) string {
		require.NoError(t, os.MkdirAll(filepath.Join(b.Root, "d/theirs"), 0o755))
		return ""
	})
	require.Equal(t, toolerr.Conflict, toolerr.CodeOf(err), "%v", err)
	require.DirExists(t, filepath.Join(b.Root, "d/theirs"))
}
