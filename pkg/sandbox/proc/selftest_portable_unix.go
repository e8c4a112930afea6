//go:build unix

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

// runPortableSelfTest runs the portable probe as a command at a level, in roots made for
// it, and returns its report. Report.Failure says why it could not run.
func (r *Runner) runPortableSelfTest(ctx context.Context, level Level) (report Report) {
	report = Report{Level: level}
	fail := func(format string, args ...any) Report {
		report.Failure = fmt.Sprintf(format, args...)
		return report
	}
	self, err := selfPath()
	if err != nil {
		return fail("the path of this program is not known: %v", err)
	}
	temp, err := r.takeTemp()
	dir := temp.path
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return fail("no temporary directory: %v", err)
	}
	defer temp.remove()
	targets, closeListeners, err := makePortableTargets(dir, level, r.config.Network)
	defer closeListeners()
	if err != nil {
		return fail("the self-test could not be prepared: %v", err)
	}
	text, err := json.Marshal(targets)
	if err != nil {
		return fail("%v", err)
	}
	c := r.config
	c.Environ, c.Linger = append(slices.Clone(r.config.Environ), "HOME="+targets.Root), time.Millisecond
	c.Writable, c.Sockets, c.CacheDir, c.TempDir = nil, nil, "", filepath.Join(dir, "own")
	own := newRunner(c)
	defer own.Close()
	p, err := own.start(ctx, Command{
		Script: "probe", Dir: targets.Root, Stdin: text, Timeout: 30 * time.Second, Rules: probeRules{targets.Root, targets.ReadOnlyRoot, targets.SecretDir},
	}, level, []string{self, supervise.RoleArg, portableProbeRole})
	if err != nil {
		return fail("%v", err)
	}
	result := p.Wait()
	printed := p.Output().Excerpt(0)
	if err := json.Unmarshal([]byte(printed.Text()), &report.Checks); err != nil || len(report.Checks) == 0 {
		return fail("the self-test ended with %s %d and said %.200q", result.Ending, result.ExitCode, printed.Text())
	}
	return report
}
