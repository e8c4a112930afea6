//go:build linux

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// A home directory in /tmp, which is private for commands at L2, can be read
// like any other, wherever the root is; secrets in it cannot.
func TestHomeBelowTmp(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	usable, missing := levels(t)
	if len(usable) == 0 || usable[0] != "L2" {
		t.Skipf("not run: levels %v are missing", missing)
	}
	for _, base := range []string{"/tmp", "/var/tmp"} {
		p := placeBelow(t, base)
		p.write("home/.gitconfig", "[user]\n\tname = Some Body\n")
		p.write("home/.ssh/id_rsa", "CREDENTIAL\n")
		p.write("home/.netrc", "CREDENTIAL\n")
		p.write("home/work/id_rsa", "CREDENTIAL\n")
		places := []string{p.root}
		if base == "/tmp" {
			places = []string{filepath.Join(p.home, "work"), mcpkittest.OuterDir(t)}
		}
		for _, root := range places {
			p.root = root
			s := p.serve("--sandbox", "L2")
			require.Contains(t, s.bash("if command -v git > /dev/null; then git config user.name; else cat ~/.gitconfig; fi").Text, "Some Body\n")
			require.NotContains(t, s.bash("cat ~/.ssh/id_rsa ~/.netrc ~/work/id_rsa; cp -r ~ h; cat h/.netrc; rm -rf h").Text, "CREDENTIAL")
			require.Contains(t, s.bash(`echo x > ~/new; mv ~/.gitconfig ~/moved; echo x > made && cat made && echo y > "$TMPDIR/y" && cat "$TMPDIR/y"`).Text, "x\ny\nexit 0")
			require.NoFileExists(t, filepath.Join(p.home, "new"))
			require.FileExists(t, filepath.Join(p.home, ".gitconfig"))
			require.FileExists(t, filepath.Join(root, "made"))
		}
	}
}

// Downloads go where commands may write, even if only some hosts can be
// reached.
func TestModuleCaches(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	const ask = `echo "$GOMODCACHE:$CARGO_HOME"; [ -n "$GOMODCACHE" ] && touch "$GOMODCACHE/x" "$CARGO_HOME/x" && echo written`
	r := p.serve("--net", "allow=example.com").bash(ask)
	if r.Code == "SANDBOX_UNAVAILABLE" {
		t.Skip("not run: there is no L2")
	}
	require.Contains(t, r.Text, "written\nexit 0", r.Text)
	require.Contains(t, r.Text, p.kept)
	require.NotContains(t, p.serve().bash(ask).Text, p.kept, "the user's are read")
	_, err := os.Stat(filepath.Join(p.home, "go"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
