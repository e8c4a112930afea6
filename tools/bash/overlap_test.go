//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
)

// The tests of this file run servers whose roots contain one another, or whose
// state directories differ: a command of one must not take another's planted
// files for the user's.

// overlap is a place with a repository, root, and another one in it, root/sub.
type overlap struct {
	*trapped
	sub *trapped
}

func newOverlap(t *testing.T, place *place) *overlap {
	t.Helper()
	p := &overlap{trapped: &trapped{place: place, mark: filepath.Join(place.dir, "ran")}}
	p.write("home/.gitconfig", "[user]\n\tname = U\n\temail = u@example.com\n[safe]\n\tdirectory = *\n")
	for _, name := range []string{"root/x.sh", "root/sub/x.sh"} {
		require.NoError(t, os.Chmod(p.write(name, "#!/bin/sh\ntouch "+p.mark+"\n"), 0o755))
	}
	p.user("git init -q . && echo sub > .gitignore && git add -A && git commit -qm first")
	p.sub = p.at("root/sub")
	p.sub.user("git init -q . && git add -A && git commit -qm first")
	return p
}

// at returns the place with another root.
func (p *overlap) at(root string) *trapped {
	other := *p.place
	other.root = filepath.Join(p.dir, root)
	return &trapped{place: &other, mark: p.mark}
}

// on starts a server with a root and a state directory of the place.
func (p *overlap) on(bin, root, state string, flags ...string) server {
	p.t.Helper()
	other := *p.place
	other.root, other.kept = filepath.Join(p.dir, root), filepath.Join(p.dir, state)
	if err := os.Mkdir(other.kept, 0o755); err == nil && os.Geteuid() == 0 {
		require.NoError(p.t, os.Chown(other.kept, ownerOf(p.t, p.home), -1))
	}
	return other.serveBin(bin, mcpkittest.Options{}, flags...)
}

func ownerOf(t testing.TB, path string) int {
	t.Helper()
	var st unix.Stat_t
	require.NoError(t, unix.Stat(path, &st))
	return int(st.Uid)
}

// apart returns a program that starts a server which other servers do not
// consult, as in a container.
func (p *overlap) apart(bin string) string {
	p.t.Helper()
	if _, err := exec.LookPath("setpriv"); err != nil {
		p.t.Skip("not run, there is no setpriv")
	}
	script := p.write("apart", "#!/bin/sh\nexec setpriv --no-new-privs "+bin+" \"$@\"\n")
	require.NoError(p.t, os.Chmod(script, 0o755))
	return script
}

// touch creates a file in the place.
func (p *overlap) touch(name string) {
	p.t.Helper()
	require.NoError(p.t, os.WriteFile(filepath.Join(p.dir, name), nil, 0o644))
	require.NoError(p.t, os.Lchown(filepath.Join(p.dir, name), ownerOf(p.t, p.home), -1))
}

func (p *overlap) awaits(name string) {
	p.t.Helper()
	within(p.t, name, func() bool { _, err := os.Lstat(filepath.Join(p.dir, name)); return err == nil })
}

// background starts a job that waits for the file go in dir, runs a script
// there and creates the file done.
func (p *overlap) background(s server, dir, script, name string) (id string) {
	p.t.Helper()
	r := s.bash("cd "+filepath.Join(p.dir, dir)+"; touch began-"+name+"; until [ -e go-"+name+" ]; do sleep 0.01; done; "+script+"; touch done-"+name+"; sleep 1000", "run_in_background", true)
	require.False(p.t, r.IsError, r.Text)
	p.awaits(dir + "/began-" + name)
	return text(p.t, r, "job_id")
}

// stop suspends a server while it holds no lock of a state directory, so that
// it takes nothing back and other servers do not wait for it.
func (p *overlap) stop(s server, state string) {
	p.t.Helper()
	within(p.t, "stopped without a lock", func() bool {
		mcpkittest.Suspend(p.t, s.PID())
		locks, err := filepath.Glob(filepath.Join(p.dir, state, "watch-1/*/lock"))
		require.NoError(p.t, err)
		for _, path := range locks {
			f, err := os.Open(path)
			require.NoError(p.t, err)
			err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
			syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
			f.Close()
			if err != nil {
				require.NoError(p.t, syscall.Kill(s.PID(), syscall.SIGCONT))
				return false
			}
		}
		return true
	})
}

// overlapping are pairs of servers. Commands of both write root/sub.
var overlapping = map[string]struct {
	first, second, state string // the second server's state directory
	known                bool   // it has run a command before
	apart                bool   // it cannot read the first server's state
	level                string // "": all
	prepare, script      string // of the first server's commands
	between              string // the user's commands while the first command runs
}{
	"the second root in the first":       {first: "root", second: "root/sub", state: "state"},
	"the first root in the second":       {first: "root/sub", second: "root", state: "state"},
	"another state directory":            {first: "root/sub", second: "root/sub", state: "state2"},
	"another state directory, known":     {first: "root/sub", second: "root/sub", state: "state2", known: true},
	"in the first, another state":        {first: "root", second: "root/sub", state: "state2"},
	"in the first, another state, known": {first: "root", second: "root/sub", state: "state2", known: true},
	"in the second, another state":       {first: "root/sub", second: "root", state: "state2"},
	"in the second, known":               {first: "root/sub", second: "root", state: "state2", known: true},
	"apart":                              {first: "root/sub", second: "root/sub", state: "state2", apart: true},
	"apart, known":                       {first: "root/sub", second: "root/sub", state: "state2", known: true, apart: true},
	"in the first, apart":                {first: "root", second: "root/sub", state: "state2", apart: true},
	"in the first, apart, known":         {first: "root", second: "root/sub", state: "state2", known: true, apart: true},
	"in the second, apart":               {first: "root/sub", second: "root", state: "state2", apart: true},
	"in the second, apart, known":        {first: "root/sub", second: "root", state: "state2", known: true, apart: true},
	"the state directory is removed":     {first: "root/sub", second: "root/sub", state: "state", between: "rm -rf ../../state/*"},
	"the first root is moved away":       {first: "root", second: "moved/sub", state: "state", between: "mv ../../root ../../moved; ln -s moved ../../root"},
	"the second root is a link":          {first: "root", second: "link", state: "state", between: "ln -s root/sub ../../link"},
	"settings that were ready": {first: "root", second: "root/sub", state: "state2", known: true, apart: true, level: "L1", // at L2, .git stays where it is
		prepare: "mkdir q; cp -r .git/* q; rm q/HEAD; sed -i 's/^\\[core\\]/&\\n\\tfsmonitor = .\\/x.sh/' q/config",
		script:  "mv .git g; cp g/HEAD q; mv q .git; rm -rf g"},
}

// overlapLevels returns the levels of a case: both with BASH_LONG, otherwise one of
// them, by the case's name, unless the case is for another.
func overlapLevels(t *testing.T, name string) []string {
	t.Helper()
	confined := confinedLevels(t)
	if os.Getenv("BASH_LONG") != "" || len(confined) < 2 || overlapping[name].level != "" {
		return confined
	}
	return confined[len(name)%2:][:1]
}

func TestOverlappingRootsShareTheBaseline(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	t.Parallel()
	for name, c := range overlapping {
		t.Run(name, func(t *testing.T) {
			sandboxtest.SkipUnsampled(t)
			t.Parallel()
			for _, level := range overlapLevels(t, name) {
				if c.level != "" && c.level != level {
					continue
				}
				p := newOverlap(t, newOuterPlace(t))
				bin := mcpkittest.Build(t, "./tools/bash")
				first := bin
				if c.apart {
					first = p.apart(bin)
				}
				p.attack(first, bin, level, c.first, c.second, c.state, c.between, c.prepare, c.script, c.known)
			}
		})
	}
}

// attack has two overlapping commands plant the same files: the second starts
// once they are planted, and plants them again after they were taken back.
func (p *overlap) attack(bin, bin2, level, first, second, state, between, prepare, script string, known bool) {
	t := p.t
	t.Helper()
	if script == "" {
		script = plant
	}
	before := p.sub.config()
	if known {
		p.on(bin2, second, state, "--sandbox", level).bash("true")
	}
	a := p.on(bin, first, "state", "--sandbox", level)
	if prepare != "" {
		r := a.bash("cd " + p.sub.root + "; " + prepare)
		require.False(t, r.IsError, r.Text)
	}
	id := p.background(a, "root/sub", script, "a")
	p.stop(a, "state")
	p.touch("root/sub/go-a")
	p.awaits("root/sub/done-a")
	require.Contains(t, p.sub.config(), "fsmonitor", level)
	if between != "" {
		p.sub.user(between)
	}
	b := p.on(bin2, second, state, "--sandbox", level)
	r := b.bash("cd "+filepath.Join(p.dir, second)+"; cd sub 2>/dev/null; touch began-b; until [ -e go-b ]; do sleep 0.01; done; "+plant, "run_in_background", true)
	require.False(t, r.IsError, r.Text)
	p.awaits("root/sub/began-b")
	require.NoError(t, syscall.Kill(a.PID(), syscall.SIGCONT))
	a.job("action", "kill", "job_id", id)
	p.touch("root/sub/go-b")
	r = b.job("action", "poll", "job_id", text(t, r, "job_id"), "wait_ms", 40_000)
	require.False(t, p.sub.ran(), "%s at %s", r.Text, level)
	require.Equal(t, before, p.sub.config(), level)
	require.NoFileExists(t, filepath.Join(p.sub.root, ".mcp.json"), level)
}

func TestOverlappingRootsAsNobody(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("not run, this is no root")
	}
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip("not run, there is no setpriv")
	}
	for _, name := range []string{"the second root in the first", "the first root in the second", "another state directory", "in the first, another state, known"} {
		for _, level := range []string{"L2", "L1"} {
			c := overlapping[name]
			p := newOverlap(t, placeBelow(t, "/var/cache"))
			bin := asNobody(p.place)
			if r := p.on(bin, "root", "state3", "--sandbox", level).bash("true"); r.Code == "SANDBOX_UNAVAILABLE" {
				t.Logf("not run at %s: %s", level, r.Text)
				continue
			}
			p.attack(bin, bin, level, c.first, c.second, c.state, c.between, c.prepare, c.script, c.known)
		}
	}
}

// A directory mounted in two places is the same for both servers.
func TestOverlappingRootsByAMount(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	t.Parallel()
	if exec.Command("unshare", "-m", "mount", "--bind", "/tmp", "/tmp").Run() != nil {
		t.Skip("not run, directories cannot be mounted")
	}
	for name, from := range map[string]string{"the root": "root", "a directory in the root": "root/sub"} {
		for _, state := range []string{"state", "state2"} {
			for _, level := range confinedLevels(t) {
				p := newOverlap(t, newOuterPlace(t))
				require.NoError(t, os.Mkdir(filepath.Join(p.dir, "mounted"), 0o755))
				bin := mcpkittest.Build(t, "./tools/bash")
				script := p.write("mounts", "#!/bin/sh\nmount --bind "+filepath.Join(p.dir, from)+" "+p.dir+"/mounted\nexec "+bin+" \"$@\"\n")
				unshare := p.write("unshares", "#!/bin/sh\nexec unshare -m "+script+" \"$@\"\n")
				require.NoError(t, os.Chmod(script, 0o755))
				require.NoError(t, os.Chmod(unshare, 0o755))
				t.Log(name, state, level)
				p.attack(bin, unshare, level, "root", "mounted", state, "", "", "", false)
			}
		}
	}
}

// After a server was killed, the next server with an overlapping root takes its
// command's planted files back.
func TestAKilledServersPlantInAnOverlappingRootIsTakenBack(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	t.Parallel()
	for _, roots := range [][2]string{{"root", "root/sub"}, {"root/sub", "root"}} {
		for _, level := range confinedLevels(t) {
			p := newOverlap(t, newOuterPlace(t))
			bin := mcpkittest.Build(t, "./tools/bash")
			before := p.sub.config()
			p.on(bin, roots[1], "state", "--sandbox", level).bash("true")
			a := p.on(bin, roots[0], "state", "--sandbox", level)
			p.background(a, "root/sub", plant, "a")
			p.stop(a, "state")
			p.touch("root/sub/go-a")
			p.awaits("root/sub/done-a")
			require.NotEqual(t, before, p.sub.config(), "planted")
			require.NoError(t, syscall.Kill(a.PID(), syscall.SIGKILL))
			a.Wait()
			b := p.on(bin, roots[1], "state", "--sandbox", level)
			r := b.bash("true")
			require.False(t, r.IsError, r.Text)
			require.Contains(t, r.Text, ".git/config", "%s: %s", level, p.sub.config())
			require.False(t, p.sub.ran(), level)
			require.Equal(t, before, p.sub.config(), level)
			require.NoFileExists(t, filepath.Join(p.sub.root, ".mcp.json"), level)

			p.sub.user("git config core.fsmonitor ./x.sh")
			for _, s := range []server{b, p.on(bin, roots[0], "state", "--sandbox", level)} {
				r := s.bash("true")
				require.False(t, r.IsError, r.Text)
				require.NotContains(t, r.Text, "put back", level)
				require.Contains(t, p.sub.config(), "fsmonitor", "what the user sets later stays, %s %s: %s", roots, level, r.Text)
			}
		}
	}
}

// One server with roots that contain one another, and overlapping commands.
func TestRootsOfOneServerThatHoldOneAnother(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	for _, level := range confinedLevels(t) {
		p := newOverlap(t, newOuterPlace(t))
		bin := mcpkittest.Build(t, "./tools/bash")
		before := p.sub.config()
		s := p.on(bin, "root", "state", "--root", p.sub.root, "--sandbox", level)
		p.sub.user("git config core.fsmonitor ./x.sh; git config --unset core.fsmonitor; git config alias.z '!echo'")
		mine := p.sub.config()
		require.NotEqual(t, before, mine)
		a := p.background(s, "root/sub", plant, "a")
		b := p.background(s, "root", "cd sub; "+plant+"; cd ..", "b")
		p.touch("root/sub/go-a")
		p.awaits("root/sub/done-a")
		s.job("action", "kill", "job_id", a)
		p.touch("root/go-b")
		p.awaits("root/done-b")
		s.job("action", "kill", "job_id", b)
		require.False(t, p.sub.ran(), level)
		require.Equal(t, mine, p.sub.config(), level)
		require.NoFileExists(t, filepath.Join(p.sub.root, ".mcp.json"), level)
	}
}

// Settings that the user made before the commands, or elsewhere meanwhile, are
// kept.
func TestUsersOwnSettingsStayInOverlappingRoots(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	t.Parallel()
	const set = "git config core.fsmonitor ./x.sh; printf '{}' > .mcp.json; cp x.sh .git/hooks/pre-commit; git init -q n; cp x.sh n/.git/hooks/pre-commit"
	for name, c := range overlapping {
		if c.between != "" || c.prepare != "" || c.apart {
			continue
		}
		t.Run(name, func(t *testing.T) {
			sandboxtest.SkipUnsampled(t)
			t.Parallel()
			for _, level := range overlapLevels(t, name) {
				p := newOverlap(t, newOuterPlace(t))
				bin := mcpkittest.Build(t, "./tools/bash")
				b := p.on(bin, c.second, c.state, "--sandbox", level)
				if c.known {
					b.bash("true")
				}
				p.sub.user(set)
				a := p.on(bin, c.first, "state", "--sandbox", level)
				id := p.background(a, "root/sub", "git add x.sh; git commit -q --no-verify --allow-empty -m a; git config user.name A", "a")
				p.touch("root/sub/go-a")
				p.awaits("root/sub/done-a")
				if c.first == "root/sub" && c.second == "root" {
					p.user(set)
				}
				r := b.bash("cd " + p.sub.root + "; git config user.email b; echo x > f")
				require.NotContains(t, r.Text, "put back", level)
				r = a.job("action", "kill", "job_id", id)
				require.NotContains(t, r.Text, "put back", level)
				r = b.bash("true")
				require.NotContains(t, r.Text, "put back", level)
				roots := []*trapped{p.sub}
				if c.first == "root/sub" && c.second == "root" {
					roots = append(roots, p.trapped)
				}
				for _, one := range roots {
					require.Contains(t, one.config(), "fsmonitor", level)
					require.FileExists(t, filepath.Join(one.root, ".mcp.json"))
					require.FileExists(t, filepath.Join(one.root, ".git/hooks/pre-commit"))
					require.FileExists(t, filepath.Join(one.root, "n/.git/hooks/pre-commit"))
				}
			}
		})
	}
}

// The first command of a server runs while another server's command runs. Project
// settings that it creates in a directory of the user, which is no project, are removed.
func TestSettingsOfAFirstCommandBesideAnother(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	t.Parallel()
	for _, level := range confinedLevels(t) {
		for _, other := range []string{"true", "touch ../dir/new"} { // what the other command has changed by then
			p := newOverlap(t, newOuterPlace(t))
			bin := mcpkittest.Build(t, "./tools/bash")
			p.user("mkdir -p dir/deep")
			a := p.on(bin, "root", "state", "--sandbox", level)
			p.background(a, "root/sub", other, "a")
			p.touch("root/sub/go-a")
			p.awaits("root/sub/done-a")
			r := p.on(bin, "root", "state2", "--sandbox", level).bash("for d in dir dir/deep; do mkdir $d/.claude; echo '{}' > $d/.claude/settings.json; done; mkdir new; echo '{}' > new/.mcp.json")
			require.False(t, r.IsError, r.Text)
			for _, name := range []string{"dir/.claude/settings.json", "dir/deep/.claude/settings.json"} {
				require.NoFileExists(t, filepath.Join(p.root, name), "%s %s: %s", level, other, r.Text)
			}
			require.FileExists(t, filepath.Join(p.root, "new/.mcp.json"), r.Text)
		}
	}
}
