package mcpkit

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
)

// levelTrace is the log level below debug; it logs the protocol's messages.
const levelTrace = slog.LevelDebug - 4

// levelFlag is the flag.Value of --log-level.
type levelFlag struct{ level slog.Level }

// levelNames returns the log levels by the names that --log-level accepts.
func levelNames() map[string]slog.Level {
	return map[string]slog.Level{
		"error": slog.LevelError, "warn": slog.LevelWarn, "info": slog.LevelInfo,
		"debug": slog.LevelDebug, "trace": levelTrace,
	}
}

// String returns the name of the level, as flag.Value needs it.
func (f *levelFlag) String() string {
	for name, level := range levelNames() {
		if level == f.level {
			return name
		}
	}
	return f.level.String()
}

// Set accepts the name of a level, in any case.
func (f *levelFlag) Set(s string) error {
	level, ok := levelNames()[strings.ToLower(s)]
	if !ok {
		return fmt.Errorf("want error, warn, info, debug or trace")
	}
	f.level = level
	return nil
}

// A logHandler writes records as "program: message key=value", one a line.
type logHandler struct {
	w       io.Writer
	program string
	level   slog.Level  // lowest level that is logged
	attrs   string      // " key=value"… of WithAttrs
	group   string      // prefix of keys: "a.b."
	mu      *sync.Mutex // of w, shared by all handlers derived from one
}

// Enabled reports whether the level is logged.
func (h *logHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

// Handle writes one record.
func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(h.program + ": " + r.Message + h.attrs)
	r.Attrs(func(a slog.Attr) bool {
		b.WriteString(" " + h.group + a.Key + "=" + a.Value.String())
		return true
	})
	b.WriteByte('\n')
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := io.WriteString(h.w, b.String())
	return err
}

// WithAttrs returns a handler that adds attrs to each record.
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	for _, a := range attrs {
		next.attrs += " " + h.group + a.Key + "=" + a.Value.String()
	}
	return &next
}

// WithGroup returns a handler that puts name before the keys.
func (h *logHandler) WithGroup(name string) slog.Handler {
	next := *h
	next.group += name + "."
	return &next
}
