package supervise

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// cpuInterval is the time between two measurements of a command with a CPU limit.
	cpuInterval = 50 * time.Millisecond

	// cpuTick is the unit of the times in /proc/PID/stat: USER_HZ is 100 on every
	// architecture that Go supports.
	cpuTick = 10 * time.Millisecond

	// cpuBurst is the longest time for which an idle command saves processor time.
	cpuBurst = time.Second
)

// cpuLimiter decides when the processes of a command are stopped, so that they use no
// more than a share of the processor time. A control group would do the same, but an
// ordinary user cannot create one on most machines.
type cpuLimiter struct {
	ticker  *time.Ticker // never ticks without a limit
	percent int64        // of one processor
	last    time.Time    // of the last measurement
	used    time.Duration
	credit  time.Duration // processor time that may be used; negative: too much was used
	stopped bool
}

// newCPULimiter returns a limiter for percent of one processor. With percent <=
// 0 its ticker never ticks.
func newCPULimiter(percent int64) *cpuLimiter {
	l := &cpuLimiter{percent: percent, last: time.Now(), ticker: time.NewTicker(time.Hour)}
	if percent > 0 {
		l.ticker.Reset(cpuInterval)
	} else {
		l.ticker.Stop()
	}
	return l
}

// update takes the processor time that the command has used up to now, and
// reports whether its processes must be stopped now.
func (l *cpuLimiter) update(now time.Time, used time.Duration) (stop bool) {
	share := func(d time.Duration) time.Duration { return d * time.Duration(l.percent) / 100 }
	// The sum is smaller than before if a process ended for which nobody waited.
	consumed := max(0, used-l.used)
	l.credit = min(l.credit+share(now.Sub(l.last)), share(cpuBurst)) - consumed
	l.last, l.used = now, used
	return l.credit < 0
}

// limitCPU stops the command's processes if they have used more than their
// share of processor time, and continues stopped ones once they have credit
// again.
func (g *commandMonitor) limitCPU(l *cpuLimiter, now time.Time) {
	stop := l.update(now, commandCPUTime())
	switch {
	case stop && isPIDNamespaceInit():
		unix.Kill(-1, unix.SIGSTOP)
	case stop:
		stopDescendants(false)
	case l.stopped && isPIDNamespaceInit():
		unix.Kill(-1, unix.SIGCONT)
	case l.stopped:
		for pid := range descendants(false) {
			unix.Kill(pid, unix.SIGCONT)
		}
	}
	l.stopped = stop
}

// commandCPUTime returns the processor time that the command's processes have used:
// those that run, and those that ended and were waited for.
func commandCPUTime() (sum time.Duration) {
	var ended unix.Rusage
	if unix.Getrusage(unix.RUSAGE_CHILDREN, &ended) == nil {
		sum = time.Duration(ended.Utime.Nano() + ended.Stime.Nano())
	}
	for pid := range descendants(false) {
		sum += cpuTimeOf(pid)
	}
	return sum
}

// cpuTimeOf returns the processor time of a process and of its children that it has
// waited for; 0 if it has ended.
func cpuTimeOf(pid int) (sum time.Duration) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 15 {
		return 0
	}
	for _, field := range fields[11:15] { // utime, stime, cutime, cstime
		ticks, _ := strconv.ParseInt(string(field), 10, 64)
		sum += time.Duration(ticks) * cpuTick
	}
	return sum
}
