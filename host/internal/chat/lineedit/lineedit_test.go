package lineedit_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/chat/lineedit"
	"github.com/toolroom-mcp/toolroom/host/internal/chat/screen"
)

// window is a terminal as far as the editor uses one: it shows what a person
// would see.
type window struct {
	columns, height int
	mu              sync.Mutex
	rows            []string // of cells; a wide rune takes two, the second empty
	row, col        int
	raw             int
	sent            strings.Builder
}

func (w *window) Raw() (func(), error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.raw++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.raw--
	}, nil
}

func (w *window) FlushInput() {}

func (w *window) Size() (int, int) { return w.columns, w.height }

var csi = regexp.MustCompile(`^\x1b\[(\??)(\d*)([A-Za-z])`)

func (w *window) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent.Write(text)
	for s := string(text); s != ""; {
		if m := csi.FindStringSubmatch(s); m != nil {
			n, _ := strconv.Atoi("0" + m[2])
			switch m[3] {
			case "A":
				w.row = max(w.row-n, 0)
			case "C":
				w.col += n
			case "J":
				if n == 2 {
					w.rows = nil
				} else if w.row < len(w.rows) {
					w.rows = w.rows[:w.row+1]
					w.rows[w.row] = string([]rune(w.rows[w.row])[:min(w.col, len([]rune(w.rows[w.row])))])
				}
			case "H":
				w.row, w.col = 0, 0
			}
			s = s[len(m[0]):]
			continue
		}
		r := []rune(s)[0]
		s = s[len(string(r)):]
		switch r {
		case '\r':
			w.col = 0
		case '\n':
			w.row++
		default:
			for len(w.rows) <= w.row {
				w.rows = append(w.rows, "")
			}
			cells := []rune(w.rows[w.row])
			for len(cells) < w.col {
				cells = append(cells, ' ')
			}
			cells = append(cells[:w.col], r)
			if w.col++; screen.Width(r) == 2 {
				cells = append(cells, '\u200b')
				w.col++
			}
			w.rows[w.row] = string(cells)
		}
	}
	return len(text), nil
}

// seen is what is to be seen, the cursor as ▮ where it is.
func (w *window) seen() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	rows := append([]string(nil), w.rows...)
	for len(rows) <= w.row {
		rows = append(rows, "")
	}
	cells := []rune(rows[w.row])
	for len(cells) < w.col {
		cells = append(cells, ' ')
	}
	rows[w.row] = string(cells[:w.col]) + "▮" + string(cells[w.col:])
	return strings.ReplaceAll(strings.Join(rows, "\n"), "\u200b", "")
}

// typing is an editor whose keys a test presses.
type typing struct {
	*window
	editor *lineedit.Editor
	keys   *io.PipeWriter
}

func newTyping(t *testing.T, columns int) *typing {
	t.Helper()
	in, keys := io.Pipe()
	t.Cleanup(func() { keys.Close() })
	w := &window{columns: columns, height: 10}
	s := lineedit.NewSource(in)
	t.Cleanup(s.Close)
	return &typing{w, lineedit.New(s, w, w), keys}
}

// read reads a text while keys are pressed.
func (ty *typing) read(t *testing.T, keys string) (string, error) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.WriteString(ty.keys, keys) //nolint:errcheck // the reader tells
	}()
	text, err := ty.editor.Read(t.Context(), "> ", "")
	<-done
	require.Zero(t, ty.raw, "the terminal is as it was")
	require.True(t, strings.HasSuffix(ty.sent.String(), "\x1b[?2004l"), "and takes pastes as before")
	return text, err
}

// Esc alone ends a text where it may; the sequences of other keys do not, and neither does
// Esc before one.
func TestEsc(t *testing.T) {
	for keys, want := range map[string]string{"ab\x1b[Dx\r": "axb", "ab\x1b\x1b[Dx\r": "axb", "a\x1b\rb\r": "a\nb", "ab\x1bOHx\r": "xab"} {
		ty := newTyping(t, 40)
		go io.WriteString(ty.keys, keys) //nolint:errcheck // the reader tells
		text, err := ty.editor.ReadOrEscape(t.Context(), "> ", "")
		require.NoError(t, err)
		require.Equal(t, want, text, "%q", keys)
	}
	ty := newTyping(t, 40)
	for range 2 {
		go io.WriteString(ty.keys, "ab\x1b") //nolint:errcheck // the reader tells
		_, err := ty.editor.ReadOrEscape(t.Context(), "> ", "xy")
		require.ErrorIs(t, err, lineedit.ErrEscape)
		require.Zero(t, ty.raw, "the terminal is as it was")
	}
	text, err := ty.read(t, "a\x1b[Db\r") // the next text is read as ever
	require.NoError(t, err)
	require.Equal(t, "ba", text)
}

func TestKeys(t *testing.T) {
	const (
		up, down, right, left = "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D"
		alt                   = "\x1b"
	)
	for keys, want := range map[string]string{
		"plain\r":                        "plain",
		"a\x01b\x05c\r":                  "bac",
		"abc" + left + left + "X\r":      "aXbc",
		"abc\x02\x02\x06Y\r":             "abYc",
		"ab\x7f\x08c\r":                  "c",
		"abc\x01\x04\r":                  "bc",
		"abc" + left + "\x1b[3~\r":       "ab",
		"one two\x17three\r":             "one three",
		"one two\x15new\r":               "new",
		"one two\x01\x0b\x19\x19\r":      "one twoone two",
		"one two" + alt + "b" + "X\r":    "one Xtwo",
		"one two\x01" + alt + "d\r":      " two",
		"one two\x01" + alt + "fX\r":     "oneX two",
		"one\x1b[H_\x1b[F_\x1bOH-\r":     "-_one_",
		"line\\\rtwo\r":                  "line\ntwo",
		"a\\b\r":                         `a\b`,
		"one\x1b\rtwo\x0athree\r":        "one\ntwo\nthree",
		"one\x1b\rtwo" + up + "X\r":      "oneX\ntwo",
		"o\x1b\rtwo" + up + down + "X\r": "o\ntXwo",
		"\x1b[200~pasted\rin \\\r\ntwo\x03\x1b[200~\x1b[201~\r": "pasted\nin \\\ntwo\x03\x1b[200~",
		"日本\x7f語\r":                        "日語",
		"e\u0301x" + left + left + "a\r":   "ae\u0301x",
		"e\u0301\x7f\r":                    "",
		"x\x1b[99;99Zy\x1bOPz\x1b[1;2Aq\r": "xyzq",
		"typed\x03kept\r":                  "kept",
		"\xff\xfeok\r":                     "ok",
	} {
		got, err := newTyping(t, 40).read(t, keys)
		require.NoError(t, err, "%q", keys)
		require.Equal(t, want, got, "%q", keys)
	}
	for keys, want := range map[string]error{"\x03": lineedit.ErrInterrupt, "\x04": io.EOF, "a\x7f\x04": io.EOF, "a\x03\x03": lineedit.ErrInterrupt} {
		_, err := newTyping(t, 40).read(t, keys)
		require.ErrorIs(t, err, want, "%q", keys)
	}
}

func TestWhatIsSeen(t *testing.T) {
	for keys, want := range map[string]string{
		"hello\r":                            "> hello\n▮",
		"one\x1b\rtwo\r":                     "> one\n  two\n▮",
		"0123456789abcdefghij\r":             "> 0123456789abcdef\n  ghij\n▮",
		"日本語日本語日本語\r":                        "> 日本語日本語日本\n  語\n▮",
		"a\x1b\rb\x1b\rc\x1b[A\x1b[A\x15X\r": "> X\n  b\n  c\n▮",
		"\x1b[200~\x1b]0;x\x07\x1b[201~\r":   "> \\u001b]0;x\\u0007\n▮",
		"abc\x03\x03":                        "> abc^C\n> ^C\n▮",
	} {
		ty := newTyping(t, 19)
		ty.read(t, keys) //nolint:errcheck // what is seen is the question
		require.Equal(t, want, ty.seen(), "%q", keys)
	}
	long := newTyping(t, 20) // longer than the window: what is around the cursor
	_, err := long.read(t, strings.Repeat("x\x1b\r", 30)+"end\r")
	require.NoError(t, err)
	require.LessOrEqual(t, strings.Count(long.seen(), "\n"), 10)
	require.Contains(t, long.seen(), "  end\n")
}

func TestHistoryIsWalked(t *testing.T) {
	ty := newTyping(t, 40)
	path := filepath.Join(t.TempDir(), "deep", "history")
	h, err := lineedit.OpenHistory(path)
	require.NoError(t, err)
	ty.editor.History = h
	for _, entry := range []string{"first", "second\nof two", "second\nof two", " secret", ""} {
		require.NoError(t, h.Add(entry))
	}
	for keys, want := range map[string]string{
		"\x1b[A\x1b[A\x1b[A\x1b[A\r": "first",
		"\x10\r":                     "second\nof two",
		"\x10\x10\x0e!\r":            "second\nof two!",
		"typed\x10\x10\x0e\x0e\r":    "typed",
	} {
		got, err := ty.read(t, keys)
		require.NoError(t, err)
		require.Equal(t, want, got, "%q", keys)
	}
	again, err := lineedit.OpenHistory(path)
	require.NoError(t, err)
	ty.editor.History = again
	got, err := ty.read(t, "\x10\x10\r")
	require.NoError(t, err)
	require.Equal(t, "first", got)
	if runtime.GOOS != "windows" {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}
}

func TestHistoryIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, "\"entry %d\"\n", i)
	}
	b.WriteString("not JSON\n\"cut")
	require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644)) //nolint:gosec // it is to become 0600
	h, err := lineedit.OpenHistory(path)
	require.NoError(t, err)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, 1000, strings.Count(string(text), "\n"))
	require.True(t, strings.HasSuffix(string(text), "\"entry 4999\"\n"))
	require.NoError(t, h.Add(strings.Repeat("x", 1<<20)), "too long to be kept")
	require.NoError(t, h.Add("one more"))
	for _, large := range []int{900 << 10, 1200 << 10} {
		require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("\""+strings.Repeat("y", 998)+"\"\n", large/1000)), 0o600))
		_, err = lineedit.OpenHistory(path)
		require.NoError(t, err)
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.LessOrEqual(t, info.Size(), int64(1<<20))
	}
	notes := strings.Repeat("what somebody else has written\n", 100_000)
	require.NoError(t, os.WriteFile(path, []byte(notes), 0o600))
	h, err = lineedit.OpenHistory(path)
	require.ErrorContains(t, err, "not a history file")
	require.NoError(t, h.Add("kept nowhere"))
	text, err = os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, string(text) == notes, "a file of another kind stays as it is")
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o700))
	h, err = lineedit.OpenHistory(path)
	require.ErrorContains(t, err, "is not a regular file")
	require.NoError(t, h.Add("kept nowhere"))
}

func TestCompletion(t *testing.T) {
	ty := newTyping(t, 60)
	ty.editor.Complete = func(text string) []string {
		var found []string
		for _, c := range []string{"/tools", "/session", "/servers", "/save"} {
			if strings.HasPrefix(c, text) {
				found = append(found, c)
			}
		}
		return found
	}
	got, err := ty.read(t, "/t\t\r")
	require.NoError(t, err)
	require.Equal(t, "/tools", got)
	got, err = ty.read(t, "/se\trv\t!\r")
	require.NoError(t, err)
	require.Equal(t, "/serv"+"ers!", got)
	require.Contains(t, ty.seen(), "/session  /servers")
	got, err = ty.read(t, "none\t\r")
	require.NoError(t, err)
	require.Equal(t, "none", got)
}

// Whatever ends the reading leaves the terminal as it was.
func TestTheTerminalIsRestored(t *testing.T) {
	ty := newTyping(t, 40)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := ty.editor.Read(ctx, "> ", "")
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, ty.raw)
	ty.editor.Complete = func(string) []string { panic("in a completion") }
	require.PanicsWithValue(t, "in a completion", func() { ty.read(t, "x\t") }) //nolint:errcheck // it panics
	require.Zero(t, ty.raw)
	require.True(t, strings.HasSuffix(ty.sent.String(), "\x1b[?2004l"))
}

func TestChoosingAKey(t *testing.T) {
	ty := newTyping(t, 40)
	go io.WriteString(ty.keys, "x\rqY") //nolint:errcheck // the reader tells
	key, err := ty.editor.ReadKey(t.Context(), "Sure? ", "yn")
	require.NoError(t, err)
	require.Equal(t, 'y', key)
	require.Equal(t, "Sure? y\n▮", ty.seen())
	go io.WriteString(ty.keys, "\x03") //nolint:errcheck // likewise
	_, err = ty.editor.ReadKey(t.Context(), "Sure? ", "yn")
	require.ErrorIs(t, err, lineedit.ErrInterrupt)

	// What was typed before the question is no answer to it.
	text, err := ty.read(t, "said\ryyy")
	require.NoError(t, err)
	require.Equal(t, "said", text)
	ty.editor.DiscardInput()
	go io.WriteString(ty.keys, "n") //nolint:errcheck // likewise
	key, err = ty.editor.ReadKey(t.Context(), "Sure? ", "yn")
	require.NoError(t, err)
	require.Equal(t, 'n', key)
}

func TestLinesOfAPipe(t *testing.T) {
	s := lineedit.NewSource(strings.NewReader("one\r\ntwo\n\nlast"))
	t.Cleanup(s.Close)
	for _, want := range []string{"one", "two", "", "last"} {
		got, err := s.ReadLine(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for range 2 {
		_, err := s.ReadLine(t.Context())
		require.ErrorIs(t, err, io.EOF)
	}
	endless := lineedit.NewSource(strings.NewReader(strings.Repeat("x", 5<<20)))
	t.Cleanup(endless.Close)
	_, err := endless.ReadLine(t.Context())
	require.ErrorContains(t, err, "longer than")
}

// Who stops waiting leaves what is typed then to the next.
func TestAWaitThatIsGivenUp(t *testing.T) {
	in, keys := io.Pipe()
	s := lineedit.NewSource(in)
	t.Cleanup(s.Close)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := s.ReadLine(ctx)
		done <- err
	}()
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	go io.WriteString(keys, "typed\n") //nolint:errcheck // the reader tells
	got, err := s.ReadLine(t.Context())
	require.NoError(t, err)
	require.Equal(t, "typed", got)
}
