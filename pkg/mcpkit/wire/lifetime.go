package wire

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// Lifetime returns a context that ends when the process should exit: on
// SIGTERM, SIGINT and SIGHUP (except those ignored at its start), when the
// reader of stdout has closed it, and when the parent process has ended. The
// cause wraps ErrStopped. SIGPIPE does not kill the process, so that it can
// first kill its children. Call release to stop watching and to restore the
// signals.
func Lifetime(ctx context.Context, stdout *os.File) (lifetime context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 1)
	ends := slices.DeleteFunc([]os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP}, signal.Ignored)
	if len(ends) > 0 {
		signal.Notify(signals, ends...)
	}
	// Received and dropped, not ignored: children would inherit that.
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)

	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case s := <-signals:
			cancel(fmt.Errorf("%w: %v", ErrStopped, s))
		case <-ctx.Done():
		}
	}()
	// Opened here and not in the goroutine: a parent that ends before the
	// goroutine runs would be missed.
	parent := openParent()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		defer parent.close()
		if what := waitForExitReason(ctx, stdout, parent); what != "" {
			cancel(fmt.Errorf("%w: %s", ErrStopped, what))
		}
	}()
	return ctx, func() {
		cancel(ErrStopped)
		<-done
		<-watched
		signal.Stop(signals)
		signal.Stop(pipes)
	}
}

// Reasons to exit, as waitForExitReason returns them.
const (
	stdoutClosed = "standard output was closed"
	parentEnded  = "the parent process is gone"
)
