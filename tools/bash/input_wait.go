package main

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// inputWait describes the input that a command seems to wait for; the zero
// value means none.
type inputWait struct {
	line     string // the question in its last line
	terminal bool   // input from a terminal, which no command has
	program  string // the program that waits for the terminal; "" if unknown
}

// isSet reports whether the command seems to wait for input.
func (w inputWait) isSet() bool { return w.line != "" || w.terminal }

// programText returns the waiting program for a message: its name, a guess from
// the command, or "a program of it".
func (w inputWait) programText(script string) string {
	if w.program != "" {
		return shorten(escapeUnsafe(w.program).text, 40)
	}
	if name := lastProgram(script); name != "" {
		return shorten(escapeUnsafe(name).text, 40)
	}
	return "a program of it"
}

// advice tells how to do without the program's terminal.
func (w inputWait) advice(script string) string {
	name, _, _ := strings.Cut(path.Base(w.programText(script)), ".")
	for _, kind := range []struct{ names, advice string }{
		{"vi vim nvim view vimdiff gvim ex nano pico emacs joe jed micro hx kak ne mcedit", "use the tools edit and replace to change files, and view to read them"},
		{"less more most man info", "use cat, head or PAGER=cat, which need no terminal"},
		{"top htop btop atop iotop nethogs watch", "run it once in batch mode, such as top -b -n 1"},
		{"ssh scp sftp psql mysql gpg", "use a key, a configuration file or an option such as --batch, so that it does not ask"},
	} {
		if slices.Contains(strings.Fields(kind.names), name) {
			return kind.advice
		}
	}
	return "use an option such as -y, --batch or --no-pager, or give the answers in stdin"
}

// waitDetector detects that a command has paused and waits for input. The
// caller calls check from time to time.
type waitDetector struct {
	output       *proc.Output
	process      *proc.Process
	size         int64     // of the output at the last check
	since        time.Time // time of the last new output
	lastLook     time.Time // time of the last look at the processes
	terminalSeen bool      // it seemed to wait for a terminal at the previous look
}

// lookInterval is the time between two looks at a quiet command's processes.
const lookInterval = 500 * time.Millisecond

// check returns the input that the command seems to wait for, the zero value if it waits
// for none. The caller calls it repeatedly: it reports only a command that has printed
// nothing for idleTime.
func (q *waitDetector) check() inputWait {
	size := q.output.Size()
	if size != q.size || q.since.IsZero() {
		q.size, q.since, q.terminalSeen = size, time.Now(), false
		return inputWait{}
	}
	if time.Since(q.since) < idleTime {
		return inputWait{}
	}
	if line := promptLine(q.output); line != "" {
		return inputWait{line: line}
	}
	if time.Since(q.lastLook) < lookInterval {
		return inputWait{}
	}
	q.lastLook = time.Now()
	w := terminalWait(q.process, q.output)
	if again := q.terminalSeen; !again || !w.terminal { // once may be a coincidence
		q.terminalSeen = w.terminal
		return inputWait{}
	}
	return w
}

// terminalWait returns the input that a command waits for at this moment, if
// that comes from a terminal: one of its processes reads a terminal, or it has
// drawn a full screen and all its processes sleep. The latter is how an editor
// without a terminal waits.
func terminalWait(p *proc.Process, o *proc.Output) inputWait {
	a := p.Activity()
	if a.Terminal != "" {
		return inputWait{terminal: true, program: a.Terminal}
	}
	if (a.Asleep || !a.Known) && drawsScreen(o) {
		return inputWait{terminal: true, program: a.Program}
	}
	return inputWait{}
}

// Escape sequences (ECMA-48, xterm). screenStart matches a switch to the
// alternate screen or a move to a row below the first; screenEnd matches
// leaving the alternate screen; escapes matches all sequences, including those
// that set titles.
var (
	screenStart = lazyregexp.New(`\x1b\[(?:\?(?:1049|1047|47)h|0*(?:[2-9]|[1-9]\d+);\d+[Hf])`)
	screenEnd   = lazyregexp.New(`\x1b\[\?(?:1049|1047|47)l`)
	escapes     = lazyregexp.New(`\x1b(?:\[[0-9:;<=>?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])`)
)

// drawsScreen reports whether a full-screen program seems to run: the end of
// the output, after the last switch back from the alternate screen, switches to
// it or moves the cursor to a row below the first.
func drawsScreen(o *proc.Output) bool {
	text := outputTail(o, 16<<10)
	if ends := screenEnd().FindAllStringIndex(text, -1); ends != nil {
		text = text[ends[len(ends)-1][1]:]
	}
	return screenStart().MatchString(text)
}

// promptLine returns the last line of an output if it seems to ask for input,
// or "".
func promptLine(o *proc.Output) string {
	line := lastLine(o)
	if line == "" || !promptPattern().MatchString(line) {
		return ""
	}
	return shorten(line, 120)
}

// lastLine returns the text after the last line end, escaped; "" if there is no
// text.
func lastLine(o *proc.Output) string {
	text := outputTail(o, 300)
	return escapeUnsafe(strings.TrimLeft(text[strings.LastIndexAny(text, "\n\r")+1:], " \t")).text
}

// newestText returns the last line with text, without escape sequences and with runs of
// white space as one space. It returns "" for an output without text.
func newestText(o *proc.Output) string {
	text := escapes().ReplaceAllString(outputTail(o, 4<<10), "")
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	for _, line := range slices.Backward(lines) {
		if words := strings.Fields(line); len(words) > 0 {
			return escapeUnsafe(strings.Join(words, " ")).text
		}
	}
	return ""
}

// outputTail returns at most the last most bytes of an output, without invalid
// UTF-8.
func outputTail(o *proc.Output, most int64) string {
	var text []byte
	buf := make([]byte, most)
	for at := max(0, o.Size()-most); int64(len(text)) < most; {
		n, skipped, err := o.Read(at, buf[:most-int64(len(text))])
		if err != nil || n == 0 {
			break
		}
		text = append(text, buf[:n]...)
		at += skipped + int64(n)
	}
	return strings.ToValidUTF8(string(text), "")
}

// promptPattern matches a last line that asks for input.
var promptPattern = lazyregexp.New(`(?i)(pass(word|phrase|code)|username|user name|login|\bpin|otp|token|verification code|e-?mail)[^\n]{0,80}[:?>]\s*$|` +
	`[\[(](y/n|yes/no)(/[^\])]*)?[\])]\s*[:?]?\s*$|press (any key|enter|return)[^\n]{0,60}$|\(current\) unix password|(continue|proceed|overwrite|are you sure|ok to proceed)[^\n]{0,80}\?\s*(\([^)]*\))?\s*:?\s*$`)
