//go:build linux

package wire_test

import (
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
)

// blocking returns a pipe whose reading end blocks, like a standard input.
func blocking(t *testing.T) (read, write *os.File) {
	t.Helper()
	var ends [2]int
	require.NoError(t, syscall.Pipe2(ends[:], syscall.O_CLOEXEC))
	read, write = os.NewFile(uintptr(ends[0]), "read"), os.NewFile(uintptr(ends[1]), "write")
	t.Cleanup(func() {
		read.Close()
		write.Close()
	})
	return read, write
}

func TestAwaitedInputIsReadAsItComes(t *testing.T) {
	t.Parallel()
	read, write := blocking(t)
	in := wire.PollableReader(read)
	require.NotSame(t, read, in)
	text := strings.Repeat("0123456789", 50_000)
	go func() {
		for i := 0; i < len(text); i += 1000 {
			if i%100_000 == 0 {
				time.Sleep(time.Millisecond)
			}
			if _, err := io.WriteString(write, text[i:i+1000]); err != nil {
				return
			}
		}
		write.Close()
	}()
	got, err := io.ReadAll(in)
	require.NoError(t, err)
	require.Equal(t, text, string(got))
	flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, read.Fd(), syscall.F_GETFL, 0)
	require.Zero(t, errno)
	require.Zero(t, flags&syscall.O_NONBLOCK, "others have the file, too")
}

// For each thread that blocks in the kernel, the runtime starts another.
func TestAwaitedInputKeepsNoThread(t *testing.T) {
	threads := func() int {
		tasks, err := os.ReadDir("/proc/self/task")
		require.NoError(t, err)
		return len(tasks)
	}
	before := threads()
	const readers = 100
	ended := make(chan error)
	var ends []*os.File
	for range readers {
		read, write := blocking(t)
		ends = append(ends, write)
		in := wire.PollableReader(read)
		go func() {
			_, err := io.ReadAll(in)
			ended <- err
		}()
	}
	// The runtime starts threads only once it notices that others block.
	waits := func() (polled, blocked int) {
		stacks := make([]byte, 1<<20)
		for _, stack := range strings.Split(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
			if strings.Contains(stack, "TestAwaitedInputKeepsNoThread") && strings.Contains(stack, "io.ReadAll") {
				state, _, _ := strings.Cut(stack, "\n")
				polled += strings.Count(state, "IO wait")
				blocked += strings.Count(state, "syscall")
			}
		}
		return polled, blocked
	}
	require.Eventually(t, func() bool {
		polled, blocked := waits()
		return polled+blocked == readers
	}, mcpkittest.MaxWait, 5*time.Millisecond, "all readers wait")
	_, blocked := waits()
	require.Zero(t, blocked, "readers that wait in the kernel, each with a thread")
	require.Less(t, threads(), before+readers/2)
	for _, end := range ends {
		end.Close()
	}
	for range readers {
		require.NoError(t, <-ended)
	}
}

func TestAFileNeedsNotBeAwaited(t *testing.T) {
	t.Parallel()
	name := t.TempDir() + "/file"
	require.NoError(t, os.WriteFile(name, []byte("all"), 0o600))
	fd, err := syscall.Open(name, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	require.NoError(t, err)
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	require.Same(t, f, wire.PollableReader(f))
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	defer reader.Close()
	defer writer.Close()
	require.Same(t, reader, wire.PollableReader(reader), "the runtime waits for it")
}
