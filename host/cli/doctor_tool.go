package cli

import (
	"context"
	"fmt"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/toolroom-mcp/toolroom/host/checkup"
)

// checkTool checks one program.
func (p *program) checkTool(ctx context.Context, command []string, asJSON bool) error {
	found, err := exec.LookPath(command[0])
	if err == nil {
		found, err = filepath.Abs(found)
	}
	if err != nil {
		return exit(exitUsage, fmt.Errorf("--tool %s: %w", command[0], err))
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	command[0] = found
	checks, err := checkup.Run(ctx, checkup.Config{Command: command, Env: p.environ})
	if err != nil {
		return exit(exitFailed, err)
	}
	bad := 0
	for _, c := range checks {
		if c.Level == checkup.Bad {
			bad++
		}
		if asJSON {
			continue
		}
		mark := map[checkup.Level]string{checkup.Good: "ok  ", checkup.Weak: "warn", checkup.Bad: "FAIL"}[c.Level]
		if err := p.printf("%s  %s: %s\n", mark, c.Name, printable(c.Detail)); err != nil {
			return err
		}
	}
	if asJSON {
		if err := p.printJSON(checks); err != nil {
			return err
		}
	}
	if bad > 0 {
		return exit(exitFailed, errPrinted)
	}
	return nil
}
