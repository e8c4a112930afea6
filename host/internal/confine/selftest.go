package confine

import (
	"context"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// selfTest tests whether this machine enforces a level. It returns a
// SANDBOX_UNAVAILABLE error if it does not. It keeps the report of a passed test, since each
// takes some 20 ms.
func (c *Confiner) selfTest(ctx context.Context, level proc.Level) (*proc.Report, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if report := c.tested[level]; report != nil {
		return report, nil
	}
	temp, err := c.store.CommandTempsDir()
	if err != nil {
		return nil, err
	}
	runner, err := proc.New(proc.Config{Level: level, TempDir: temp})
	if err != nil {
		return nil, err
	}
	defer runner.Close() //nolint:errcheck // always nil
	report, err := runner.SelfTest(ctx)
	if err != nil {
		if failures := report.Failures(); ctx.Err() == nil && failures != "" {
			err = toolerr.New(toolerr.SandboxUnavailable, "this machine cannot confine the server (%s); sandbox: off starts it without confinement", failures)
		}
		return nil, err
	}
	c.tested[level] = &report
	return &report, nil
}

// TestLevelEarly tests the level of these settings in advance, so that the first server need
// not wait for it. It ignores failures, which the start reports.
func (c *Confiner) TestLevelEarly(ctx context.Context, s Settings) {
	c.selfTest(ctx, s.Level) //nolint:errcheck // see above
}

// The self-test starts this program again in another role. Programs that embed the host
// (package host/app) need not call proc.Init.
func init() { proc.Init() }
