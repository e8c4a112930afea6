//go:build linux

package proc_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
)

// TestSourcedFilesAreRestored: a command must not change a file that the user's
// .envrc sources or the user's hgrc names: direnv trusts the text of .envrc only.
func TestSourcedFilesAreRestored(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ program, before, file, look string }{
		"source":                   {"direnv", `echo 'source ./env/rc' > .envrc`, "env/rc", "direnv exec . true"},
		"a dot":                    {"direnv", `printf 'export A=1; . env/rc\n' > .envrc`, "env/rc", "direnv exec . true"},
		"a condition":              {"direnv", `printf 'if [ -f env/rc ]; then source "$PWD/env/rc"; fi\n' > .envrc`, "env/rc", "direnv exec . true"},
		"source_env":               {"direnv", `echo 'source_env env/rc' > .envrc`, "env/rc", "direnv exec . true"},
		"source_env_if_exists":     {"direnv", `echo 'source_env_if_exists env/rc' > .envrc`, "env/rc", "direnv exec . true"},
		"source in a sourced file": {"direnv", `echo 'source ./first' > .envrc; echo 'source env/rc' > first`, "env/rc", "direnv exec . true"},
		"a dot with a backslash":   {"direnv", `printf '[ -s ./env/rc ] && \\. ./env/rc\n' > .envrc`, "env/rc", "direnv exec . true"},
		"source on two lines":      {"direnv", `printf 'source \\\n  env/rc\n' > .envrc`, "env/rc", "direnv exec . true"},
		"source in a directory":    {"direnv", `echo 'cd env; source ./rc' > .envrc`, "env/rc", "direnv exec . true"},
		"source in a case":         {"direnv", `echo 'case a in a) source env/rc;; esac' > .envrc`, "env/rc", "direnv exec . true"},
		"a program":                {"direnv", `echo 'eval "$(./env/rc)"' > .envrc; chmod +x env/rc`, "env/rc", "direnv exec . true"},
		"a program in PATH":        {"direnv", `printf 'PATH_add env\nrc\n' > .envrc; chmod +x env/rc`, "env/rc", "direnv exec . true"},
		"behind a link":            {"direnv", `echo 'source ./l/rc' > .envrc; ln -s env l`, "env/rc", "direnv exec . true"},
		"%include of an hgrc":      {"hg", `hg init .; printf '%%include ../env/rc\n' > .hg/hgrc`, "env/rc", "hg status"},
		"a hook of an hgrc":        {"hg", `hg init .; printf '[hooks]\npre-status = ./env/rc\n' > .hg/hgrc; chmod +x env/rc`, "env/rc", "hg status"},
		"a script of an hgrc":      {"hg", `hg init .; printf '[hooks]\npre-status =\n  cd env; sh rc\n' > .hg/hgrc`, "env/rc", "hg status"},
		"a filter of an hgrc":      {"hg", `hg init .; echo x > b; hg add b; printf '[encode]\nb = ./env/rc\n' > .hg/hgrc; chmod +x env/rc; sleep 1; touch b`, "env/rc", "hg diff"},
		"an extension of an hgrc":  {"hg", `hg init .; printf '[extensions]\nx = ./env/rc\n' > .hg/hgrc`, "env/rc", "true"},
		"a Python hook of an hgrc": {"hg", `hg init .; printf '[hooks]\npre-status = python:env/rc:f\n' > .hg/hgrc`, "env/rc", "true"},
		"an hgrc that is included": {"hg", `hg init .; printf '%%include ../first\n' > .hg/hgrc; printf '%%include env/rc\n' > first`, "env/rc", "hg status"},
	} {
		t.Run(name, func(t *testing.T) {
			sandboxtest.SkipUnsampled(t)
			t.Parallel()
			_, missing := exec.LookPath(c.program)
			if missing != nil && c.program == "hg" {
				t.Skip("not run, there is no hg")
			}
			for _, level := range levels(t) {
				if level == proc.Off {
					continue
				}
				p := newProject(t)
				p.user("mkdir env; echo > env/rc; " + c.before + "\n" + `[ ! -e .envrc ] || ! command -v direnv >/dev/null || direnv allow .`)
				r := p.runner(level)
				run(t, r, p.command("true"))
				evil := "printf '#!/bin/sh\\ntouch " + p.mark + "\\n' > " + c.file
				if c.program == "hg" && !strings.HasPrefix(name, "a hook") && !strings.HasPrefix(name, "a script") && !strings.HasPrefix(name, "a filter") {
					evil = "printf '[hooks]\\npre-status = touch " + p.mark + "\\n' > " + c.file
				}
				for _, script := range []string{evil, "rm " + c.file + "; " + evil, "mv env e; mkdir env; " + evil} {
					result, out := run(t, r, p.command(script))
					text := fmt.Sprint(level, script, result.Reverted, out)
					require.Contains(t, result.Reverted, filepath.Join(p.root, c.file), text)
					if missing == nil {
						require.False(t, p.ran("LANG=C "+c.look+"; :"), text)
					}
				}
				// A file that a command removes is not written by the next one.
				run(t, r, p.command("rm -r env"))
				run(t, r, p.command("mkdir env; "+evil))
				require.NoFileExists(t, filepath.Join(p.root, c.file), level)
			}
		})
	}
}

// TestVirtualEnvironmentsCanBeMade: what an .envrc names and does not exist, a
// command can make, and it can replace the script of a virtual environment.
func TestVirtualEnvironmentsCanBeMade(t *testing.T) {
	t.Parallel()
	for _, level := range levels(t) {
		if level == proc.Off {
			continue
		}
		p := newProject(t)
		p.user(`printf 'source .venv/bin/activate\nsource_env_if_exists later\ndotenv .env\n' > .envrc; mkdir -p .venv/bin; echo old > .venv/bin/activate; echo A=1 > .env`)
		r := p.runner(level)
		result, out := run(t, r, p.command(`rm -r .venv; mkdir -p .venv/bin; echo new > .venv/bin/activate; echo x > later; echo A=2 > .env`))
		require.Zero(t, result.ExitCode, out)
		require.Empty(t, result.Reverted, level)
		text, err := os.ReadFile(filepath.Join(p.root, ".venv/bin/activate"))
		require.NoError(t, err)
		require.Equal(t, "new\n", string(text))
	}
}
