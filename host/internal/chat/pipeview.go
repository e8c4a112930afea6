package chat

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/agent"
	"github.com/toolroom-mcp/toolroom/host/internal/chat/screen"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
)

// pipeView writes the model's text to one stream, and everything else to another.
type pipeView struct {
	mu      sync.Mutex
	out     *screen.Cleaner
	err     io.Writer
	verbose bool
	index   int
	within  bool
	told    string // last shown error of the turn
}

// newPipeView returns a view that writes answers to out, and notes to err.
func newPipeView(out, err io.Writer, verbose bool) *pipeView {
	return &pipeView{out: screen.NewCleaner(out), err: err, verbose: verbose}
}

// writeErrLine writes a line to standard error.
func (v *pipeView) writeErrLine(format string, args ...any) {
	fmt.Fprintln(v.err, screen.Clean(fmt.Sprintf(format, args...))) //nolint:errcheck // nowhere else to say so
}

// showEvent writes the text of the answer to the output, and the results of calls,
// compactions and errors to standard error.
func (v *pipeView) showEvent(e agent.Event, _ provider.Info) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch e.Type {
	case agent.DeltaEvent:
		if e.Delta.Type != llm.TextPart && e.Delta.Type != llm.RefusalPart {
			return
		}
		if v.within && v.index != e.Delta.Index {
			v.endPart()
		}
		v.within, v.index = true, e.Delta.Index
		io.WriteString(v.out, e.Delta.Text) //nolint:errcheck // a pipe that is gone ends the program
	case agent.ResultEvent:
		v.endPart()
		state := "ok"
		if e.Result != nil && e.Result.IsError {
			state = "failed"
		}
		v.writeErrLine("%s: %s, %s: %s", screen.OneLine(callLine(e.Call), 200), state, duration(e.Took), screen.OneLine(resultLine(e.Result), 200))
		if v.verbose && e.Result != nil {
			v.writeErrLine("%s", truncate(resultText(e.Result), 2000))
		}
	case agent.CompactedEvent:
		v.writeErrLine("%s", screen.OneLine(e.Text, 500))
	case agent.ErrorEvent:
		v.endPart()
		if e.Err != nil {
			v.told = errorText(e.Err)
			v.writeErrLine("error: %s", v.told)
		}
	default:
		v.endPart()
	}
}

// endPart ends the current part of the answer, if there is one, with a line end.
func (v *pipeView) endPart() {
	if v.within {
		v.out.End() //nolint:errcheck // as above
		v.within = false
	}
}

// showOutcome ends the answer on the output, and writes a note with the reason if the turn did
// not end with an answer.
func (v *pipeView) showOutcome(out *agent.Outcome, cost float64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.endPart()
	if text := endReason(out, v.told); text != "" {
		v.writeErrLine("%s", text)
	}
	v.told = ""
	if v.verbose {
		v.writeErrLine("%s", turnSummary(out, cost))
	}
}

// showNote writes a note to standard error.
func (v *pipeView) showNote(format string, args ...any) { v.writeErrLine(format, args...) }

// print writes the result of a command to the output.
func (v *pipeView) print(text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.endPart()
	io.WriteString(v.out, text) //nolint:errcheck // as above
	v.out.End()                 //nolint:errcheck // as above
}

func (v *pipeView) tick(time.Time) {}

// idle ends the current part of the answer.
func (v *pipeView) idle() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.endPart()
}
