package proc_test

import (
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// The Go runtime signals its own threads (SIGURG). If it signals a thread that
// makes a call for the command, the command must not see an interrupted call.
func TestSignalsOfTheSupervisorInterruptNoConnect(t *testing.T) {
	t.Parallel()
	if !contains(levels(t), proc.L2) {
		t.Skip("L2 is not available")
	}
	s := newScene(t)
	c := attack{needs: "perl", script: `perl -MIO::Socket::UNIX -e '$l = IO::Socket::UNIX->new(Local => "b", Listen => 1) or die;
		for (1..4) { if (!fork) { IO::Socket::UNIX->new(Peer => "b") or die; exit } } sleep 1; $l->accept or die for 1..4;
		for (1..4) { wait; die if $? }'`}
	if program := missing(c); program != "" {
		t.Skip("no " + program)
	}
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			for _, pid := range children(t) {
				tasks, _ := filepath.Glob("/proc/" + pid + "/task/*")
				for _, task := range tasks {
					process, _ := strconv.Atoi(pid)
					thread, _ := strconv.Atoi(filepath.Base(task))
					unix.Tgkill(process, thread, unix.SIGURG)
				}
			}
			select {
			case <-end:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	defer func() { close(end); <-ended }()
	result, out := run(t, s.runner(t, proc.L2), s.command(c.script))
	require.Zero(t, result.ExitCode, out)
}
