package upstream

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Beyond the bound, a cancelled request counts as one of an unknown host, so that the server gets
// no roots of which it is not certain that they are those of its client. Expired ones need
// no room.
func TestCancelledRequestsOfHostsAboveTheBound(t *testing.T) {
	process := newSharedProcess("", Config{}, &sync.WaitGroup{})
	a, b := &attachedHost{number: 1}, &attachedHost{number: 2}
	process.hosts[1], process.hosts[2] = a, b
	cancel := func(id uint64, u *attachedHost) {
		process.pending[id] = sharedRequest{u, true}
		process.recordCancelled(id)
	}
	for id := range uint64(maxCancelled) {
		cancel(id, a)
	}
	require.Equal(t, map[uint64]*attachedHost{1: a}, process.busyHosts())
	cancel(maxCancelled, b)
	require.Equal(t, map[uint64]*attachedHost{0: nil, 1: a}, process.busyHosts())
	clear(process.cancelled)
	require.Equal(t, map[uint64]*attachedHost{0: nil}, process.busyHosts())

	process.forgotten = time.Now().Add(-cancelledTime - time.Second)
	require.Empty(t, process.busyHosts())
	for id := range uint64(maxCancelled) {
		process.cancelled[id] = cancelledRequest{1, time.Now().Add(-cancelledTime - time.Second)}
	}
	cancel(maxCancelled, b)
	require.Equal(t, map[uint64]*attachedHost{2: b}, process.busyHosts())
}

// The completion of the newest elicitations is never lost to ones that were not completed.
func TestElicitationsOfHostsAboveTheBound(t *testing.T) {
	process := newSharedProcess("", Config{}, &sync.WaitGroup{})
	u := &attachedHost{number: 1}
	for i := range maxElicited + 10 {
		id := fmt.Sprint(i)
		process.recordElicitation(u, fmt.Appendf(nil, `{"elicitationId":%q}`, id))
		require.Equal(t, u, process.elicited[id])
	}
	require.Len(t, process.elicited, maxElicited)
}

// The message about the end is the last one for the hosts. Later ones would start writers while
// notifyEnd waits for those that run.
func TestNothingIsSentToHostsAfterTheEnd(t *testing.T) {
	var work sync.WaitGroup
	process := newSharedProcess("", Config{}, &work)
	ours, theirs := net.Pipe()
	u := &attachedHost{number: 1, conn: ours, out: newWriter(ours, time.Minute)}
	process.hosts[1] = u
	process.fail(errIdle)
	process.notifyEnd()
	process.notifyRefusal("example.com")
	process.retire()
	received := make(chan string)
	go func() {
		text, _ := io.ReadAll(theirs) //nolint:errcheck // the text tells
		received <- string(text)
	}()
	work.Wait()
	u.out.close()
	u.out.awaitIdle()
	require.NoError(t, ours.Close())
	text := <-received
	require.Equal(t, 1, strings.Count(text, "\n"), text)
	require.Contains(t, text, methodEnded)
}

// startedProcess returns a process that has an id and no program.
func startedProcess() *process {
	return &process{cmd: &exec.Cmd{Process: &os.Process{Pid: 1}}, stderr: &stderrTail{}}
}

// A server can ask its sandbox for a host before the host that starts it is added.
func TestRefusalBeforeTheFirstHost(t *testing.T) {
	var work sync.WaitGroup
	process := newSharedProcess("", Config{}, &work)
	process.out = &stdio{proc: startedProcess()}
	for i := range 2 * maxUnsentRefusals {
		process.notifyRefusal(fmt.Sprintf("%d.example", i))
	}
	ours, theirs := net.Pipe()
	process.mu.Lock()
	u := &attachedHost{conn: ours, out: newWriter(ours, time.Minute), requestID: json.RawMessage("1")}
	process.add(u)
	require.Empty(t, process.refusals)
	process.mu.Unlock()
	process.notifyRefusal("later.example")
	lines := bufio.NewScanner(theirs)
	for i := range maxUnsentRefusals + 2 {
		require.True(t, lines.Scan())
		switch {
		case i == 0:
			require.Contains(t, lines.Text(), `"id":1`)
		case i <= maxUnsentRefusals:
			require.Contains(t, lines.Text(), fmt.Sprintf(`"%d.example"`, i-1))
		default:
			require.Contains(t, lines.Text(), `"later.example"`)
		}
	}
	u.out.close()
	u.out.awaitIdle()
	require.NoError(t, ours.Close())
}

// A process that has ended takes no line for its server: its writer may be waited for already.
func TestNothingIsSentToTheServerAfterTheEnd(t *testing.T) {
	for range 100 {
		var work sync.WaitGroup
		process := newSharedProcess("", Config{}, &work)
		process.out = &stdio{writer: newWriter(&slowPipe{}, time.Hour)}
		process.fail(errIdle)
		process.out.writer.mu.Lock()
		closed := process.out.writer.closed
		process.out.writer.mu.Unlock()
		work.Wait()
		require.True(t, closed)
	}
}
