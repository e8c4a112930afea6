//go:build linux || freebsd || netbsd || openbsd || dragonfly

package keyring

import (
	"context"
	"errors"
	"fmt"

	"github.com/godbus/dbus/v5"
)

// reachable returns an error if no Secret Service answers within connectTimeout. The
// library would wait without limit, and start a D-Bus if none runs. The D-Bus starts the
// service if it is installed and does not run.
func reachable(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, connectTimeout, fmt.Errorf("the D-Bus of the session does not answer within %v", connectTimeout))
	defer cancel()
	// The handshake takes no context.
	done := make(chan error, 1)
	go func() { done <- askService(ctx) }()
	select {
	case err := <-done:
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// askService asks the Secret Service for its collections, and waits until it answers or ctx
// ends. The error says why there is no keyring in this session.
func askService(ctx context.Context) error {
	conn, err := dbus.SessionBusPrivateNoAutoStartup(dbus.WithContext(ctx)) // closed when ctx ends
	if err != nil {
		return fmt.Errorf("no D-Bus of a session: %w", err)
	}
	defer conn.Close() //nolint:errcheck // nothing was changed
	if err := conn.Auth(nil); err != nil {
		return fmt.Errorf("no D-Bus of a session: %w", err)
	}
	if err := conn.Hello(); err != nil {
		return fmt.Errorf("no D-Bus of a session: %w", err)
	}
	var collections dbus.Variant
	err = conn.Object("org.freedesktop.secrets", "/org/freedesktop/secrets").
		CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, "org.freedesktop.Secret.Service", "Collections").Store(&collections)
	var refused dbus.Error
	if errors.As(err, &refused) && (refused.Name == "org.freedesktop.DBus.Error.ServiceUnknown" || refused.Name == "org.freedesktop.DBus.Error.NameHasNoOwner") {
		return errors.New("no keyring (Secret Service) runs in this session")
	}
	return err
}
