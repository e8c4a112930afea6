package proc

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// candidates are the levels that Highest tries, from the highest down.
func candidates() []Level { return []Level{L2, L1} }

// runProbe runs the probe as a command at a level, in roots made for it, and
// returns its report. Report.Failure says why it could not run.
func (r *Runner) runProbe(ctx context.Context, level Level) (report Report) {
	if level != L2 && level != L1 {
		return Report{Level: level, Failure: "not for Linux: use L2 or L1"}
	}
	report = Report{Level: level, Landlock: supervise.LandlockABI()}
	temp, err := r.takeTemp()
	dir := temp.path
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		report.Failure = "no temporary directory: " + err.Error()
		return report
	}
	defer temp.remove()
	b, closeTargets, err := makeProbeTargets(dir, level, r.config.Network)
	defer closeTargets()
	if err != nil {
		report.Failure = "the self-test could not be prepared: " + err.Error()
		return report
	}
	b.NoUnix = r.noUnixSockets
	text, err := json.Marshal(b)
	if err != nil {
		report.Failure = err.Error()
		return report
	}
	c := r.config
	c.Environ, c.Linger = append(slices.Clone(r.config.Environ), "HOME="+filepath.Join(dir, "home")), time.Millisecond
	c.Writable, c.Sockets, c.CacheDir, c.TempDir = nil, nil, "", filepath.Join(dir, "own")
	own := newRunner(c)
	own.noUnixSockets = r.noUnixSockets
	p, err := own.start(ctx, Command{
		Script: "probe", Dir: b.Root, Stdin: text, Timeout: 30 * time.Second, Rules: probeRules{b.Root, b.ReadOnlyRoot, b.SecretDir},
	}, level, []string{supervise.Self, supervise.RoleArg, probeRole})
	if err != nil {
		report.Failure = err.Error()
		return report
	}
	result := p.Wait()
	own.Close()
	printed := p.Output().Excerpt(0)
	if err := json.Unmarshal([]byte(printed.Text()), &report.Checks); err != nil || len(report.Checks) == 0 {
		report.Failure = fmt.Sprintf("the self-test ended with %s %d and said %.200q", result.Ending, result.ExitCode, printed.Text())
		return report
	}
	report.Checks = append(report.Checks, r.killLeftRunning(b)...)
	return report
}

// killLeftRunning kills the process that the probe left running, and returns a
// check that failed if the sandbox had not killed it already.
func (r *Runner) killLeftRunning(b probeTargets) []Check {
	check := Check{Name: "leave a process running", State: Enforced, Needed: true, Why: "a process in its own session was killed"}
	if left := supervise.KillMarked(b.Mark); left > 0 {
		check.State, check.Why = NotEnforced, fmt.Sprintf("%d processes were still running", left)
	}
	return []Check{check}
}
