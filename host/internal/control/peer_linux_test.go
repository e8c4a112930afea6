package control

import (
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// connect connects and reports whether the host hangs up without a word.
func connect(t *testing.T, name string) (hungUp bool, err error) {
	t.Helper()
	conn, err := net.Dial("unix", name)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(20*time.Second)))
	io.WriteString(conn, `{"jsonrpc":"2.0","id":1,"method":"x"}`+"\n") //nolint:errcheck // it may be closed by now
	said, _ := io.ReadAll(io.LimitReader(conn, 1))
	return len(said) == 0, nil
}

func TestTheHostServesOneUser(t *testing.T) {
	ours, err := listenFor(Config{State: t.TempDir()}, &CallbackTokens{}, os.Getuid())
	require.NoError(t, err)
	defer ours.Close()
	hungUp, err := connect(t, ours.Name())
	require.NoError(t, err)
	require.False(t, hungUp)
	theirs, err := listenFor(Config{State: t.TempDir()}, &CallbackTokens{}, os.Getuid()+1)
	require.NoError(t, err)
	defer theirs.Close()
	hungUp, err = connect(t, theirs.Name())
	require.NoError(t, err)
	require.True(t, hungUp)
}

// Another user does not get to the socket, and is not served if the
// permissions let him.
func TestAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("to be another user takes root")
	}
	state := t.TempDir()
	for dir := state; dir != "/"; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm()&0o005 != 0o005 {
			if dir != state && filepath.Dir(dir) != filepath.Dir(filepath.Dir(state)) {
				t.Skip("temporary files are where others cannot look at all")
			}
			require.NoError(t, os.Chmod(dir, 0o755))
		}
	}
	s, err := Listen(Config{State: state}, &CallbackTokens{})
	require.NoError(t, err)
	defer s.Close()
	asNobody := func(do func()) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			const nobody = 65534
			if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
				t.Errorf("becoming nobody: %v", errno)
				return
			}
			do()
		}()
		<-done
	}
	asNobody(func() {
		if _, err := connect(t, s.Name()); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("another user gets to the socket: %v", err)
		}
	})
	require.NoError(t, os.Chmod(filepath.Dir(s.Name()), 0o755))
	require.NoError(t, os.Chmod(s.Name(), 0o666))
	asNobody(func() {
		if hungUp, err := connect(t, s.Name()); err != nil || !hungUp {
			t.Errorf("another user is served: %v", err)
		}
	})
}
