package changes_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Another program changes a file after Apply has looked for conflicts, and before it
// applies that file: Apply stops and keeps the other program's version.
func TestFileIsChangedDuringAnApply(t *testing.T) {
	for name, script := range map[string]string{
		"modified": `echo ours > d/x`,
		"deleted":  `rm d/x`,
		"created":  `echo ours > d/new`,
		"link":     `ln -sf ours d/x`,
		"replaced": `rm d/x; mkdir d/x; echo ours > d/x/y`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.RunOutside(`mkdir d; echo a > a; echo x > d/x; echo y > d/y`)
			set, err := b.store.Create([]string{b.Root})
			require.NoError(t, err)
			b.run(set, "echo more >> a; "+script)
			file := filepath.Join(b.Root, "d/x")
			if name == "created" {
				file = filepath.Join(b.Root, "d/new")
			}
			changed := false
			report, err := set.Apply(nil, func(string) string {
				if !changed { // after the check for conflicts
					changed = true
					require.NoError(t, os.WriteFile(file, []byte("theirs, and longer\n"), 0o644))
				}
				return ""
			})
			require.True(t, changed)
			require.Equal(t, toolerr.Conflict, toolerr.CodeOf(err), "%v", err)
			require.Contains(t, err.Error(), file)
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, "theirs, and longer\n", string(text))
			require.Equal(t, "modified a", summary(report.Applied))
			require.Equal(t, "a\nmore\n", b.run(nil, "cat a"))

			_, err = set.Apply(nil, nil)
			require.Equal(t, toolerr.Conflict, toolerr.CodeOf(err), "the next call finds it, too: %v", err)
			require.NoError(t, set.Discard())
		})
	}
}

// The same with a file that another program creates in a directory that is deleted.
func TestFileIsCreatedInADeletedDirectory(t *testing.T) {
	b := newBench(t)
	b.RunOutside(`mkdir -p d/sub; echo x > d/sub/x`)
	set, err := b.store.Create([]string{b.Root})
	require.NoError(t, err)
	b.run(set, "rm -r d")
	file := filepath.Join(b.Root, "d/sub/new")
	_, err = set.Apply(nil, func(string) string {
		require.NoError(t, os.WriteFile(file, []byte("theirs"), 0o644))
		return ""
	})
	require.Equal(t, toolerr.Conflict, toolerr.CodeOf(err), "%v", err)
	require.FileExists(t, file)
}

// The same with a directory that is deleted or replaced by a file, and with a file with
// several hard links: Apply keeps the other program's version.
func TestDirectoryOrLinkIsChangedDuringAnApply(t *testing.T) {
	for name, c := range map[string]struct{ script, theirs, path string }{
		"a known file is written":               {`rm -r d`, `echo theirs > d/sub/x`, "d/sub/x"},
		"a known file is replaced":              {`rm -r d`, `echo theirs > new; mv new d/sub/x`, "d/sub/x"},
		"a file is added, then replaced":        {`rm -r d; echo ours > d`, `echo theirs > d/sub/new`, "d/sub/new"},
		"a known file is written, replaced":     {`rm -r d; echo ours > d`, `echo theirs > d/sub/x`, "d/sub/x"},
		"a file instead of a directory":         {`rm -r d`, `rm -r d; echo theirs > d`, "d"},
		"a file instead of a replaced one":      {`rm -r d; echo ours > d`, `rm -r d; echo theirs > d`, "d"},
		"a file instead of a subdirectory":      {`rm -r d`, `rm -r d/sub; echo theirs > d/sub`, "d/sub"},
		"a file with several links":             {`echo ours > h1; echo ours > h2`, `echo theirs > h2`, "h2"},
		"a file with several links, replaced":   {`echo ours > h1; echo ours > h2`, `echo theirs > new; mv new h2`, "h2"},
		"one of several in a removed directory": {`rm -r d`, `echo theirs > h1`, "d/sub/h3"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.RunOutside(`mkdir -p d/sub; echo a > a; echo x > d/sub/x; echo h > h1; ln h1 h2; ln h1 d/sub/h3; touch -d @1700000000 a d/sub/x h1 d`)
			set, err := b.store.Create([]string{b.Root})
			require.NoError(t, err)
			b.run(set, "echo more >> a; "+c.script)
			changed := false
			_, err = set.Apply(nil, func(string) string {
				if !changed {
					changed = true
					b.RunOutside(c.theirs)
				}
				return ""
			})
			require.Equal(t, toolerr.Conflict, toolerr.CodeOf(err), "%v", err)
			text, err := os.ReadFile(filepath.Join(b.Root, c.path))
			require.NoError(t, err)
			require.Equal(t, "theirs\n", string(text))
		})
	}
}

// What Apply itself does to a file is no change by another program for the file's other
// hard links.
func TestApplyingAHardLinkIsNoConflict(t *testing.T) {
	for _, script := range []string{
		`chmod 600 a; rm -r d`,
		`touch -d @1600000000 a; rm -r d`,
		`echo more >> a; rm -r d`,
		`chmod 600 a; rm -r d; echo d > d`,
		`chmod 600 a; echo ours > b`,
		`rm a; ln b a; rm -r d`,
	} {
		b := newBench(t)
		b.RunOutside(`mkdir d; echo x > a; ln a b; ln a d/x; touch -d @1700000000 a d`)
		set, err := b.store.Create([]string{b.Root})
		require.NoError(t, err)
		b.run(set, script)
		report, err := set.Apply(nil, nil)
		require.NoError(t, err, script)
		require.Zero(t, report.Remaining, script)
	}
}

// When Apply stops, the directories of the applied changes are complete, and those of
// the other changes are as they were. So nothing is missing after Discard.
func TestDirectoriesAreCompleteAfterAStop(t *testing.T) {
	b := newBench(t)
	b.RunOutside(`mkdir -m 755 d zzz; echo x > d/x; echo z > z; echo z > zzz/z; touch -d @1500000000 zzz`)
	set, err := b.store.Create([]string{b.Root})
	require.NoError(t, err)
	b.run(set, `mkdir -p a/sub; echo a > a/sub/f; chmod 750 a; chmod 555 d; touch -d @1000000000 a/sub a d; echo ours > z; echo ours > zzz/z; chmod 700 zzz`)
	isChanged := false
	report, err := set.Apply(nil, func(string) string {
		if !isChanged {
			isChanged = true
			b.RunOutside(`echo theirs > z`)
		}
		return ""
	})
	require.Equal(t, toolerr.Conflict, toolerr.CodeOf(err), "%v", err)
	require.Equal(t, "created a/sub/f, modified d", summary(report.Applied))
	describe := `stat -c '%n %a %Y' a a/sub d zzz`
	want := "a 750 1000000000\na/sub 755 1000000000\nd 555 1000000000\nzzz 755 1500000000\n"
	require.Equal(t, want, b.run(nil, describe))

	b.RunOutside(`chmod 711 d; touch -d @1600000000 d`) // of the user, after the stop
	_, err = set.Apply([]string{"zzz"}, nil)
	require.NoError(t, err)
	require.Regexp(t, "^"+strings.NewReplacer("d 555 1000000000", "d 711 1600000000", "zzz 755 1500000000", `zzz 700 \d+`).Replace(want)+"$", b.run(nil, describe))
	require.NoError(t, set.Discard())
	require.Regexp(t, "^"+strings.NewReplacer("d 555 1000000000", "d 711 1600000000", "zzz 755 1500000000", `zzz 700 \d+`).Replace(want)+"$", b.run(nil, describe))
}
