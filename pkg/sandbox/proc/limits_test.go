//go:build linux

package proc_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
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
