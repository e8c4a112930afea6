package confine_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/host/internal/confine"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// TestAttacksWorkUnconfined: the attacks of this package fail because of the sandbox.
func TestAttacksWorkUnconfined(t *testing.T) {
	s := newScene(t)
	works := 0
	for _, reader := range readers[:16] {
		script := fmt.Sprintf("exec 2>&1; export f=%q d=%q base=%q n=%d; cp \"$f\" \"$f.kept\"; timeout -k 1 3 bash -c %s; mv \"$f.kept\" \"$f\"", s.other+"/file", s.data, filepath.Dir(s.home), s.neighbour.Process.Pid, quoted(reader))
		if strings.Contains(s.run(t, confine.Settings{Level: proc.Off}, script), canary) {
			works++
		}
	}
	require.GreaterOrEqual(t, works, 12)
}

func TestConfinedServerUsesWhatItWasGiven(t *testing.T) {
	forEachLevel(t, func(t *testing.T, s *scene, settings confine.Settings) {
		extra := filepath.Join(filepath.Dir(s.home), "extra.txt")
		require.NoError(t, os.WriteFile(extra, []byte("extra"), 0o644))
		settings.Read = []string{s.other, extra, filepath.Join(s.home, ".config", "app")}
		tool := filepath.Join(s.home, ".local", "bin", "tool")
		require.NoError(t, os.WriteFile(tool, []byte("#!/bin/sh\necho tool runs\n"), 0o755))
		require.NoError(t, os.Chmod(tool, 0o755))
		t.Setenv("PATH", filepath.Join(s.home, ".local", "bin")+":"+os.Getenv("PATH"))
		settings.Env = []string{"EXTRA_SETTING"}
		t.Setenv("EXTRA_SETTING", "given")
		t.Setenv("LC_TIME", "C")
		out := s.run(t, settings, fmt.Sprintf("exec 2>&1; data=%q other=%q extra=%q real=%q\n", s.data, s.other, extra, s.home)+`
			pwd; cat main.go; cat "$other/file" "$extra" "$real/.config/app/settings"; echo
			echo new >"$data/new" && mv "$data/new" "$data/moved" && cat "$data/moved"
			echo kept >"$HOME/kept"; mkdir -p "$HOME/.git/hooks"; echo hook >"$HOME/.git/hooks/pre-commit" && echo home works
			[ "$HOME" != "$real" ] && echo private home
			tmp=$(mktemp) && echo "tmp works" && rm "$tmp"
			tool; echo "$EXTRA_SETTING $LC_TIME [$SERVICE_TOKEN]"`)
		for _, want := range []string{s.project + "\n", "package main", canary + "extra" + canary, "\nnew\n", "home works", "private home", "tmp works", "tool runs", "given C []"} {
			require.Contains(t, out, want)
		}
		require.Equal(t, "kept\nhook\n", s.run(t, settings, `cat "$HOME/kept" "$HOME/.git/hooks/pre-commit"`), "the home is kept")
	})
}

// TestConfinedRootsInEachOther: a directory to write in one to read, and the reverse.
func TestConfinedRootsInEachOther(t *testing.T) {
	forEachLevel(t, func(t *testing.T, s *scene, settings confine.Settings) {
		inner := filepath.Join(s.project, "build")
		require.NoError(t, os.MkdirAll(filepath.Join(inner, "deep"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(inner, "old"), nil, 0o644))
		settings.Write, settings.Read = []string{inner}, []string{filepath.Dir(s.home) + "/elsewhere"}
		out := s.run(t, settings, `exec 2>&1; echo a >build/a && cat build/a; echo b >b; cat ../elsewhere/deeper/private; cat ../other/file`)
		require.Contains(t, out, "a\n")
		require.NotContains(t, out, "b\n")
		require.Equal(t, 1, strings.Count(out, canary))
		require.NoFileExists(t, filepath.Join(s.project, "b"))

		settings.Read = []string{filepath.Join(inner, "deep")}
		out = s.run(t, settings, `exec 2>&1; echo more >build/old && cat build/old; echo c >build/deep/c; ls build/deep`)
		require.Contains(t, out, "more\n")
		require.NoFileExists(t, filepath.Join(inner, "deep", "c"), "what is listed for reading only stays so")

		s.project, settings.Read = filepath.Join(inner, "deep"), nil
		out = s.run(t, settings, `exec 2>&1; echo d >d && cat d`)
		require.Contains(t, out, "d\n", "the working directory is in one that may be written")
	})
}

// TestConfinedStartsInAHome: the host is often started in the home, which is not shown
// to its servers for that reason.
func TestConfinedStartsInAHome(t *testing.T) {
	forEachLevel(t, func(t *testing.T, s *scene, settings confine.Settings) {
		s.project = s.home
		out := s.run(t, settings, `exec 2>&1; pwd; ls -a; cat notes.txt `+s.home+`/notes.txt`)
		require.NotContains(t, out, canary)
		require.Contains(t, out, s.state+"/servers/hostile/home\n")
	})
}

func TestConfinedSettingsThatCannotWork(t *testing.T) {
	s := newScene(t)
	require.ErrorContains(t, confine.Settings{Network: "allow=a b"}.Validate(), "network")
	require.NoError(t, confine.Settings{Network: "registries"}.Validate())
	for _, settings := range []confine.Settings{{Level: proc.L1, Network: "registries"}, {Level: proc.L1, Sockets: []string{"/run/x.sock"}}} {
		err := settings.Validate()
		require.Equal(t, toolerr.SandboxUnavailable, toolerr.CodeOf(err))
		require.NotContains(t, err.Error(), "--", "no flag of a tool")
		_, err = s.try(t, settings, "true")
		require.Equal(t, toolerr.SandboxUnavailable, toolerr.CodeOf(err))
	}
	_, err := s.try(t, confine.Settings{Write: []string{filepath.Join(s.data, "missing")}}, "true")
	require.Equal(t, toolerr.NotFound, toolerr.CodeOf(err), "%v", err)
}

// TestProposal: a watched server's refusals become settings, and with these settings
// nothing is refused.
func TestProposal(t *testing.T) {
	forEachLevel(t, func(t *testing.T, s *scene, settings confine.Settings) {
		extra := filepath.Join(filepath.Dir(s.home), "extra")
		for i := range 6 {
			path := filepath.Join(extra, fmt.Sprint("file", i))
			require.NoError(t, os.MkdirAll(extra, 0o755))
			require.NoError(t, os.WriteFile(path, []byte("x"), 0o644))
		}
		script := `cat ~/.config/app/settings; cat ` + extra + `/file*; for i in 0 1 2 3 4 5; do cat ` + extra + `/file$i; done; cat ~/.ssh/id_ed25519 ~/.missing /etc/hostname main.go
			echo x >` + s.other + `/made/new || mkdir ` + s.other + `/made; echo own >~/own; echo y >` + s.data + `/allowed; curl -s --max-time 2 http://api.weather.example/`
		if settings.Level == proc.L2 {
			settings.Network = "allow=other.example"
		}
		p := s.watch(t, settings, script)
		require.Equal(t, []string{s.other}, p.Write)
		require.Equal(t, []string{extra, filepath.Join(s.home, ".config", "app", "settings")}, p.Read)
		require.Equal(t, []string{filepath.Join(s.home, ".ssh", "id_ed25519")}, p.Secrets)
		if settings.Level == proc.L2 {
			require.Equal(t, []string{"api.weather.example"}, p.Hosts)
		}
		settings.Write, settings.Read = append(settings.Write, p.Write...), p.Read
		again := s.watch(t, settings, script)
		require.Empty(t, again.Write)
		require.Empty(t, again.Read)
		require.Equal(t, p.Secrets, again.Secrets, "they are never given")
		require.Contains(t, s.run(t, settings, "cat ~/.config/app/settings"), canary, "by its name in the private home")
	})
}

// TestConfinedByWhatItWasGiven: credentials that the user names are given; files that
// decide what the host runs are not written, and state is not seen, even in a directory
// that was given.
func TestConfinedByWhatItWasGiven(t *testing.T) {
	forEachLevel(t, func(t *testing.T, s *scene, settings confine.Settings) {
		out := s.run(t, settings, `cat ~/.aws/credentials `+s.home+`/.aws/credentials 2>&1`)
		require.NotContains(t, out, canary)
		settings.Read = []string{filepath.Join(s.home, ".aws", "credentials")}
		out = s.run(t, settings, `cat ~/.aws/credentials; cat ~/.ssh/id_ed25519 `+s.home+`/.ssh/id_ed25519 2>&1`)
		require.Equal(t, 1, strings.Count(out, canary), out)

		configuration, audit := filepath.Join(s.data, "toolroom.yaml"), filepath.Join(s.data, "audit")
		require.NoError(t, os.WriteFile(configuration, []byte("servers: {}\n"), 0o600))
		require.NoError(t, os.Mkdir(audit, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(audit, "log"), []byte(canary), 0o600))
		settings.Read, settings.Protect, settings.Hidden = nil, []string{configuration}, []string{audit}
		out = s.run(t, settings, `exec 2>&1; cd `+s.data+`; echo evil >toolroom.yaml; mv toolroom.yaml x; echo evil >y; mv y toolroom.yaml; echo written >z; cat z`)
		require.Contains(t, out, "written\n")
		text, err := os.ReadFile(configuration)
		require.NoError(t, err)
		require.Equal(t, "servers: {}\n", string(text))
		if settings.Level == proc.L2 { // at L1, all of a root can be read
			require.Contains(t, out, "Read-only file system", "refused, and not only restored")
			require.NotContains(t, s.run(t, settings, `cat `+audit+`/log 2>&1`), canary)
		}
	})
}
