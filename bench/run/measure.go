//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// sample is the result of one run. Fields that do not apply are zero.
type sample struct {
	value float64       // in the table's unit
	cpu   time.Duration // user and system, of the process and its children
	rss   int64         // peak, bytes
}

// subject is one row of a table, with the function that runs it once.
type subject struct {
	name, command string
	ours          bool
	run           func() (sample, error)
}

// series is a subject with its samples.
type series struct {
	subject
	samples []sample
}

// inTurn runs all subjects once, then all again, in a rotating order. An additional
// first round fills caches and does not count.
func inTurn(runs int, subjects []subject) ([]series, error) {
	all := make([]series, len(subjects))
	for i, s := range subjects {
		all[i].subject = s
	}
	for round := range runs + 1 {
		for i := range all {
			s := &all[(i+round)%len(all)]
			got, err := s.run()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.name, err)
			}
			if round > 0 {
				s.samples = append(s.samples, got)
			}
		}
	}
	return all, nil
}

// process runs a command to its end and discards its output. The value is in
// milliseconds.
func process(command []string) (sample, error) {
	cmd := exec.Command(command[0], command[1:]...)
	var errors bytes.Buffer
	cmd.Stderr = &errors
	start := time.Now()
	if err := cmd.Run(); err != nil {
		return sample{}, fmt.Errorf("%s: %w: %s", cmd, err, firstLine(errors.String()))
	}
	wall := time.Since(start)
	got := usage(cmd.ProcessState)
	got.value = milliseconds(wall)
	return got, nil
}

// usage returns the resources that an ended process used.
func usage(state *os.ProcessState) sample {
	got := sample{cpu: state.UserTime() + state.SystemTime()}
	if rusage, ok := state.SysUsage().(*syscall.Rusage); ok {
		got.rss = int64(rusage.Maxrss)
		if runtime.GOOS != "darwin" { // bytes on darwin, KiB elsewhere
			got.rss <<= 10
		}
	}
	return got
}

// peak returns the peak memory of a running process, 0 where the system does not tell
// it. It is more exact than the figure of usage: there a process inherits the peak of
// its parent.
func peak(pid int) int64 {
	mib, err := statusMiB(pid, "VmHWM:")
	if err != nil {
		return 0
	}
	return int64(mib * (1 << 20))
}

// withPeak replaces the peak by the more exact figure, unless that is 0.
func (s sample) withPeak(bytes int64) sample {
	if bytes > 0 {
		s.rss = bytes
	}
	return s
}

// statusMiB returns a size of /proc/PID/status (Linux) in MiB.
func statusMiB(pid int, field string) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, field); ok {
			kib, err := strconv.Atoi(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")))
			return float64(kib) / 1024, err
		}
	}
	return 0, fmt.Errorf("no %s", field)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
