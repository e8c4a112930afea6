//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// The tests of this file keep these bugs fixed: files planted by a command take
// effect while it runs as a job, and after kill -9 of the server (F10); a
// server takes files planted by another server's command for the user's (F02).

// trapped is a place whose root is a repository with a program in it that
// leaves a mark.
type trapped struct {
	*place
	mark string
}

func newTrapped(t *testing.T) *trapped {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("not run, there is no git")
	}
	p := &trapped{place: newOuterPlace(t)}
	p.mark = filepath.Join(p.dir, "ran")
	p.write("home/.gitconfig", "[user]\n\tname = U\n\temail = u@example.com\n")
	program := p.write("root/x.sh", "#!/bin/sh\ntouch "+p.mark+"\n")
	require.NoError(t, os.Chmod(program, 0o755))
	p.user("git init -q . && git add -A && git commit -qm first")
	return p
}

// user runs a script as the user would.
func (p *trapped) user(script string) string {
	p.t.Helper()
	c := exec.Command("bash", "-c", script)
	c.Dir, c.Env = p.root, append(p.env, "GIT_CONFIG_NOSYSTEM=1")
	out, err := c.CombinedOutput()
	require.NoError(p.t, err, "%s: %s", script, out)
	return string(out)
}

// ran reports whether the program ran when the user looked at the repository.
func (p *trapped) ran() bool {
	p.t.Helper()
	p.user("git status && git commit -qm u --allow-empty")
	_, err := os.Stat(p.mark)
	return err == nil
}

func (p *trapped) config() string {
	text, err := os.ReadFile(filepath.Join(p.root, ".git/config"))
	require.NoError(p.t, err)
	return string(text)
}

const plant = "git config core.fsmonitor ./x.sh; printf '{}' > .mcp.json"

// planted waits until a job has planted its files.
func (s server) planted(id string) {
	s.t.Helper()
	within(s.t, "planted", func() bool {
		return strings.Contains(s.job("action", "poll", "job_id", id, "since", 0, "wait_for", "planted", "wait_ms", 5000).Text, "planted\n")
	})
}

// confinedLevels returns the usable levels that confine commands.
func confinedLevels(t *testing.T) (confined []string) {
	usable, missing := levels(t)
	t.Logf("not run: %v", missing)
	for _, level := range usable {
		if level != "off" {
			confined = append(confined, level)
		}
	}
	return confined
}

func TestJobsPlantsAreTakenBackWhileItRuns(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	for _, level := range confinedLevels(t) {
		p := newTrapped(t)
		before := p.config()
		s := p.serve("--sandbox", level)
		r := s.bash(plant+"; echo planted; sleep 1000", "run_in_background", true)
		require.False(t, r.IsError, r.Text)
		id := text(t, r, "job_id")
		s.planted(id)
		within(t, "the settings are as before at "+level, func() bool { return p.config() == before })
		within(t, "the agent's settings are gone at "+level, func() bool { _, err := os.Lstat(p.root + "/.mcp.json"); return err != nil })
		require.False(t, p.ran(), level)
		r = s.job("action", "kill", "job_id", id)
		require.Contains(t, toJSON(t, r.Meta), ".git/config", level)
	}
}

func TestWhatAKilledServersCommandPlantedIsTakenBack(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	for _, level := range confinedLevels(t) {
		p := newTrapped(t)
		s := p.serve("--sandbox", level)
		s.bash("true")
		r := s.bash(plant+"; echo planted; kill -STOP $$", "run_in_background", true)
		require.False(t, r.IsError, r.Text)
		s.planted(text(t, r, "job_id")) // a git killed while it works leaves a lock
		require.NoError(t, syscall.Kill(s.PID(), syscall.SIGKILL))
		s.Wait()
		os.WriteFile(filepath.Join(p.root, ".mcp.json"), []byte("{}"), 0o644)
		p.user("git config core.fsmonitor ./x.sh") // has an effect only after the planted files were taken back
		r = p.serve("--sandbox", level).bash("true")
		require.False(t, r.IsError, r.Text)
		require.Contains(t, r.Text, ".git/config", level)
		require.False(t, p.ran(), level)
		require.NoFileExists(t, filepath.Join(p.root, ".mcp.json"))
		kept, err := filepath.Glob(filepath.Join(p.kept, "watch-1/*/aside/*.kept"))
		require.NoError(t, err)
		require.NotEmpty(t, kept, "what it had become is kept")
	}
}

// Paths mounted read-only at L2 must still be checked after kill -9, if the
// command replaced the directory around them or made them links.
func TestWhatAKilledServersCommandReplacedIsTakenBack(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	const hook = "printf '#!/bin/sh\n' > pre-commit; chmod +x pre-commit; "
	for name, c := range map[string]struct{ before, script string }{
		"a directory": {"cd .git/hooks; " + hook, "mv .git g; mkdir .git; cp -r g/. .git; cp x.sh .git/hooks/pre-commit"},
		"a link":      {hook + "ln -s ../../pre-commit .git/hooks/pre-commit; rm -r .git/hooks; mkdir h h2; mv pre-commit h; ln -s ../h .git/hooks", "cp x.sh h2/pre-commit; ln -sfn ../h2 .git/hooks"},
	} {
		for _, level := range confinedLevels(t) {
			p := newTrapped(t)
			p.user(c.before)
			s := p.serve("--sandbox", level)
			s.bash("true")
			r := s.bash("until [ -e go ]; do sleep 0.01; done; "+c.script+"; touch planted; sleep 1000", "run_in_background", true)
			require.False(t, r.IsError, r.Text)
			mcpkittest.Suspend(t, s.PID()) // so that it takes nothing back
			require.NoError(t, os.WriteFile(filepath.Join(p.root, "go"), nil, 0o644))
			within(t, "planted", func() bool { _, err := os.Lstat(p.root + "/planted"); return err == nil })
			require.NoError(t, syscall.Kill(s.PID(), syscall.SIGKILL))
			s.Wait()
			r = p.serve("--sandbox", level).bash("true")
			require.False(t, r.IsError, r.Text)
			require.False(t, p.ran(), "%s at %s: %s %s", name, level, r.Text, toJSON(t, r.Meta))
		}
	}
}

func TestServersShareTheBaseline(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	for _, level := range confinedLevels(t) {
		p := newTrapped(t)
		a, b := p.serve("--sandbox", level), p.serve("--sandbox", level)
		r := a.bash(plant+"; echo planted; sleep 1000", "run_in_background", true)
		id := text(t, r, "job_id")
		a.planted(id)
		r = b.bash("until [ -e go ]; do sleep 0.01; done; "+plant, "run_in_background", true)
		other := text(t, r, "job_id")
		a.job("action", "kill", "job_id", id)
		require.NoError(t, os.WriteFile(filepath.Join(p.root, "go"), nil, 0o644))
		b.job("action", "poll", "job_id", other, "wait_ms", 40_000)
		require.False(t, p.ran(), level)
		require.NoFileExists(t, filepath.Join(p.root, ".mcp.json"))
	}
}

// Changes by the user while no command runs are kept.
func TestUsersOwnSettingsStay(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	for _, level := range confinedLevels(t) {
		p := newTrapped(t)
		s := p.serve("--sandbox", level)
		s.bash("git status")
		p.user("git config core.fsmonitor ./x.sh; printf '{}' > .mcp.json; cp x.sh .git/hooks/pre-commit; git init -q n; cp x.sh n/.git/hooks/pre-commit")
		for _, server := range []server{s, p.serve("--sandbox", level)} {
			r := server.bash("git config user.name Z; git config --unset user.name; echo x > f")
			require.NotContains(t, r.Text, "put back", level)
		}
		require.Contains(t, p.config(), "fsmonitor", level)
		require.FileExists(t, filepath.Join(p.root, ".mcp.json"))
		require.FileExists(t, filepath.Join(p.root, "n/.git/hooks/pre-commit"))
		require.True(t, p.ran(), level)
	}
}

// The same as an unprivileged user.
func TestPlantsAsNobody(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	if os.Geteuid() != 0 {
		t.Skip("not run, this is no root")
	}
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip("not run, there is no setpriv")
	}
	const repository = "git init -q e; git -C e commit -q --allow-empty -m e; git -C e config core.fsmonitor ../x.sh; git add e; "
	for name, c := range map[string]struct{ script, open, taken string }{
		"not writable":              {repository + plant + "; chmod a-w .git .git/config e/.git .", ":", "e/.git/config"},
		"cannot be listed":          {repository + "chmod 0300 e/.git", ":", "e/.git/config"},
		"can only be entered":       {repository + "chmod 0100 e/.git e", "chmod 0700 e", "e/.git/config"},
		"closed, the user opens it": {repository + "chmod 0 e", "chmod 0755 e", "e/.git/config"},
		"closed settings":           {plant + "; chmod 0 .git/config", "chmod 0644 .git/config", ".git/config"},
		"a hook in closed hooks":    {"cp x.sh .git/hooks/pre-commit; chmod 0311 .git/hooks", ":", "pre-commit"},
		"the root":                  {plant + "; chmod 0311 .", ":", ".git/config"},
	} {
		for _, level := range []string{"L2", "L1"} {
			p := &trapped{place: placeBelow(t, "/var/cache")}
			p.mark = filepath.Join(p.dir, "ran")
			p.write("home/.gitconfig", "[user]\n\tname = U\n\temail = u@example.com\n[safe]\n\tdirectory = *\n")
			require.NoError(t, os.Chmod(p.write("root/x.sh", "#!/bin/sh\ntouch "+p.mark+"\n"), 0o755))
			p.user("git init -q . && git add -A && git commit -qm first")
			s := p.serveBin(asNobody(p.place), mcpkittest.Options{}, "--sandbox", level)
			r := s.bash(c.script)
			if r.Code == "SANDBOX_UNAVAILABLE" {
				t.Logf("not run at %s: %s", level, r.Text)
				continue
			}
			p.user(c.open)
			require.False(t, p.ran(), "%s at %s: %s", name, level, r.Text)
			require.NoFileExists(t, filepath.Join(p.root, ".mcp.json"), level)
			if level == "L1" || name != "a hook in closed hooks" { // which is mounted read-only
				require.Contains(t, r.Text, c.taken, "%s at %s", name, level)
			}
		}
	}
}
