//go:build linux

package proc_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// without makes the kernel refuse user namespaces to this process and its
// children and, with landlock, Landlock too. A container or an old kernel may
// do that.
func without(t testing.TB, landlock bool) {
	t.Helper()
	refuse := func(number uint32, errno unix.Errno) []unix.SockFilter {
		return []unix.SockFilter{
			{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
			{Code: unix.BPF_JMP | unix.BPF_K | unix.BPF_JEQ, Jf: 1, K: number},
			{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)},
		}
	}
	var program []unix.SockFilter
	for _, number := range []uint32{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		program = append(program,
			unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | unix.BPF_JEQ, Jf: 3, K: number},
			unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 16}, // clone's flags
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | unix.BPF_JSET, Jf: 1, K: unix.CLONE_NEWUSER},
			unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)})
	}
	if landlock {
		program = append(program, refuse(unix.SYS_LANDLOCK_CREATE_RULESET, unix.ENOSYS)...)
	}
	program = append(program, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	install(t, program)
}

// refuse makes the kernel refuse one system call to this process and its
// children.
func refuse(t testing.TB, number uint32, errno unix.Errno) {
	t.Helper()
	install(t, []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_K | unix.BPF_JEQ, Jf: 1, K: number},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	})
}

func install(t testing.TB, program []unix.SockFilter) {
	t.Helper()
	require.NoError(t, unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	require.Zero(t, errno)
}

// TestFallsBack: without user namespaces the level is L1. Without Landlock
// too, commands are refused.
func TestFallsBack(t *testing.T) {
	t.Parallel()
	for _, lacking := range []string{"user namespaces", "both"} {
		t.Run(lacking, func(t *testing.T) {
			if os.Getenv("PROC_TEST_LACKING") == "" {
				cmd := exec.Command("/proc/self/exe", "-test.v", "-test.run=^TestFallsBack$/^"+strings.ReplaceAll(lacking, " ", "_")+"$")
				cmd.Env = append(os.Environ(), "PROC_TEST_LACKING="+lacking)
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, "%s", out)
				require.Contains(t, string(out), "--- PASS: TestFallsBack/")
				return
			}
			root := t.TempDir()
			command := proc.Command{Script: `echo hi > "` + root + `/ran"; echo hi`, Dir: "/", Rules: rules{root: root}}
			if lacking == "both" {
				without(t, true)
				r := newRunner(t, proc.Config{})
				_, _, err := r.Run(context.Background(), command)
				require.Equal(t, toolerr.SandboxUnavailable, toolerr.CodeOf(err), "%v", err)
				require.ErrorContains(t, err, "version 0 of Landlock")
				require.ErrorContains(t, err, "does not let users create namespaces")
				require.ErrorContains(t, err, "--sandbox off")
				require.NoFileExists(t, root+"/ran")
				return
			}
			if !contains(levels(t), proc.L1) {
				t.Skip("L1 is not available")
			}
			without(t, false)
			r := newRunner(t, proc.Config{})
			report, err := r.SelfTest(context.Background())
			require.NoError(t, err)
			require.Equal(t, proc.L1, report.Level)
			require.Len(t, report.Higher, 1)
			require.Contains(t, report.Higher[0].Failure, "does not let users create namespaces")
			result, out := run(t, r, command)
			require.Equal(t, proc.L1, result.Level)
			require.Equal(t, "hi\n", out)
		})
	}
}
