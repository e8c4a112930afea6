package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/chat/lineedit"
	"github.com/toolroom-mcp/toolroom/host/internal/chat/screen"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
)

// The delay of the status line, and the interval of its updates.
const (
	statusDelay    = 300 * time.Millisecond
	statusInterval = 100 * time.Millisecond
)

// A statusLine is the last line of a terminal, which shows what a command waits for.
// Text for standard error is written above it.
type statusLine struct {
	to    io.Writer
	width func() int

	mu    sync.Mutex
	shown string
}

// newStatusLine returns the status line of standard error; nil: standard error
// is not a terminal, or the terminal cannot erase.
func newStatusLine(stderr io.Writer, getenv func(string) string) *statusLine {
	f, ok := stderr.(*os.File)
	if !ok || !lineedit.IsTerminal(f) || getenv("TERM") == "dumb" {
		return nil
	}
	return &statusLine{to: f, width: func() int {
		columns, _ := lineedit.TerminalFile{In: f, Out: f}.Size()
		return columns
	}}
}

// Write erases the status line and writes p to the underlying writer, whose result it
// returns. The next update shows the line again.
func (l *statusLine) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
	return l.to.Write(p)
}

// show replaces the status line by text, cut to the width of the terminal; "" erases it.
func (l *statusLine) show(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text = fitColumns(text, l.width()-1)
	if text == l.shown {
		return
	}
	l.erase()
	if text != "" {
		io.WriteString(l.to, text) //nolint:errcheck // an error does not matter
		l.shown = text
	}
}

// hide erases the line before other output to the terminal.
func (l *statusLine) hide() {
	if l != nil {
		l.show("")
	}
}

// erase erases the line. l.mu is held.
func (l *statusLine) erase() {
	if l.shown != "" {
		io.WriteString(l.to, "\r\x1b[K") //nolint:errcheck // an error does not matter
		l.shown = ""
	}
}

// fitColumns shortens a text to a number of columns, with "…" at the end of a longer one.
func fitColumns(text string, columns int) string {
	used := 0
	for i, r := range text {
		if used += screen.Width(r); used > columns {
			short := []rune(text[:i])
			return string(short[:max(0, len(short)-1)]) + "…"
		}
	}
	return text
}

// showWaiting shows the text that what returns in the status line, and updates it, from
// statusDelay on until done is called. It shows nothing for "", with quiet, or if standard error
// is not a terminal. done may be called again.
func (p *program) showWaiting(quiet bool, what func() string) (done func()) {
	if p.line == nil || quiet {
		return func() {}
	}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer p.line.hide()
		next := time.NewTimer(statusDelay)
		defer next.Stop()
		for {
			select {
			case <-over:
				return
			case <-next.C:
			}
			p.line.show(printable(what()))
			next.Reset(statusInterval)
		}
	}()
	return sync.OnceFunc(func() {
		close(over)
		<-ended
	})
}

// waitingText returns a function for showWaiting that names the servers whose tools are being
// requested, and the progress; "": none are.
func waitingText(a *core.App) func() string {
	begin := time.Now()
	return func() string {
		names := a.Catalog.BeingListed()
		if len(names) == 0 {
			return ""
		}
		total := 0
		for _, s := range a.Servers() {
			if s.Status().State != upstream.Disabled {
				total++
			}
		}
		return fmt.Sprintf("waiting for %s (%s, %d of %d ready)", enumerate(names, 4), textfmt.ShortDuration(time.Since(begin)), max(0, total-len(names)), total)
	}
}

// enumerate lists the first names, and the number of others.
func enumerate(names []string, most int) string {
	if len(names) > most {
		names = append(names[:most:most], fmt.Sprintf("%d more", len(names)-most))
	}
	return strings.Join(names, ", ")
}
