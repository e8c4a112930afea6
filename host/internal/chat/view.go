package chat

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/agent"
	"github.com/toolroom-mcp/toolroom/host/internal/chat/markdown"
	"github.com/toolroom-mcp/toolroom/host/internal/chat/screen"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
)

// A view shows the events of a chat. Several goroutines may call its methods.
type view interface {
	showEvent(e agent.Event, m provider.Info)     // an event of the agent with this model
	showOutcome(out *agent.Outcome, cost float64) // the end of a turn
	showNote(format string, args ...any)          // a note of the chat
	print(text string)                            // the result of a command
	tick(now time.Time)                           // once a second while a turn runs
	idle()                                        // nothing is running any more
}

// commandModel is the name of the model whose answers are unchanged results of tools.
const commandModel = "command"

// answerPart writes a part of an answer.
type answerPart interface {
	io.Writer
	End() error
}

// markdownAnswer shows an answer that is Markdown.
type markdownAnswer struct{ *markdown.Writer }

func (m markdownAnswer) End() error { return m.Close() }

// screenView shows events at a terminal.
type screenView struct {
	screen  *screen.Screen
	waited  func(id string) time.Duration // time that a call, or with "" the turn, waited for the user
	width   func() int
	styled  bool
	verbose bool

	mu      sync.Mutex
	part    answerPart // the current part of the answer; nil: none
	index   int        // of the part
	kind    llm.PartType
	running []runningCall
	doing   string // activity in the status line while no tool runs
	since   time.Time
	told    string   // last shown error of the turn
	notes   []string // notes that wait for the end of the current part
}

// maxNotes bounds the waiting notes.
const maxNotes = 20

// runningCall is a running call.
type runningCall struct {
	id, text, progress string
	since              time.Time
}

// newScreenView returns a view that writes to a terminal. waited is as for screenView.
func newScreenView(s *screen.Screen, waited func(string) time.Duration, width func() int, styled, verbose bool) *screenView {
	return &screenView{screen: s, waited: waited, width: width, styled: styled, verbose: verbose}
}

// paint returns text with a style of SGR (see the constants), or unchanged if the view has no
// styles.
func (v *screenView) paint(sgr, text string) string {
	if !v.styled {
		return text
	}
	return "\x1b[" + sgr + "m" + text + "\x1b[0m"
}

// The parameters of SGR that the view uses.
const (
	faint  = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

// write writes a text above the status line.
func (v *screenView) write(format string, args ...any) {
	fmt.Fprintf(v.screen, format, args...) //nolint:errcheck // a terminal that is gone ends the chat
}

// showEvent shows an event: text as it arrives, calls with their results, and the activity
// in the status line.
func (v *screenView) showEvent(e agent.Event, m provider.Info) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch e.Type {
	case agent.TurnEvent:
		v.closePart()
		v.setActivity("thinking")
	case agent.DeltaEvent:
		v.showDelta(e.Delta, m)
	case agent.AnswerEvent:
		v.closePart()
		v.doing = ""
	case agent.CallEvent:
		v.closePart()
		v.doing = ""
		v.running = append(v.running, runningCall{id: e.ID, text: callLine(e.Call), since: time.Now()})
	case agent.ProgressEvent:
		for i := range v.running {
			if v.running[i].id == e.ID {
				v.running[i].progress = e.Text
			}
		}
	case agent.ResultEvent:
		v.running = slices.DeleteFunc(v.running, func(r runningCall) bool { return r.id == e.ID })
		v.showResult(e)
	case agent.CompactedEvent:
		v.write("%s\n", v.paint(faint, "… "+screen.OneLine(e.Text, 500)))
	case agent.ErrorEvent:
		if e.Err != nil {
			v.closePart()
			v.told = errorText(e.Err)
			v.write("%s %s\n", v.paint(red, "✗"), screen.Clean(v.told))
		}
	case agent.EndEvent:
		v.closePart()
		v.doing, v.running = "", nil
	}
	v.showStatusLine(time.Now())
}

// setActivity sets the activity of the status line, and its time.
func (v *screenView) setActivity(doing string) { v.doing, v.since = doing, time.Now() }

// showDelta shows a piece of an answer: text, images, and in verbose mode the thinking. A
// piece of a call only changes the status line.
func (v *screenView) showDelta(d llm.Delta, m provider.Info) {
	if d.Type == llm.CallPart || d.Type == llm.ThinkingPart && !v.verbose || d.Type == llm.RedactedPart || d.Type == llm.OpaquePart {
		if d.Type == llm.CallPart {
			v.closePart()
			v.doing = "calling tools"
		}
		return
	}
	if v.part == nil || v.index != d.Index || v.kind != d.Type {
		v.closePart()
		v.index, v.kind = d.Index, d.Type
		switch {
		case m.Name == commandModel || d.Type == llm.ThinkingPart:
			v.part = screen.NewCleaner(v.screen)
			if d.Type == llm.ThinkingPart {
				v.write("%s\n", v.paint(faint, "thinking:"))
			}
		default:
			v.part = markdownAnswer{markdown.New(v.screen, markdown.Options{Width: v.width, Styled: v.styled})}
		}
	}
	v.doing = ""
	if d.Part != nil && d.Part.Media != nil {
		d.Text = imageText(d.Part.Media)
	}
	io.WriteString(v.part, d.Text) //nolint:errcheck // a terminal that is gone ends the chat
}

// closePart ends the current part of the answer, if there is one, and shows the notes that
// waited for its end.
func (v *screenView) closePart() {
	if v.part != nil {
		v.part.End() //nolint:errcheck // a terminal that is gone ends the chat
		v.part = nil
	}
	for _, text := range v.notes {
		v.write("%s\n", v.paint(faint, text))
	}
	v.notes = nil
}

// showResult shows the line of a finished call, and in verbose mode the beginning of its
// result.
func (v *screenView) showResult(e agent.Event) {
	mark := v.paint(green, "✓")
	text := resultLine(e.Result)
	if e.Result != nil && e.Result.IsError {
		mark = v.paint(red, "✗")
	}
	head := callLine(e.Call)
	took := duration(e.Took)
	room := max(v.width()-6-len(took), 20)
	head = screen.OneLine(head, room*2/3)
	rest := screen.OneLine(text, max(room-screen.Columns(head), 10))
	v.write("%s %s  %s\n", mark, head, v.paint(faint, took+"  "+rest))
	if v.verbose && e.Result != nil {
		for line := range strings.Lines(truncate(resultText(e.Result), 2000)) {
			v.write("%s\n", v.paint(faint, "  │ "+screen.Clean(strings.TrimRight(line, "\r\n"))))
		}
	}
}

// showStatusLine shows in the status line the running calls or the activity, with their
// time; an empty line if there is neither.
func (v *screenView) showStatusLine(now time.Time) {
	var text string
	switch n := len(v.running); {
	case n > 0:
		last := v.running[0]
		text = "… " + screen.OneLine(last.text, v.width()/2)
		if n > 1 {
			text = fmt.Sprintf("… %d calls, %s", n, screen.OneLine(last.text, v.width()/2))
		}
		if s := int((now.Sub(last.since) - v.waited(last.id)).Seconds()); s > 0 {
			text += fmt.Sprintf(" · %d s", s)
		}
		if said, _, _ := strings.Cut(strings.TrimSpace(last.progress), "\n"); said != "" {
			text += " · " + strings.TrimSuffix(said, ":")
		}
	case v.doing != "":
		text = "… " + v.doing
		if s := int(now.Sub(v.since).Seconds()); s > 0 {
			text += fmt.Sprintf(" · %d s", s)
		}
	}
	v.screen.SetStatusLine(text)
}

// tick updates the status line.
func (v *screenView) tick(now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.showStatusLine(now)
}

// idle ends the current part of the answer and removes the status line.
func (v *screenView) idle() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.closePart()
	v.doing, v.running = "", nil
	v.screen.SetStatusLine("")
	v.screen.EndLine()
}

// showOutcome ends the answer, and says why the turn ended if not with an answer.
func (v *screenView) showOutcome(out *agent.Outcome, cost float64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.closePart()
	if text := endReason(out, v.told); text != "" {
		v.write("%s\n", v.paint(yellow, screen.Clean(text)))
	}
	v.told = ""
	if v.verbose {
		v.write("%s\n", v.paint(faint, turnSummary(out, cost)))
	}
}

// showNote shows a note, after the current part of the answer if there is one.
func (v *screenView) showNote(format string, args ...any) {
	text := screen.Clean(fmt.Sprintf(format, args...))
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.part != nil { // it would interrupt an answer
		v.notes = append(v.notes[max(len(v.notes)-maxNotes, 0):], text)
		return
	}
	v.screen.EndLine()
	v.write("%s\n", v.paint(faint, text))
}

// print shows the result of a command.
func (v *screenView) print(text string) { v.write("%s\n", screen.Clean(strings.TrimRight(text, "\n"))) }
