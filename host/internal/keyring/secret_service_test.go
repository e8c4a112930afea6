//go:build linux

package keyring

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/testkit/secretservice"
)

func TestSecretService(t *testing.T) {
	secretservice.StartBus(t)
	secretservice.StartGnomeKeyring(t, "--unlock")
	first, second := New(LongTimeout), New(LongTimeout)
	_, err := first.Get(t.Context(), "server 1")
	require.ErrorIs(t, err, ErrNotFound)
	require.NoError(t, first.Set(t.Context(), "server 1", "secret 1"))
	require.NoError(t, first.Set(t.Context(), "server 2", "secret 2"))
	for _, k := range []*Keyring{second, first} {
		secret, err := k.Get(t.Context(), "server 1")
		require.NoError(t, err)
		require.Equal(t, "secret 1", secret)
	}
	require.NoError(t, first.Delete(t.Context(), "server 1"))
	require.NoError(t, first.Delete(t.Context(), "server 1"), "it is not there")
	for _, k := range []*Keyring{first, New(LongTimeout)} {
		_, err = k.Get(t.Context(), "server 1")
		require.ErrorIs(t, err, ErrNotFound)
		secret, err := k.Get(t.Context(), "server 2")
		require.NoError(t, err)
		require.Equal(t, "secret 2", secret)
	}
}

// A locked keyring waits for a password that nobody can enter here.
func TestLockedSecretService(t *testing.T) {
	secretservice.StartBus(t)
	secretservice.StartGnomeKeyring(t)
	require.Error(t, New(time.Second).Set(t.Context(), "server", "secret"))
}

func TestBusWithoutSecretService(t *testing.T) {
	secretservice.StartBus(t)
	_, err := New(LongTimeout).Get(t.Context(), "server")
	require.ErrorContains(t, err, "no keyring (Secret Service) runs")
}

// Without a bus, the library would start one.
func TestNoBus(t *testing.T) {
	if _, err := os.Stat(fmt.Sprintf("/run/user/%d/bus", os.Getuid())); err == nil {
		t.Skip("the D-Bus of the session is found without its variable")
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "dbus-launch"), []byte("#!/bin/sh\ntouch "+dir+"/started\n"), 0o700))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	_, err := New(LongTimeout).Get(t.Context(), "server")
	require.ErrorContains(t, err, "no D-Bus")
	require.NoFileExists(t, filepath.Join(dir, "started"))
}

// A socket that accepts connections and says nothing.
func TestSilentBus(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bus")
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	defer l.Close() //nolint:errcheck // for the test
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path="+path)
	k := New(200 * time.Millisecond)
	_, err = k.Get(t.Context(), "server")
	require.ErrorIs(t, err, errBusy)
	_, err = New(LongTimeout).Get(t.Context(), "server")
	require.ErrorContains(t, err, "does not answer")
}

// A Secret Service that gets requests and does not answer them. Later requests do not wait
// for it, until it has answered.
func TestSilentSecretService(t *testing.T) {
	secretservice.StartBus(t)
	conn, err := dbus.SessionBusPrivate()
	require.NoError(t, err)
	defer conn.Close() //nolint:errcheck // for the test
	require.NoError(t, conn.Auth(nil))
	require.NoError(t, conn.Hello())
	service := silentService{make(chan struct{}), make(chan struct{}, 10)}
	require.NoError(t, conn.ExportMethodTable(map[string]any{"Get": service.get}, "/org/freedesktop/secrets", "org.freedesktop.DBus.Properties"))
	require.NoError(t, conn.ExportMethodTable(map[string]any{"OpenSession": service.session, "Unlock": service.unlock}, "/org/freedesktop/secrets", "org.freedesktop.Secret.Service"))
	_, err = conn.RequestName("org.freedesktop.secrets", dbus.NameFlagDoNotQueue)
	require.NoError(t, err)

	k := New(2 * time.Second)
	_, err = k.Get(t.Context(), "server")
	require.ErrorIs(t, err, errBusy)
	require.Len(t, service.asked, 1)
	for range 3 {
		require.ErrorIs(t, k.Set(t.Context(), "server", "secret"), errBusy)
	}
	require.Len(t, service.asked, 1)
	close(service.answer)
	require.Eventually(t, func() bool { return !k.isLate() }, 20*time.Second, 10*time.Millisecond)
	require.NotErrorIs(t, k.Set(t.Context(), "server", "secret"), errBusy)
}

// silentService answers Unlock after answer is closed.
type silentService struct {
	answer chan struct{}
	asked  chan struct{}
}

func (s silentService) get(string, string) (dbus.Variant, *dbus.Error) {
	return dbus.MakeVariant([]dbus.ObjectPath{}), nil
}

func (s silentService) session(string, dbus.Variant) (dbus.Variant, dbus.ObjectPath, *dbus.Error) {
	return dbus.MakeVariant(""), "/session", nil
}

func (s silentService) unlock([]dbus.ObjectPath) ([]dbus.ObjectPath, dbus.ObjectPath, *dbus.Error) {
	s.asked <- struct{}{}
	<-s.answer
	return nil, "/", nil
}
