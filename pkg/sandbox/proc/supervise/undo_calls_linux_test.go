package supervise

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Only recorded calls continue, and no call that the supervisor checks.
func TestContinues(t *testing.T) {
	with, without := &callServer{recorder: &recorder{}}, &callServer{}
	for _, c := range []struct {
		number int32
		args   [6]uint64
		want   bool
	}{
		{unix.SYS_OPENAT, [6]uint64{}, true},
		{unix.SYS_UNLINKAT, [6]uint64{}, true},
		{unix.SYS_FCHMOD, [6]uint64{3, 0o644}, true},
		{unix.SYS_FCHMOD, [6]uint64{3, 0o2755}, false},
		{unix.SYS_FCHMOD, [6]uint64{3, 0xffff<<32 | 0o4755}, false},
		{unix.SYS_FCHMODAT, [6]uint64{3, 0, 0o2755}, false},
		{unix.SYS_FCHMODAT2, [6]uint64{3, 0, 0o2755, 0}, false},
		{unix.SYS_CONNECT, [6]uint64{}, false},
		{unix.SYS_SOCKET, [6]uint64{}, false},
		{unix.SYS_MOUNT, [6]uint64{}, false},
	} {
		n := &notification{number: c.number, args: c.args}
		require.Equal(t, c.want, with.mayContinue(n), "%d %o", c.number, c.args)
		require.False(t, without.mayContinue(n), "%d %o without a record", c.number, c.args)
	}
}
