//go:build linux

package proc_test

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
)

func TestLimits(t *testing.T) {
	t.Parallel()
	for _, level := range levels(t) {
		t.Run(string(level), func(t *testing.T) {
			r := newRunner(t, proc.Config{Level: level, Limits: proc.Limits{FileBytes: 1 << 20, Files: 64}})
			c := proc.Command{Rules: rules{root: t.TempDir()}}
			c.Script = `ulimit -f -n -H -c | grep -o '[0-9]*$' | xargs; head -c 2000000 /dev/zero > "$TMPDIR/f"; stat -c %s "$TMPDIR/f"`
			_, out := run(t, r, c)
			require.Contains(t, out, "1024 64 0\n")
			require.Contains(t, out, "\n1048576\n", "a file ends at its limit")
		})
	}
	_, out := run(t, off(t), proc.Command{Script: "ulimit -v; [ $(ulimit -n) = $(ulimit -Hn) ] && echo hard; ulimit -f"})
	require.Equal(t, "unlimited\nhard\n4194304\n", out)
}

// Either the kernel limits the processes of a command, or the gaps say that it
// does not.
func TestLimitOfProcesses(t *testing.T) {
	t.Parallel()
	if !slices.Contains(levels(t), proc.L2) {
		t.Skip("no L2")
	}
	r := newRunner(t, proc.Config{Level: proc.L2, Limits: proc.Limits{Processes: 20}})
	report, err := r.SelfTest(context.Background())
	require.NoError(t, err)
	result, out := run(t, r, proc.Command{Script: "for i in {1..60}; do sleep 5 & done; kill $(jobs -p)", Rules: rules{root: t.TempDir()}})
	limited := result.ExitCode != 0 || strings.Contains(out, "fork")
	require.NotEqual(t, limited, slices.Contains(report.Gaps(), "the number of processes, which the kernel does not limit for root"), out)
}

func TestMemoryOfTheTreeIsBounded(t *testing.T) {
	if missing(attack{needs: "perl"}) != "" {
		t.Skip("no perl")
	}
	for _, level := range levels(t) {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, proc.Config{Level: level, Limits: proc.Limits{Memory: 64 << 20}})
			result, out := run(t, r, proc.Command{
				Script: `for i in 1 2 3 4; do perl -e '$x = "x" x 30_000_000; sleep 1000' & done; wait`, Rules: rules{root: t.TempDir()},
			})
			require.Equal(t, proc.OverMemory, result.Ending, out)
		})
	}
}

// inPython returns a script for Python code that holds 250 MiB of memory out
// of sight.
func inPython(code string) string {
	return "exec /usr/bin/python3 - <<'END'\nimport os, time, mmap, socket\ndef filled():\n    f = os.memfd_create('a')\n" +
		"    for i in range(250): os.write(f, b'x' * (1 << 20))\n    return f\n" + code + "\nprint('there', flush=True); time.sleep(1000)\nEND"
}

// Memory that no process has mapped counts too.
func TestMemoryThatIsNotMapped(t *testing.T) {
	// The command may be ended as soon as it has passed the limit.
	for name, script := range map[string]string{
		"memfd":    `exec /usr/bin/python3 -c 'import os,time; f=os.memfd_create("a"); print("there", flush=True); [os.write(f, b"x" * (1 << 20)) for i in range(90)]; time.sleep(1000)'`,
		"/dev/shm": `echo there; head -c 90000000 /dev/zero > /dev/shm/x; sleep 1000`,
	} {
		if strings.Contains(script, "python3") && missing(attack{needs: "/usr/bin/python3"}) != "" { // at L1 a Python in another user's home cannot be run
			continue
		}
		for _, level := range levels(t) {
			if name == "/dev/shm" && level != proc.L2 { // at L1 it is the machine's, or not accessible
				continue
			}
			t.Run(name+" "+string(level), func(t *testing.T) {
				t.Parallel()
				r := newRunner(t, proc.Config{Level: level, Limits: proc.Limits{Memory: 64 << 20}})
				result, out := run(t, r, proc.Command{Script: script, Rules: rules{root: t.TempDir()}, Timeout: time.Minute})
				require.Equal(t, proc.OverMemory, result.Ending, out)
				require.Contains(t, out, "there")
			})
		}
	}
}

// pythonHog returns a script for Python code that holds 250 MB of memory where
// the limit has to look for it. The code calls hold() when it has the memory.
func pythonHog(code string) string {
	return `cat > hog.py <<'END'
import os, time, ctypes, threading, resource
L = ctypes.CDLL(None, use_errno=True)
L.mmap.restype = ctypes.c_void_p
def fill(mb): return [bytearray(os.urandom(64)) * 16384 for i in range(mb)]
def hold(): print("there", flush=True); time.sleep(1000)
` + code + `
END
exec /usr/bin/python3 hog.py`
}

// memoryHogs holds the ways to memory that a plain reading of the tree's
// resident memory misses.
var memoryHogs = []struct {
	name, script string
	only         proc.Level // "" for all
	needs        string     // a program besides python
	limit        int64      // 128 MiB if 0
}{
	{name: "a process whose first thread has ended", script: pythonHog(`
def later(): time.sleep(.3); a = fill(250); hold()
threading.Thread(target=later).start()
L.syscall(60 if os.uname().machine == "x86_64" else 93, 0)`)},
	{name: "memfd of a process whose first thread has ended", script: pythonHog(`
def later():
    time.sleep(.3); f = os.memfd_create("a")
    for i in range(250): os.write(f, b"x" * (1 << 20))
    hold()
threading.Thread(target=later).start()
L.syscall(60 if os.uname().machine == "x86_64" else 93, 0)`)},
	{name: "a supervisor without descriptors", script: pythonHog(`
for thread in range(1, 40):
    try: resource.prlimit(thread, resource.RLIMIT_NOFILE, (0, 0))
    except Exception: pass
a = fill(250); hold()`)},
	{name: "page tables", script: pythonHog(`
n = 250 * 256
p = L.mmap(None, ctypes.c_size_t(n << 21), 1, 0x4022, -1, ctypes.c_long(0))
L.madvise(ctypes.c_void_p(p), ctypes.c_size_t(n << 21), 15)
for i in range(n): ctypes.c_char.from_address(p + (i << 21)).value
hold()`)},
	{name: "message queues", only: proc.L2, script: pythonHog(`
b = ctypes.create_string_buffer(8200); b[0] = b"\1"
for i in range(16000):
    q = L.msgget(0, 0o600)
    for k in range(2): L.msgsnd(q, b, ctypes.c_size_t(8190), 0o4000)
hold()`)},
	{name: "many empty messages", only: proc.L2, script: pythonHog(`
b = ctypes.create_string_buffer(16); b[0] = b"\1"
for i in range(256):
    q = L.msgget(0, 0o600)
    for k in range(16000): L.msgsnd(q, b, ctypes.c_size_t(1), 0o4000)
hold()`)},
	{name: "inodes in /dev/shm", only: proc.L2, script: pythonHog(`
os.mkdir("/dev/shm/d")
for i in range(250000): os.close(os.open("/dev/shm/d/%d-%s" % (i, "a" * 40), os.O_CREAT | os.O_WRONLY, 0o600))
hold()`)},
	{name: "a process far down in the tree", needs: "gcc", limit: 500 << 20, script: `cat > h.c <<'END'
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>
static void chain(int n) {
	if (n == 0) { for (int i = 0; i < 900; i++) { char *p = malloc(1 << 20); if (p) memset(p, 1 + i, 1 << 20); } sleep(8); exit(0); }
	if (fork() == 0) chain(n - 1);
	wait(0); exit(0);
}
int main(void) { chain(1010); }
END
gcc -O1 -w -static -o h h.c && exec ./h`},
}

// Memory counts wherever a command holds it, and nothing keeps the supervisor
// from reading it.
func TestMemoryHogs(t *testing.T) {
	if missing(attack{needs: "/usr/bin/python3"}) != "" {
		t.Skip("no python")
	}
	for _, hog := range memoryHogs {
		for _, level := range levels(t) {
			if level == proc.Off || hog.only != "" && level != hog.only || missing(attack{needs: hog.needs}) != "" {
				continue
			}
			t.Run(hog.name+" "+string(level), func(t *testing.T) {
				sandboxtest.SkipUnsampled(t)
				limit := cmp.Or(hog.limit, 128<<20)
				r := newRunner(t, proc.Config{Level: level, Limits: proc.Limits{Memory: limit}})
				proc.TrustLevel(r, level)
				root := t.TempDir()
				result, out := run(t, r, proc.Command{Script: strings.ReplaceAll(hog.script, "sleep(1000)", "sleep(8)"), Dir: root, Rules: rules{root: root}, Timeout: time.Minute})
				require.Equal(t, proc.OverMemory, result.Ending, out)
			})
		}
	}
}

// A command can set the limits and the scheduling of its own processes.
func TestLimitsOfOwnProcesses(t *testing.T) {
	t.Parallel()
	if missing(attack{needs: "prlimit taskset renice"}) != "" {
		t.Skip("no util-linux")
	}
	if !slices.Contains(levels(t), proc.L2) {
		t.Skip("no L2")
	}
	_, out := run(t, trusted(t, proc.L2), proc.Command{Rules: rules{root: t.TempDir()}, Script: `
		sleep 100 & prlimit --pid $! --nofile=99:99 && prlimit --pid $! --nofile --noheadings -o HARD
		taskset -cp 0 $! >/dev/null && renice -n 5 -p $! >/dev/null && renice -n 6 -g $$ >/dev/null && echo changed; kill $!
		prlimit --pid 1 --nofile=9:9 2>/dev/null || taskset -cp 0 1 >/dev/null 2>&1 || renice -n 5 -p 1 2>/dev/null || ionice -c3 -p 1 2>/dev/null || echo refused`})
	require.Equal(t, "99\nchanged\nrefused\n", strings.ReplaceAll(out, " ", ""))
}

// Semaphores are in no process's memory, and at L1 there are none.
func TestMemoryOfSemaphores(t *testing.T) {
	t.Parallel()
	if missing(attack{needs: "perl"}) != "" {
		t.Skip("no perl")
	}
	if !slices.Contains(levels(t), proc.L2) {
		t.Skip("no L2")
	}
	r := newRunner(t, proc.Config{Level: proc.L2, Limits: proc.Limits{Memory: 128 << 20}})
	result, out := run(t, r, proc.Command{ // 100 sets of 32 000 with 64 bytes each
		Script: `exec perl -e 'for (1 .. 100) { semget(0, 32000, 0600) // die $! } sleep 1000'`, Rules: rules{root: t.TempDir()}, Timeout: time.Minute,
	})
	require.Equal(t, proc.OverMemory, result.Ending, out)
}

// Memory in no process's table is counted by the growth of the machine's
// shared memory. The cases run one after the other, since memory freed by one
// case would offset that of another.
func TestMemoryOutOfSight(t *testing.T) {
	if missing(attack{needs: "/usr/bin/python3"}) != "" {
		t.Skip("no python")
	}
	for name, script := range map[string]string{
		"memfd on a socket": inPython(`a, b = socket.socketpair(); socket.send_fds(a, [b"x"], [filled()]); os.closerange(5, 99)`),
		"memfd on a socket on a socket": inPython(`
a, b = socket.socketpair(); c, d = socket.socketpair(); f = filled(); socket.send_fds(a, [b"x"], [f]); os.close(f)
socket.send_fds(c, [b"x"], [b.fileno()]); socket.send_fds(c, [b"x"], [a.fileno()]); a.close(); b.close()`),
		"memfd that is mapped": inPython(`f = filled(); m = mmap.mmap(f, 4096); os.closerange(3, 64)`),
		"memory of an ended child": inPython(`
m = mmap.mmap(-1, 250 << 20)
if os.fork() == 0:
    for i in range(250): m[i << 20:(i + 1) << 20] = b"x" * (1 << 20)
    os._exit(0)
os.wait()`),
		"process that cannot be dumped": inPython(`
import ctypes; ctypes.CDLL(None).prctl(4, 0); f = filled()`),
	} {
		for _, level := range levels(t) {
			if level == proc.Off {
				continue
			}
			t.Run(name+" "+string(level), func(t *testing.T) {
				r := newRunner(t, proc.Config{Level: level, Limits: proc.Limits{Memory: 64 << 20}})
				proc.TrustLevel(r, level)
				result, out := run(t, r, proc.Command{Script: script, Rules: rules{root: t.TempDir()}, Timeout: time.Minute})
				require.Equal(t, proc.OverMemory, result.Ending, out)
			})
		}
	}
}

// System V memory is private to the command at L2; L1 refuses it.
func TestSystemVMemory(t *testing.T) {
	t.Parallel()
	if missing(attack{needs: "ipcmk"}) != "" {
		t.Skip("no ipcmk")
	}
	for _, level := range levels(t) {
		_, out := run(t, trusted(t, level), proc.Command{Script: `x=$(ipcmk -M 4096) && echo $x && ipcrm -m ${x##*: }`, Rules: rules{root: t.TempDir()}})
		if level == proc.L1 {
			require.NotContains(t, out, "Shared memory id")
		} else {
			require.Contains(t, out, "Shared memory id")
		}
	}
}

// The processes of a command together use no more processor time than the limit, and
// still come to their end. A machine under load gives them less.
func TestProcessorTimeOfTheTreeIsBounded(t *testing.T) {
	for _, level := range levels(t) {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, proc.Config{Level: level, Limits: proc.Limits{CPUPercent: 20}})
			begin := time.Now()
			result, out := run(t, r, proc.Command{
				Script: `for i in 1 2; do (while [ $SECONDS -lt 3 ]; do :; done) & done; wait; times; echo all done`, Rules: rules{root: t.TempDir()},
			})
			took := time.Since(begin)
			require.Equal(t, 0, result.ExitCode, out)
			require.Contains(t, out, "all done")
			var used time.Duration
			for _, text := range regexp.MustCompile(`\d+m[\d.]+s`).FindAllString(out, -1) {
				one, err := time.ParseDuration(text)
				require.NoError(t, err)
				used += one
			}
			require.NotZero(t, used, out)
			require.Less(t, used, took/2, "20 %% of %v are allowed: %s", took, out)
		})
	}
}
