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

// maxJobs is how many there may be. One that has ended makes room.
const maxJobs = 32

// jobs are the commands that go on after their call was answered.
type jobs struct {
	mu  sync.Mutex
	all []*job // oldest first
}

// job is one of them.
type job struct {
	id string
	*running

	writing chan struct{} // holds one while an input waits to be read

	mu     sync.Mutex
	cursor int64 // up to where its output was shown
}

// row is a job in the list of them.
type row struct {
	JobID      string `json:"job_id"`
	Command    string `json:"command"`
	Running    bool   `json:"running"`
	ExitCode   *int   `json:"exit_code,omitempty"`
	DurationMS int64  `json:"duration_ms"`
	Bytes      int64  `json:"output_bytes"`
}

// over reports whether the job has ended.
func (j *job) over() bool { return j.finishes() }

// full reports whether there is no room for another job.
func (js *jobs) full() bool {
	js.mu.Lock()
	defer js.mu.Unlock()
	return !js.makeRoom()
}

// makeRoom forgets the oldest job that has ended if there are too many.
func (js *jobs) makeRoom() bool {
	if len(js.all) < maxJobs {
		return true
	}
	for i, j := range js.all {
		if j.over() {
			j.output.Close()
			js.all = append(js.all[:i], js.all[i+1:]...)
			return true
		}
	}
	return false
}

func (js *jobs) fullError() error {
	return toolerr.New(toolerr.LimitReached, "%d jobs are running, no more are possible: end one with bash_job {\"action\":\"kill\"}; {\"action\":\"list\"} shows them", maxJobs)
}

// add makes a job of a command.
func (js *jobs) add(r *running) (*job, bool) {
	js.mu.Lock()
	defer js.mu.Unlock()
	if !js.makeRoom() {
		return nil, false
	}
	// A name that is not used again, also not after a restart.
	j := &job{id: "j" + strings.ToLower(rand.Text()[:5]), running: r, writing: make(chan struct{}, 1)}
	js.all = append(js.all, j)
	return j, true
}

func (js *jobs) list() []*job {
	js.mu.Lock()
	defer js.mu.Unlock()
	return append([]*job(nil), js.all...)
}

func (js *jobs) find(id string) (*job, error) {
	var known []string
	for _, j := range js.list() {
		if j.id == id {
			return j, nil
		}
		known = append(known, j.id)
	}
	if len(known) == 0 {
		return nil, toolerr.New(toolerr.JobNotFound, "there is no job %q, and no other: jobs end with the server", shorten(safe(id).text, 40))
	}
	return nil, toolerr.New(toolerr.JobNotFound, "there is no job %q; there are %s", shorten(safe(id).text, 40), strings.Join(known, ", "))
}

// close frees what the jobs hold, once they have ended.
func (js *jobs) close() {
	for _, j := range js.list() {
		j.output.Close()
	}
}

// state says how the job does, as the last line of an answer begins.
func (j *job) state() string {
	if !j.over() {
		return "running for " + seconds(time.Since(j.started))
	}
	result := j.process.Wait()
	why := ""
	if result.Ending == proc.TimedOut {
		why = ", ended at its timeout"
	}
	return exitWords(result, j.args.Command) + why + " · " + seconds(result.Duration)
}

// meta is what is told of the job whatever was asked.
func (j *job) meta() meta {
	m := meta{
		JobID: j.id, Running: !j.over(), DurationMS: time.Since(j.started).Milliseconds(), Bytes: j.output.Size(), Lines: j.output.Lines(),
		Sandbox: newSandboxMeta(j.report, j.shell.config.Network, nil),
	}
	if !m.Running {
		result := j.process.Wait()
		m.ExitCode, m.DurationMS, m.Ending = &result.ExitCode, result.Duration.Milliseconds(), string(result.Ending)
		m.Changes = result.Undo
		m.LeftBehind, m.TakenBack = result.LeftBehind, displayed(j.fs, result.TakenBack)
		m.Aside = result.Aside
	}
	if name, size, _ := j.output.Spill(); name != "" {
		m.File, m.FileBytes = name, size
	}
	return m
}

func (j *job) row() row {
	m := j.meta()
	return row{JobID: j.id, Command: shorten(safe(j.args.Command).text, 200), Running: m.Running, ExitCode: m.ExitCode, DurationMS: m.DurationMS, Bytes: m.Bytes}
}

func (j *job) String() string {
	return fmt.Sprintf("%s  %s  %d bytes  %s", j.id, j.state(), j.output.Size(), shorten(strings.Join(strings.Fields(safe(j.args.Command).text), " "), 100))
}
