package upstream

import (
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// checkAlive ends a process without hosts if it sends nothing for two QuietTimes, also
// when pinged. It is called when the last host has left requests unanswered. While there
// are hosts, their watchdogs decide.
func (process *sharedProcess) checkAlive() {
	process.mu.Lock()
	before := process.heard
	if process.initResult != nil {
		process.sendOwnRequest("ping", nil)
	}
	process.mu.Unlock()
	late := time.NewTimer(2 * process.cfg.QuietTime)
	defer late.Stop()
	select {
	case <-process.ended:
		return
	case <-late.C:
	}
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.heard == before && len(process.hosts) == 0 {
		process.failLocked(errIdle)
	}
}

// watchStopped ends a process that is stopped (SIGSTOP) while hosts wait for answers.
func (process *sharedProcess) watchStopped() {
	look := time.NewTicker(stopCheckInterval)
	defer look.Stop()
	var heard uint64
	for stops := 0; ; {
		select {
		case <-look.C:
		case <-process.ended:
			return
		}
		stopped := isStopped(process.out.proc.pid())
		process.mu.Lock()
		if len(process.pending) == 0 {
			process.watched = false
			process.mu.Unlock()
			return
		}
		if stopped && process.heard == heard {
			stops++
		} else {
			stops, heard = 0, process.heard
		}
		if stops == maxStopsSeen {
			process.failLocked(toolerr.New(toolerr.ServerOffline, "the server's process was stopped (SIGSTOP or similar) and was killed"))
		}
		process.mu.Unlock()
	}
}
