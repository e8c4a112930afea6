package main

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// want is the input that a command seems to wait for; the zero value is none.
type want struct {
	line     string // the question in its last line
	terminal bool   // input from a terminal, which no command has
	program  string // the program that waits for the terminal; "" if unknown
}

func (w want) any() bool { return w.line != "" || w.terminal }

// name returns the name of the waiting program.
func (w want) name(script string) string {
	if w.program != "" {
		return shorten(safe(w.program).text, 40)
	}
	if name := lastProgram(script); name != "" {
		return shorten(safe(name).text, 40)
	}
	return "a program of it"
}

// instead returns advice on how to do without the program.
func (w want) instead(script string) string {
	name, _, _ := strings.Cut(path.Base(w.name(script)), ".")
	for _, kind := range []struct{ names, advice string }{
		{"vi vim nvim view vimdiff gvim ex nano pico emacs joe jed micro hx kak ne mcedit", "the tools edit and replace change files, view shows them"},
		{"less more most man info", "cat, head or PAGER=cat print without a terminal"},
		{"top htop btop atop iotop nethogs watch", "run it once in batch mode, as top -b -n 1 does"},
		{"ssh scp sftp psql mysql gpg", "use a key, a configuration file or an option such as --batch, so that it does not ask"},
	} {
		if slices.Contains(strings.Fields(kind.names), name) {
			return kind.advice
		}
	}
	return "an option such as -y, --batch or --no-pager, or the answers in stdin, mostly do without a terminal"
}

// quietness detects that a command has paused and waits for input.
type quietness struct {
	output  *proc.Output
	process *proc.Process
	size    int64
	since   time.Time
	looked  time.Time
	still   bool // it seemed to wait for a terminal at the previous check
}

// lookInterval is the time between checks of a quiet command's processes.
const lookInterval = 500 * time.Millisecond

// want returns the input that the command seems to wait for.
func (q *quietness) want() want {
	size := q.output.Size()
	if size != q.size || q.since.IsZero() {
		q.size, q.since, q.still = size, time.Now(), false
		return want{}
	}
	if time.Since(q.since) < idle {
		return want{}
	}
	if line := promptIn(q.output); line != "" {
		return want{line: line}
	}
	if time.Since(q.looked) < lookInterval {
		return want{}
	}
	q.looked = time.Now()
	w := terminalWant(q.process, q.output)
	if again := q.still; !again || !w.terminal { // once may be a coincidence
		q.still = w.terminal
		return want{}
	}
	return w
}

// terminalWant returns whether a command waits for a terminal at this moment:
// one of its processes reads a terminal, or it has drawn a full screen and all
// its processes sleep. The latter is how an editor without a terminal waits.
func terminalWant(p *proc.Process, o *proc.Output) want {
	a := p.Activity()
	if a.Terminal != "" {
		return want{terminal: true, program: a.Terminal}
	}
	if (a.Asleep || !a.Known) && drawsScreen(o) {
		return want{terminal: true, program: a.Program}
	}
	return want{}
}

// Escape sequences (ECMA-48, xterm). screenStart matches a switch to the
// alternate screen or a move to a row below the first; screenEnd matches
// leaving the alternate screen; escapes matches all sequences, including those
// that set titles.
var (
	screenStart = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\x1b\[(?:\?(?:1049|1047|47)h|0*(?:[2-9]|[1-9]\d+);\d+[Hf])`)
	})
	screenEnd = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\x1b\[\?(?:1049|1047|47)l`) })
	escapes   = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\x1b(?:\[[0-9:;<=>?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])`)
	})
)

// drawsScreen reports whether an output ends like that of a full-screen
// program.
func drawsScreen(o *proc.Output) bool {
	text := endOf(o, 16<<10)
	if ends := screenEnd().FindAllStringIndex(text, -1); ends != nil {
		text = text[ends[len(ends)-1][1]:]
	}
	return screenStart().MatchString(text)
}

// promptIn returns the last line of an output if it seems to ask for input, or
// "".
func promptIn(o *proc.Output) string {
	line := lastLine(o)
	if line == "" || !prompt().MatchString(line) {
		return ""
	}
	return shorten(line, 120)
}

// lastLine returns the text after the last line end; "" if there is no text.
func lastLine(o *proc.Output) string {
	text := endOf(o, 300)
	return safe(strings.TrimLeft(text[strings.LastIndexAny(text, "\n\r")+1:], " \t")).text
}

// newestText returns the last line with text, without escape sequences and with
// runs of white space as one space.
func newestText(o *proc.Output) string {
	text := escapes().ReplaceAllString(endOf(o, 4<<10), "")
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	for _, line := range slices.Backward(lines) {
		if words := strings.Fields(line); len(words) > 0 {
			return safe(strings.Join(words, " ")).text
		}
	}
	return ""
}

// endOf returns at most the last most bytes of an output.
func endOf(o *proc.Output, most int64) string {
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

// prompt matches a last line that asks for input.
var prompt = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(pass(word|phrase|code)|username|user name|login|\bpin|otp|token|verification code|e-?mail)[^\n]{0,80}[:?>]\s*$|` +
		`[\[(](y/n|yes/no)(/[^\])]*)?[\])]\s*[:?]?\s*$|press (any key|enter|return)[^\n]{0,60}$|\(current\) unix password|(continue|proceed|overwrite|are you sure|ok to proceed)[^\n]{0,80}\?\s*(\([^)]*\))?\s*:?\s*$`)
})
