//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// others runs a test as this user and, if that is root, as nobody.
func others(t *testing.T, run func(t *testing.T, p *place, bin string)) {
	t.Helper()
	t.Run("this user", func(t *testing.T) { run(t, newOuterPlace(t), mcpkittest.Build(t, "./tools/bash")) })
	if os.Geteuid() != 0 {
		return
	}
	t.Run("nobody", func(t *testing.T) {
		if _, err := exec.LookPath("setpriv"); err != nil {
			t.Skip("not run: there is no setpriv")
		}
		p := placeBelow(t, "/var/cache")
		run(t, p, asNobody(p))
	})
}

// at runs a test with the flags of each level that this machine enforces.
func at(t *testing.T, run func(t *testing.T, level string)) {
	t.Helper()
	usable, _ := levels(t)
	for _, level := range usable {
		if level != "off" {
			t.Run(level, func(t *testing.T) { run(t, level) })
		}
	}
}

// TestOtherCommandsPrologue: a command whose root contains $TMPDIR can neither
// change the prologue of another server's shells nor reach their temporary
// directories (F12).
func TestOtherCommandsPrologue(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	at(t, func(t *testing.T, level string) {
		others(t, func(t *testing.T, p *place, bin string) {
			temp := filepath.Join(p.root, "temp")
			require.NoError(t, os.Mkdir(temp, 0o777))
			require.NoError(t, os.Chmod(temp, 0o777))
			other := filepath.Join(p.dir, "other")
			require.NoError(t, os.Mkdir(other, 0o777))
			require.NoError(t, os.Chmod(other, 0o777))
			p.env = append(p.env, "TMPDIR="+temp)
			attacker := p.serveBin(bin, mcpkittest.Options{}, "--sandbox", level)
			victim := server{t, mcpkittest.StartWith(t, bin, mcpkittest.Options{
				Args: []string{"--root", other, "--state", p.kept, "--sandbox", level}, Dir: other, Env: p.env,
			})}
			secret := "touch " + filepath.Join(other, "planted")
			job := attacker.bash(fmt.Sprintf(`echo up; while :; do for f in %s/toolroom-run-*/*/.toolroom-* %s/tmp-*/*/*/.toolroom-*; do
[ -f "$f" ] && echo '%s' >> "$f" && echo wrote "$f"; done; done 2>/dev/null`, temp, p.kept, secret), "run_in_background", true)
			require.False(t, job.IsError, job.Text)
			for range 20 {
				r := victim.bash("echo x > $TMPDIR/mine; sleep 0.02; cat $TMPDIR/mine")
				require.Equal(t, "x\n", printed(r), r.Text)
			}
			require.NoFileExists(t, filepath.Join(other, "planted"))
			out := attacker.job("job_id", text(t, job, "job_id"), "kill", true).Text
			require.NotContains(t, out, "wrote")
			// It sees none of their files either.
			waiting := victim.bash("echo hidden > $TMPDIR/mine; echo $TMPDIR; sleep 20", "run_in_background", true)
			require.False(t, waiting.IsError, waiting.Text)
			r := attacker.bash(fmt.Sprintf("grep -rs hidden %s/toolroom-run-* %s; echo end", temp, p.kept))
			require.Equal(t, "end\n", printed(r), r.Text)
		})
	})
}

// TestOutputsOfOtherProjects: commands cannot read outputs of other projects,
// and none are shown; they can read those of the same project (F16).
func TestOutputsOfOtherProjects(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	at(t, func(t *testing.T, level string) {
		others(t, func(t *testing.T, p *place, bin string) {
			other := filepath.Join(p.dir, "other")
			require.NoError(t, os.Mkdir(other, 0o777))
			first := p.serveBin(bin, mcpkittest.Options{}, "--sandbox", level)
			r := first.bash("for i in $(seq 60000); do echo project-one-$i; done")
			file := text(t, r, "output_file")
			serve := func(tool, root string) server {
				return server{t, mcpkittest.StartWith(t, mcpkittest.Build(t, "./tools/"+tool), mcpkittest.Options{Args: []string{"--root", root, "--state", p.kept}, Dir: root, Env: p.env})}
			}
			require.Contains(t, first.bash("grep -c project-one "+file).Text, "60000", "its own commands read it")
			require.Contains(t, serve("view", p.root).Call("view", arg("path", file, "limit", 1)).Text, "project-one-1")
			{
				second := server{t, mcpkittest.StartWith(t, bin, mcpkittest.Options{Args: []string{"--root", other, "--state", p.kept, "--sandbox", level}, Dir: other, Env: p.env})}
				require.Contains(t, text(t, second.bash("for i in $(seq 60000); do echo project-two-$i; done"), "output_file"), p.kept)
				r = second.bash("cat " + file + "; grep -rs project-one " + p.kept + "; echo end")
				require.NotContains(t, r.Text, "project-one-", r.Text)
			}
			shown := serve("view", other).Call("view", arg("path", file))
			require.True(t, shown.IsError)
			require.NotContains(t, shown.Text, "project-one-")
			found := serve("grep", other).Call("grep", arg("pattern", "project-one", "path", filepath.Dir(file)))
			require.NotContains(t, strings.ReplaceAll(found.Text, `"project-one"`, ""), "project-one-1")
		})
	})
}
