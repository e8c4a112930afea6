// Package secretservice starts a D-Bus and a keyring for a test.
package secretservice

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/require"
)

// StartBus starts a D-Bus without services that it could start, and sets its address in the
// environment of the test. The test is skipped if the program is not installed.
func StartBus(t *testing.T) {
	t.Helper()
	program, err := exec.LookPath("dbus-daemon")
	if err != nil {
		t.Skip("needs dbus-daemon")
	}
	dir := t.TempDir()
	conf := filepath.Join(dir, "bus.conf")
	require.NoError(t, os.WriteFile(conf, []byte(`<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:path=`+filepath.Join(dir, "bus")+`</listen>
  <policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy>
</busconfig>
`), 0o600))
	bus := exec.Command(program, "--config-file="+conf, "--nofork", "--print-address")
	out, err := bus.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, bus.Start())
	t.Cleanup(func() {
		bus.Process.Kill() //nolint:errcheck // it may have ended
		bus.Wait()         //nolint:errcheck // killed
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", strings.TrimSpace(address))
}

// StartGnomeKeyring starts gnome-keyring-daemon as the Secret Service on the session bus
// of StartBus, which must have been called. Its new keyring has the password "password";
// args are further arguments of the daemon. The daemon ends with the test. The test is
// skipped if the program is not installed.
func StartGnomeKeyring(t *testing.T, args ...string) {
	t.Helper()
	program, err := exec.LookPath("gnome-keyring-daemon")
	if err != nil {
		t.Skip("needs gnome-keyring")
	}
	home := t.TempDir()
	daemon := exec.Command(program, append([]string{"--foreground", "--components=secrets", "--control-directory=" + filepath.Join(home, "control")}, args...)...)
	daemon.Env = append(os.Environ(), "HOME="+home, "XDG_DATA_HOME="+filepath.Join(home, "data"), "XDG_RUNTIME_DIR="+home)
	daemon.Stdin = strings.NewReader("password")
	require.NoError(t, daemon.Start())
	t.Cleanup(func() {
		daemon.Process.Kill() //nolint:errcheck // it may have ended
		daemon.Wait()         //nolint:errcheck // killed
	})
	conn, err := dbus.SessionBusPrivate()
	require.NoError(t, err)
	defer conn.Close() //nolint:errcheck // nothing was changed
	require.NoError(t, conn.Auth(nil))
	require.NoError(t, conn.Hello())
	require.Eventually(t, func() bool {
		var owned bool
		return conn.BusObject().Call("org.freedesktop.DBus.NameHasOwner", 0, "org.freedesktop.secrets").Store(&owned) == nil && owned
	}, time.Minute, 20*time.Millisecond)
}
