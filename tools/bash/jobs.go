package main

import (
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// jobs holds the commands that keep running after their call was answered. It
// is safe for concurrent use.
type jobs struct {
	mu  sync.Mutex
	all []*job // oldest first
}

// job is a command that keeps running after its call was answered.
type job struct {
	id string
	*runningCommand

	inputSlot chan struct{} // holds an item while an input is being written

	mu     sync.Mutex
	cursor int64 // offset up to which its output was shown
}

// row is an entry of the list of jobs.
type row struct {
	JobID      string `json:"job_id"`
	Command    string `json:"command"`
	Running    bool   `json:"running"`
	ExitCode   *int   `json:"exit_code,omitempty"`
	DurationMS int64  `json:"duration_ms"`
	Bytes      int64  `json:"output_bytes"`
}

// isFull reports whether no further job is possible.
func (js *jobs) isFull() bool {
	js.mu.Lock()
	defer js.mu.Unlock()
	return !js.dropEndedIfFull()
}

// dropEndedIfFull drops the oldest ended job if there are maxJobs, and reports
// whether a job can be added. The caller holds mu.
func (js *jobs) dropEndedIfFull() bool {
	if len(js.all) < maxJobs {
		return true
	}
	for i, j := range js.all {
		if j.hasEnded() {
			j.output.Close()
			js.all = append(js.all[:i], js.all[i+1:]...)
			return true
		}
	}
	return false
}

// fullError returns the error for a job too many, LIMIT_REACHED.
func (js *jobs) fullError() error {
	return toolerr.New(toolerr.LimitReached, "%d jobs are running, the maximum: end one with bash_job {\"action\":\"kill\"}; {\"action\":\"list\"} shows them", maxJobs)
}

// add makes a command a job and returns it. To make room it drops the oldest ended job.
// ok is false if maxJobs jobs are running.
func (js *jobs) add(r *runningCommand) (j *job, ok bool) {
	js.mu.Lock()
	defer js.mu.Unlock()
	if !js.dropEndedIfFull() {
		return nil, false
	}
	// The name is not used again, even after a restart.
	j = &job{id: "j" + strings.ToLower(rand.Text()[:5]), runningCommand: r, inputSlot: make(chan struct{}, 1)}
	js.all = append(js.all, j)
	return j, true
}

// list returns all jobs, oldest first.
func (js *jobs) list() []*job {
	js.mu.Lock()
	defer js.mu.Unlock()
	return append([]*job(nil), js.all...)
}

// find returns the job with an id. It returns JOB_NOT_FOUND, with the known
// ids, for an unknown id.
func (js *jobs) find(id string) (*job, error) {
	var known []string
	for _, j := range js.list() {
		if j.id == id {
			return j, nil
		}
		known = append(known, j.id)
	}
	if len(known) == 0 {
		return nil, toolerr.New(toolerr.JobNotFound, "no job %q: no jobs exist, because jobs end with the server; run the command again", shorten(escapeUnsafe(id).text, 40))
	}
	return nil, toolerr.New(toolerr.JobNotFound, "no job %q; the jobs are %s", shorten(escapeUnsafe(id).text, 40), strings.Join(known, ", "))
}

// close releases the output of all jobs, which must have ended.
func (js *jobs) close() {
	for _, j := range js.list() {
		j.output.Close()
	}
}

// stateText describes the job's state, for the start of the last line.
func (j *job) stateText() string {
	if !j.hasEnded() {
		return "running for " + formatDuration(time.Since(j.started))
	}
	result := j.process.Wait()
	why := ""
	if result.Ending == proc.TimedOut {
		why = ", ended at its timeout"
	}
	return exitText(result, j.args.Command) + why + " · " + formatDuration(result.Duration)
}

// meta returns the metadata of every answer about the job.
func (j *job) meta() meta {
	m := meta{
		JobID: j.id, Running: !j.hasEnded(), DurationMS: time.Since(j.started).Milliseconds(), Bytes: j.output.Size(), Lines: j.output.Lines(),
		Sandbox: newSandboxMeta(j.report, j.tool.config.Network, nil),
	}
	if !m.Running {
		result := j.process.Wait()
		m.ExitCode, m.DurationMS, m.Ending = &result.ExitCode, result.Duration.Milliseconds(), string(result.Ending)
		m.Changes = result.Undo
		m.LeftBehind, m.Reverted = result.LeftBehind, displayPaths(j.fs, result.Reverted)
		m.RevertedCopies = result.CopyDirs
		m.Sandbox = newSandboxMeta(j.report, j.tool.config.Network, result.Gaps)
	}
	if name, size, _ := j.output.Spill(); name != "" {
		m.File, m.FileBytes = name, size
	}
	return m
}

// guardTexts describes the protected files that an ended job changed, and what
// was not protected from it.
func (j *job) guardTexts() (texts []string) {
	result := j.process.Wait()
	if len(result.Reverted) > 0 {
		texts = append(texts, revertedText(j.fs, result.Reverted, result.CopyDirs))
	}
	for _, gap := range result.Unguarded {
		texts = append(texts, unguardedText(gap))
	}
	return texts
}

// row returns the job's entry in the list of jobs.
func (j *job) row() row {
	m := j.meta()
	return row{JobID: j.id, Command: shorten(escapeUnsafe(j.args.Command).text, 200), Running: m.Running, ExitCode: m.ExitCode, DurationMS: m.DurationMS, Bytes: m.Bytes}
}

// String returns the job's line in the list of jobs.
func (j *job) String() string {
	return fmt.Sprintf("%s  %s  %d bytes  %s", j.id, j.stateText(), j.output.Size(), shorten(strings.Join(strings.Fields(escapeUnsafe(j.args.Command).text), " "), 100))
}
