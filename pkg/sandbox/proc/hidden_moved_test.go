//go:build linux

package proc_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
)

// TestWhatIsHiddenStaysHidden: no command can move a hidden file beyond the
// bounds of the search so that the next command can read it.
func TestWhatIsHiddenStaysHidden(t *testing.T) {
	t.Parallel()
	if !contains(levels(t), proc.L2) {
		t.Skip("L2 is not available")
	}
	dir := filesIn(t, t.TempDir(), "sub/deep/hidden", "sub/f", "free/hidden.txt")
	r := trusted(t, proc.L2)
	do := func(script string) string {
		_, out := run(t, r, proc.Command{Script: "exec 2>&1; " + script, Dir: dir, Rules: roots{{Path: dir}}})
		return out
	}
	require.NotContains(t, do("cat sub/deep/hidden"), "old")
	for _, place := range []string{"node_modules", "a/.git/objects", "a/node_modules/b/node_modules", "caf\xe9"} {
		out := do("mkdir -p $'" + place + "' && mv sub $'" + place + "'/ && echo moved")
		require.Contains(t, out, "moved", place)
		require.NotContains(t, do("cat $'"+place+"'/sub/deep/hidden"), "old", place)
		require.NotContains(t, do("mv $'"+place+"'/sub/deep $'"+place+"'/other; cat $'"+place+"'/other/hidden"), "old", place)
		require.NotContains(t, do("cat $'"+place+"'/other/hidden"), "old", place)
		require.Contains(t, do("mv $'"+place+"'/other $'"+place+"'/sub/deep && mv $'"+place+"'/sub . && cat sub/f && echo back"), "old\nback", place)
		require.NotContains(t, do("cat sub/deep/hidden"), "old", place)
	}
	// The user may rename and delete the file.
	require.NoError(t, os.Rename(filepath.Join(dir, "sub/deep/hidden"), filepath.Join(dir, "sub/deep/shown")))
	require.Contains(t, do("cat sub/deep/shown"), "old")
	require.NoError(t, os.Remove(filepath.Join(dir, "sub/deep/shown")))
	require.Contains(t, do("rm -r sub && echo gone"), "gone")
}

// TestHardLinksStayHidden: no command can move another hard link of a hidden file into a
// directory that is not searched so that the next command can read it, even of another
// server.
func TestHardLinksStayHidden(t *testing.T) {
	t.Parallel()
	if !contains(levels(t), proc.L2) {
		t.Skip("L2 is not available")
	}
	for _, place := range []string{"node_modules", "a/.git/objects", "a/node_modules/b/node_modules"} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			dir := filesIn(t, t.TempDir(), "keys/hidden", "sub/deep/f")
			require.NoError(t, os.Link(filepath.Join(dir, "keys/hidden"), filepath.Join(dir, "sub/deep/other.txt")))
			var servers []*proc.Runner
			for range 2 {
				servers = append(servers, trusted(t, proc.L2))
			}
			do := func(server int, script string) string {
				_, out := run(t, servers[server], proc.Command{Script: "exec 2>&1; " + script, Dir: dir, Rules: roots{{Path: dir}}})
				return out
			}
			require.NotContains(t, do(0, "cat sub/deep/other.txt keys/hidden"), "old")
			require.Contains(t, do(0, "mkdir -p '"+place+"' && mv sub '"+place+"'/ && cat '"+place+"'/sub/deep/f"), "old")
			for server := range servers {
				require.NotContains(t, do(server, "cat '"+place+"'/sub/deep/other.txt"), "old")
			}
			require.Contains(t, do(0, "mv '"+place+"'/sub/deep '"+place+"'/sub/next && cat '"+place+"'/sub/next/f"), "old")
			for server := range servers {
				require.NotContains(t, do(server, "cat '"+place+"'/sub/next/other.txt"), "old")
			}
		})
	}
}

// TestAHardLinkThatIsMovedAllTheTime: while a command moves directories above the names of
// a hidden file with several hard links, other commands read it under none of them.
func TestAHardLinkThatIsMovedAllTheTime(t *testing.T) {
	t.Parallel()
	if !contains(levels(t), proc.L2) {
		t.Skip("L2 is not available")
	}
	for name, move := range map[string]string{
		"the other link":     "mv sub sub2; mv sub2 sub",
		"into a package":     "mv sub node_modules/sub; mv node_modules/sub sub",
		"the hidden name":    "mv keys keys2; mv keys2 keys",
		"both":               "mv sub node_modules/sub; mv keys node_modules/keys; mv node_modules/sub sub; mv node_modules/keys keys",
		"a directory within": "mv sub/deep sub/next; mv sub/next sub/deep",
	} {
		t.Run(name, func(t *testing.T) {
			sandboxtest.SkipUnsampled(t)
			t.Parallel()
			dir := filesIn(t, t.TempDir(), "keys/hidden", "sub/deep/f", "node_modules/f")
			require.NoError(t, os.Link(filepath.Join(dir, "keys/hidden"), filepath.Join(dir, "sub/deep/other.txt")))
			reader := trusted(t, proc.L2) // it must have found the file before, since node_modules is not searched
			run(t, reader, proc.Command{Script: "true", Dir: dir, Rules: roots{{Path: dir}}})
			p, err := trusted(t, proc.L2).Start(t.Context(), proc.Command{Script: "while :; do " + move + "; done 2>/dev/null", Dir: dir, Rules: roots{{Path: dir}}})
			require.NoError(t, err)
			defer func() {
				p.Stop()
				p.Wait()
			}()
			read, refused := 0, 0
			for range moveCommands() {
				_, out, err := reader.Run(t.Context(), proc.Command{
					Script: "for i in {1..20}; do cat {.,node_modules}/{keys,keys2}/hidden {.,node_modules}/{sub,sub2}/{deep,next}/other.txt; done 2>/dev/null",
					Dir:    dir, Rules: roots{{Path: dir}},
				})
				if err != nil {
					require.ErrorContains(t, err, "try again")
					refused++
					continue
				}
				if strings.Contains(out.Excerpt(0).Text(), "old") {
					read++
				}
				out.Close()
			}
			t.Logf("%d commands, %d read the file, %d refused", moveCommands(), read, refused)
			require.Zero(t, read)
			require.Less(t, refused, moveCommands()/2)
		})
	}
}
