//go:build linux

package proc_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// Attacks that set setuid or setgid bits, extended attributes or inode flags.
// $T is the program testdata/modes.c, for system calls that no program here
// makes.
var modeAttacks = []attack{
	{"chmod u+s", bothLevels, "", `cp /bin/true f; chmod u+s f; [ -u f ] && echo ESCAPED`},
	{"chmod g+s", bothLevels, "", `cp /bin/true f; chmod g+s f; [ -g f ] && echo ESCAPED`},
	{"chmod 6755", bothLevels, "", `cp /bin/true f; chmod 6755 f; [ -g f -o -u f ] && echo ESCAPED`},
	{"chmod g+s through a link", bothLevels, "", `cp /bin/true f; ln -s f l; chmod g+s l; [ -g f ] && echo ESCAPED`},
	{"install -m", bothLevels, "install", `install -m 4755 /bin/true f; [ -u f ] && echo ESCAPED`},
	{"cp -p", bothLevels, "/usr/bin/su", `cp -p /usr/bin/su f; [ -u f ] && echo ESCAPED`},
	{"tar", bothLevels, "tar", `tar -C /usr/bin -chf - passwd su newgrp 2>/dev/null | tar xpf -; [ -u su ] && echo ESCAPED`},
	{"open", bothLevels, "gcc", `$T open; [ -u f -o -g f ] && echo ESCAPED`},
	{"openat", bothLevels, "gcc", `$T openat; [ -u f -o -g f ] && echo ESCAPED`},
	{"openat2", bothLevels, "gcc", `$T openat2; [ -u f -o -g f ] && echo ESCAPED`},
	{"creat", bothLevels, "gcc", `$T creat; [ -u f -o -g f ] && echo ESCAPED`},
	{"mknod", bothLevels, "gcc", `$T mknod; [ -u f -o -g f ] && echo ESCAPED`},
	{"mknodat", bothLevels, "gcc", `$T mknodat; [ -u f -o -g f ] && echo ESCAPED`},
	{"O_TMPFILE", bothLevels, "gcc", `$T tmpfile; [ -u f -o -g f ] && echo ESCAPED`},
	{"fchmod", bothLevels, "gcc", `$T fchmod; [ -u f -o -g f ] && echo ESCAPED`},
	{"fchmodat2", bothLevels, "gcc", `$T fchmodat2; [ -u f -o -g f ] && echo ESCAPED`},
	{"fchmodat2 of a descriptor", bothLevels, "gcc", `$T fchmodat2-empty; [ -u f -o -g f ] && echo ESCAPED`},
	{"directory swapped for a file", bothLevels, "gcc", `$T swap $TRIES; [ -u f -o -g f ] && echo ESCAPED`},
	{"setxattr", bothLevels, "gcc", `$T setxattr && echo ESCAPED`},
	{"lsetxattr", bothLevels, "gcc", `$T lsetxattr && echo ESCAPED`},
	{"fsetxattr", bothLevels, "gcc", `$T fsetxattr && echo ESCAPED`},
	{"setxattrat", bothLevels, "gcc", `$T setxattrat && echo ESCAPED`},
	{"attribute outside", bothLevels, "gcc", `cd $OUT && $T setxattr && echo ESCAPED`},
	{"attribute in a read-only root", bothLevels, "gcc", `cd $RO && $T setxattr && echo ESCAPED`},
	{"inode flags", bothLevels, "gcc", `$T flags && echo ESCAPED`},
	{"inode flags outside", bothLevels, "gcc", `cd $OUT && $T flags && echo ESCAPED`},
	{"file_setattr", bothLevels, "gcc", `$T setattr && echo ESCAPED`},
}

// TestModesAndAttributes: a command cannot set these modes, attributes and
// flags on files.
func TestModesAndAttributes(t *testing.T) {
	t.Parallel()
	if missing(attack{needs: "gcc"}) != "" {
		t.Skip("no gcc")
	}
	s := newScene(t)
	tool := s.path("modes")
	out, err := exec.Command("gcc", "-pthread", "-o", tool, "testdata/modes.c").CombinedOutput()
	require.NoError(t, err, "%s", out)
	tries := "500"
	if long {
		tries = "100000"
	}
	free := s.runner(t, proc.Off)
	for _, level := range levels(t) {
		if level == proc.Off {
			continue
		}
		r, cases := s.runner(t, level), 0
		for _, a := range modeAttacks {
			if program := missing(a); program != "" {
				t.Logf("%s: not run, no %s", a.name, program)
				continue
			}
			attempt := func(r *proc.Runner) string {
				s.reset(t)
				out, err := exec.Command("cp", tool, s.path("root/modes")).CombinedOutput()
				require.NoError(t, err, "%s", out)
				c := s.command(a.script)
				c.Env = append(c.Env, "T="+s.path("root/modes"), "TRIES="+tries)
				_, text := run(t, r, c)
				return text
			}
			if out := attempt(free); strings.Contains(out, "ESCAPED") {
				cases++
			} else {
				t.Logf("%s: does not work unconfined, not counted: %s", a.name, out)
			}
			out := attempt(r)
			if strings.Contains(out, "ESCAPED") {
				t.Errorf("%s escaped from %s: %s", a.name, level, out)
			}
		}
		t.Logf("%s: %d attacks", level, cases)
		require.Greater(t, cases, 10)
	}
}

// TestModesThatProgramsGive: the modes that programs commonly set still work,
// and so do copies without the refused attributes.
func TestModesThatProgramsGive(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	cases := []attack{
		{"cp -a", bothLevels, "", `mkdir a; echo x > a/f; chmod 1750 a; chmod 600 a/f; cp -a a b && [ $(stat -c %a b) = 1750 ] && [ $(stat -c %a b/f) = 600 ]`},
		{"cp -a of attributes", bothLevels, "", `cp -a $RO b && cat b/file`},
		{"tar", bothLevels, "tar", `mkdir a; echo x > a/f; chmod 751 a/f; tar cf a.tar a && rm -r a && tar xpf a.tar && [ $(stat -c %a a/f) = 751 ]`},
		{"rsync", bothLevels, "rsync", `mkdir a; echo x > a/f; rsync -a a/ b && cat b/f`},
		{"install", bothLevels, "install", `echo x > f; install -D -m 750 f d/g && [ $(stat -c %a d/g) = 750 ]`},
		{"sticky", bothLevels, "", `mkdir -m 1777 d && [ -k d ]`},
		{"git init", bothLevels, "git", `git init -q r && cd r && echo x > f && git add f`},
		{"setgid directory", onlyL2, "", `mkdir d; chmod 2775 d && [ -g d ] && chmod g+s $PWD/d && mkdir -m 2750 e && [ -g e ]`},
		{"setgid directory by descriptor", onlyL2, "/usr/bin/python3", `mkdir d; /usr/bin/python3 -c 'import os; f = os.open("d", os.O_RDONLY); os.fchmod(f, 0o2775)' && [ -g d ] && mkdir e && /usr/bin/python3 -c 'import os; os.chmod("e", 0o2770, dir_fd=os.open(".", os.O_RDONLY))' && [ -g e ]`},
		{"git init --shared", onlyL2, "git", `git init -q --shared r && cd r && git config user.name x && git config user.email x@x && echo x > f && git add f && git commit -qm x && [ -g .git/objects ]`},
		{"install -d below setgid", onlyL2, "install", `mkdir d; chmod g+s d; install -d -m 755 d/e/f && cp -a d g && [ -g g ]`},
		{"no rights beyond", onlyL2, "", `mkdir d; ! chmod 2775 $OUT/dir && ! chmod g+s none && ! chmod g+s /usr`},
	}
	for _, level := range levels(t) {
		if level == proc.Off {
			continue
		}
		r := s.runner(t, level)
		for _, c := range cases {
			if program := missing(c); program != "" {
				t.Logf("%s: not run, no %s", c.name, program)
			} else if c.levels == bothLevels || level == proc.L2 {
				s.reset(t)
				result, out := run(t, r, s.command(c.script))
				require.Zero(t, result.ExitCode, "%s at %s: %s", c.name, level, out)
			}
		}
		info, err := os.Stat(s.path("outside/dir"))
		require.NoError(t, err)
		require.Zero(t, info.Mode()&os.ModeSetgid)
	}
}
