package proc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"syscall"
	"time"

	"golang.org/x/sys/windows"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// candidates are the levels that Highest tries: none of this system confines files.
func candidates() []Level { return []Level{L1} }

// runProbe runs the self-test of a level.
func (r *Runner) runProbe(ctx context.Context, level Level) (report Report) {
	report = Report{Level: level}
	if level != Restricted {
		report.Failure = "not for Windows, which has only restricted: that level takes away privileges and ends all processes, but confines neither files nor the network"
		return report
	}
	dir, err := os.MkdirTemp(r.config.TempDir, "toolroom-selftest-")
	if err != nil {
		report.Failure = "no temporary directory: " + err.Error()
		return report
	}
	defer os.RemoveAll(dir)
	c := r.config
	c.CacheDir, c.TempDir, c.Linger = "", dir, time.Millisecond
	own := newRunner(c)
	defer own.Close()
	self, err := selfPath()
	if err != nil {
		report.Failure = err.Error()
		return report
	}
	p, err := own.start(ctx, Command{Script: "probe", Dir: dir, Timeout: 30 * time.Second}, level, []string{self, supervise.RoleArg, portableProbeRole})
	if err != nil {
		report.Failure = err.Error()
		return report
	}
	result := p.Wait()
	printed := p.Output().Excerpt(0)
	if err := json.Unmarshal([]byte(printed.Text()), &report.Checks); err != nil || len(report.Checks) == 0 {
		report.Failure = fmt.Sprintf("the self-test ended with %s %d and said %.200q", result.Ending, result.ExitCode, printed.Text())
		return report
	}
	ended := Check{Name: "leave a process running", State: Enforced, Needed: true, Why: "it was ended"}
	if result.LeftBehind == 0 {
		ended.State, ended.Why = NotEnforced, "the process that the self-test left was not found"
	}
	report.Checks = append(report.Checks, ended)
	return report
}

// runProbeRole is the main function of this program in another role. It returns the exit code.
func runProbeRole(role string) int {
	switch role {
	case portableProbeRole:
		return runPrivilegeProbe()
	case sleepRole:
		time.Sleep(time.Minute)
		return 0
	}
	fmt.Fprintf(os.Stderr, "%s: role %q is unknown\n", os.Args[0], role)
	return 2
}

// sleepRole is the role of the process that the self-test leaves running.
const sleepRole = "sleep"

// runPrivilegeProbe prints what this process may do as JSON, and returns the exit code.
func runPrivilegeProbe() int {
	p := &prober{}
	temp, err := os.CreateTemp("", "probe")
	if p.recordAllowed("write in TEMP", err); err == nil {
		temp.Close()
	}
	privileges, err := supervise.TokenPrivileges()
	if err == nil && privileges > 1 { // SeChangeNotifyPrivilege passes through directories
		err = nil
		p.recordBlocked("use privileges", true, nil)
	} else {
		p.recordBlocked("use privileges", true, errorOr(err, "there are none"))
	}
	self, err := selfPath()
	if err == nil {
		err = exec.Command(self, supervise.RoleArg, sleepRole).Start()
	}
	p.recordAllowed("start processes", err)
	p.recordBlocked("leave the job", true, leaveJob(self))
	if err := json.NewEncoder(os.Stdout).Encode(p.checks); err != nil {
		return 2
	}
	return 0
}

// errorOr returns err, or an error with a text.
func errorOr(err error, text string) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("%s", text)
}

// leaveJob starts a process outside the job. It returns an error if that is not possible.
func leaveJob(self string) error {
	cmd := exec.Command(self, supervise.RoleArg, sleepRole)
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_BREAKAWAY_FROM_JOB}
	if err := cmd.Start(); err != nil {
		return err
	}
	if in, err := supervise.InJob(cmd.Process.Pid); err != nil || !in {
		return nil // it may be outside
	}
	return errors.New("the process is in the job")
}
