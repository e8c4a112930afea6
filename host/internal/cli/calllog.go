package cli

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/stats"
)

// logFlags holds the flags for the log of serve.
type logFlags struct {
	quiet  bool
	format string // text or json
}

// add defines the flags of a command.
func (f *logFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.quiet, "quiet", false, "do not log calls, starts and stops")
	cmd.Flags().StringVar(&f.format, "log-format", "text", "log format: `FORMAT` is text or json")
}

// check returns a usage error for an unknown format.
func (f *logFlags) check() error {
	if f.format != "text" && f.format != "json" {
		return usageError("--log-format %s: use text or json", f.format)
	}
	return nil
}

// Limits of the log: the number of lines that wait for standard error, and the longest
// time to write them at the end of the program.
const (
	maxLogLines     = 1024
	logFlushTimeout = time.Second
)

// lineWriter writes lines in the background, so that no call waits for the reader of
// standard error. Lines that exceed the buffer are counted and dropped.
type lineWriter struct {
	lines chan []byte
	ended chan struct{}

	mu     sync.Mutex
	closed bool
	lost   int
}

// newLineWriter returns a writer whose goroutine writes the lines to another writer, and
// ignores its errors. The caller closes it.
func newLineWriter(to io.Writer) *lineWriter {
	w := &lineWriter{lines: make(chan []byte, maxLogLines), ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		for line := range w.lines {
			to.Write(line) //nolint:errcheck // an error cannot be shown
		}
	}()
	return w
}

// Write queues a line. It never blocks and returns no error; a line that exceeds the buffer is
// dropped.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		select {
		case w.lines <- bytes.Clone(p):
		default:
			w.lost++
		}
	}
	return len(p), nil
}

// close writes the waiting lines, for at most logFlushTimeout.
func (w *lineWriter) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	close(w.lines)
	select {
	case <-w.ended:
	case <-time.After(logFlushTimeout):
	}
}

// A callLog is the log of a serving host: a line for each call, and one at the end.
type callLog struct {
	out   *lineWriter
	lines *slog.Logger // nil: no log
}

// startCallLog starts the log on standard error. Close it after the last request. With the format
// json, the notices of the program become JSON, too.
func (p *program) startCallLog(a *core.App, f logFlags) *callLog {
	l := &callLog{out: newLineWriter(p.err)}
	if f.format == "json" { // notices also become JSON
		p.log = slog.New(slog.NewJSONHandler(p.err, nil))
	}
	if f.quiet {
		return l
	}
	l.lines = slog.New(slog.NewTextHandler(l.out, nil))
	if f.format == "json" {
		l.lines = slog.New(slog.NewJSONHandler(l.out, nil))
	}
	a.OnCall(func(o stats.Observation) { logCall(l.lines, o) })
	return l
}

// stop logs the reason why the host stops.
func (l *callLog) stop(why string) {
	if l.lines != nil {
		l.lines.Info("stop", "reason", why)
	}
}

// close writes the waiting lines. Lines of calls that end later are dropped.
func (l *callLog) close() {
	l.out.mu.Lock()
	lost := l.out.lost
	l.out.mu.Unlock()
	if lost > 0 && l.lines != nil {
		l.lines.Warn("log lines were dropped: standard error was not read in time", "lines", lost)
	}
	l.out.close()
}

// logCall writes the log line of a finished call: a warning if it failed.
func logCall(log *slog.Logger, o stats.Observation) {
	level, outcome := slog.LevelInfo, "ok"
	if o.Failed || o.Code != "" {
		level, outcome = slog.LevelWarn, "error"
	}
	attrs := []slog.Attr{
		slog.String("caller", core.CallerName(o.Caller)), slog.String("tool", o.Tool), slog.String("server", o.Server), slog.String("outcome", outcome),
		slog.Float64("ms", float64(o.Duration.Microseconds())/1000), slog.Int64("bytes", o.Bytes),
	}
	for _, code := range []string{string(o.Code), string(o.ResultCode)} {
		if code != "" {
			attrs = append(attrs, slog.String("code", code))
			break
		}
	}
	log.LogAttrs(context.Background(), level, "call", attrs...)
}
