package cli

import (
	"context"
	"fmt"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/toolroom-mcp/toolroom/host/internal/diagnose/servercheck"
)

// checkTool checks a program, and prints each check at once, or all as JSON at the end. It
// returns an exit error if a check is bad.
func (p *program) checkTool(ctx context.Context, command []string, asJSON bool) error {
	found, err := exec.LookPath(command[0])
	if err == nil {
		found, err = filepath.Abs(found)
	}
	if err != nil {
		return withStatus(exitUsage, fmt.Errorf("--tool %s: not a program in PATH (%w); give its path", command[0], err))
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	command[0] = found
	cfg := servercheck.Config{Command: command, Env: p.environ}
	var printing error
	if !asJSON {
		cfg.OnCheck = func(c servercheck.Check) {
			if printing == nil {
				printing = p.printCheck(c)
			}
		}
	}
	checks, err := servercheck.Run(ctx, cfg)
	if asJSON && err == nil {
		printing = p.printJSON(checks)
	}
	switch {
	case err != nil:
		return withStatus(exitFailed, err)
	case printing != nil:
		return printing
	case slices.ContainsFunc(checks, func(c servercheck.Check) bool { return c.Level == servercheck.Bad }):
		return withStatus(exitFailed, errPrinted)
	}
	return nil
}

// printCheck prints a check of a program.
func (p *program) printCheck(c servercheck.Check) error {
	mark := map[servercheck.Level]string{servercheck.Good: "ok  ", servercheck.Weak: "warn", servercheck.Bad: "FAIL"}[c.Level]
	return p.printf("%s  %s: %s\n", mark, c.Name, printable(c.Detail))
}
