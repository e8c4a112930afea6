package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/unicode"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// manner is a file format.
type manner struct {
	name  string
	codec encoding.Encoding
	bom   string
	words []string
}

var manners = []manner{
	{"utf-8", unicode.UTF8, "", strings.Fields("if x {  return naïve “quoted” 日本語 🙂 f(a) b[i] é e\u0301 end.")},
	{"utf-8 bom", unicode.UTF8, "\xef\xbb\xbf", strings.Fields("var name = value; größe 値 x == y")},
	{"utf-16le", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), "\xff\xfe", strings.Fields("ein Wort größer 日本 🙂 <tag/> x")},
	{"utf-16be", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), "\xfe\xff", strings.Fields("ein Wort größer 日本 🙂 <tag/> x")},
	{"latin-1", charmap.ISO8859_1, "", strings.Fields("café déjà vu où être naïve garçon là word und Straße")},
	{"shift-jis", japanese.ShiftJIS, "", strings.Fields("これは 日本語 の テキスト です 表示 ソース 能力 word = value; カタカナ")},
}

// sample is a file generated line by line, so that every byte of it is known
// without reading it.
type sample struct {
	manner
	path    string
	lines   []string // without endings
	endings []string
	starts  []int // byte offsets of the lines, and the size
	raw     []byte
}

func newSample(t *testing.T, rng *rand.Rand) *sample {
	s := &sample{manner: manners[rng.IntN(len(manners))]}
	styles := [][]string{{"\n"}, {"\r\n"}, {"\n", "\r\n"}}[rng.IntN(3)]
	var pool []string
	for range 3 + rng.IntN(40) {
		if len(pool) > 0 && rng.IntN(5) == 0 { // some lines repeat
			s.lines = append(s.lines, pool[rng.IntN(len(pool))])
			continue
		}
		var line strings.Builder
		line.WriteString(strings.Repeat([]string{"\t", "    ", "  "}[rng.IntN(3)], rng.IntN(4)))
		for i := range rng.IntN(9) {
			if i > 0 {
				line.WriteString([]string{" ", " ", "  ", "\t"}[rng.IntN(4)])
			}
			line.WriteString(s.words[rng.IntN(len(s.words))])
		}
		line.WriteString([]string{"", "", "", " ", "\t"}[rng.IntN(5)])
		pool = append(pool, line.String())
		s.lines = append(s.lines, line.String())
	}
	// Enough text to detect the encoding.
	s.lines = append(s.lines, strings.Repeat(strings.Join(s.words, " ")+" ", 3)+fmt.Sprint(rng.IntN(1000)))
	s.raw = []byte(s.bom)
	for i := range s.lines {
		ending := styles[rng.IntN(len(styles))]
		if i == len(s.lines)-1 && rng.IntN(2) == 0 {
			ending = ""
		}
		s.endings = append(s.endings, ending)
		s.starts = append(s.starts, len(s.raw))
		s.raw = append(s.raw, s.encode(t, s.lines[i]+ending)...)
	}
	s.starts = append(s.starts, len(s.raw))
	return s
}

func (s *sample) encode(t *testing.T, text string) []byte {
	raw, err := s.codec.NewEncoder().Bytes([]byte(text))
	require.NoError(t, err, "%s %q", s.name, text)
	return raw
}

// text returns some words, in lines.
func (s *sample) text(rng *rand.Rand) string {
	var out []string
	for range rng.IntN(4) {
		var line []string
		for range rng.IntN(4) {
			line = append(line, s.words[rng.IntN(len(s.words))])
		}
		out = append(out, "\t"+strings.Join(line, " "))
	}
	return strings.Join(out, "\n")
}

// alike returns the lines at which a block of lines occurs, compared by fold.
// The first line may be the end of a line.
func (s *sample) alike(block []string, fold func(string) string) []int {
	var at []int
	for i := 0; i+len(block) <= len(s.lines); i++ {
		same := strings.HasSuffix(fold(s.lines[i]), fold(block[0]))
		for j := 1; j < len(block); j++ {
			same = same && fold(s.lines[i+j]) == fold(block[j])
		}
		if same {
			at = append(at, i)
		}
	}
	return at
}

// exact returns the byte offsets at which a text occurs exactly.
func (s *sample) exact(t *testing.T, old string) (at []int) {
	var text strings.Builder
	for i := range s.lines {
		text.WriteString(s.lines[i] + s.endings[i])
	}
	for from, all := 0, text.String(); ; {
		next := strings.Index(all[from:], old)
		if next < 0 {
			return at
		}
		from += next
		if from == 0 || all[from] != '\n' || all[from-1] != '\r' { // does not split a line ending
			at = append(at, len(s.bom)+len(s.encode(t, all[:from])))
		}
		from++
	}
}

// TestRandomEdits makes edits in files of every encoding and line ending, and
// compares the results with the expected bytes. EDIT_FILES sets the number of
// files.
func TestRandomEdits(t *testing.T) {
	f := newFixture(t)
	seed := uint64(count(t, "EDIT_SEED", 1))
	rng := rand.New(rand.NewPCG(seed, 11))
	done, refused := 0, map[toolerr.Code]int{}
	total := count(t, "EDIT_FILES", 600)
	for i := range total {
		s := newSample(t, rng)
		s.path = fmt.Sprint("file", i)
		f.write(s.path, s.raw)
		var code toolerr.Code
		if rng.IntN(3) == 0 {
			code = s.editWords(f, rng)
		} else {
			code = s.editLines(f, rng)
		}
		if code != "" {
			refused[code]++
			require.Equal(t, s.raw, f.read(s.path), "file %d: refused with %s, and changed", i, code)
			continue
		}
		done++
		if rng.IntN(4) == 0 {
			f.done(map[string]any{"file_path": s.path, "undo": true})
			require.Equal(t, s.raw, f.read(s.path), "file %d: undone", i)
		}
		require.NoError(t, os.Remove(f.file(s.path)))
	}
	t.Logf("%d edits made, refused: %v", done, refused)
	require.Greater(t, done, total/2, refused)
	for code := range refused {
		require.Contains(t, []toolerr.Code{toolerr.NoMatch, toolerr.NotUnique, toolerr.NoChange}, code)
	}
}

// call makes an edit. If it depends on a guess of the encoding, it must be
// refused without a change, and must succeed when the encoding is given.
func (s *sample) call(f *fixture, args map[string]any) *mcpkit.CallResult {
	res := f.call(args)
	if res.Code != toolerr.BadEncoding {
		return res
	}
	require.Contains(f.t, res.Text, "is a guess")
	require.Contains(f.t, res.Text, s.name)
	require.Equal(f.t, s.raw, f.read(s.path))
	args["encoding"] = s.name
	return f.call(args)
}

// editWords replaces a part of a line.
func (s *sample) editWords(f *fixture, rng *rand.Rand) toolerr.Code {
	n := rng.IntN(len(s.lines))
	line := []rune(s.lines[n])
	if len(line) == 0 {
		line = []rune("not there at all")
	}
	from := rng.IntN(len(line))
	to := from + 1 + rng.IntN(len(line)-from)
	old, newText := string(line[from:to]), strings.ReplaceAll(s.text(rng), "\n", " ")
	places := 0
	for _, l := range s.lines {
		for at := 0; at < len(l); {
			next := strings.Index(l[at:], old)
			if next < 0 {
				break
			}
			places++
			at += next + len(string([]rune(old)[:1]))
		}
	}
	res := s.call(f, map[string]any{"file_path": s.path, "old_string": old, "new_string": newText})
	if res.IsError {
		if places == 1 && old != newText {
			require.Failf(f.t, "not made", "%s %q → %q: %s", s.name, old, newText, res.Text)
		}
		return res.Code
	}
	require.Equal(f.t, 1, places, "%q was not unique: %s", old, res.Text)
	head := string(line[:from])
	want := bytes.Clone(s.raw[:s.starts[n]])
	want = append(want, s.encode(f.t.(*testing.T), head+newText+string(line[to:])+s.endings[n])...)
	want = append(want, s.raw[s.starts[n+1]:]...)
	require.Equal(f.t, string(want), string(f.read(s.path)), "%s %q → %q", s.name, old, newText)
	return ""
}

// editLines replaces whole lines, given exactly or as models remember them:
// with other trailing blanks, with numbers, with other indentation, or wrong.
func (s *sample) editLines(f *fixture, rng *rand.Rand) toolerr.Code {
	first := rng.IntN(len(s.lines))
	last := min(first+rng.IntN(4), len(s.lines)-1)
	block := s.lines[first : last+1]
	sent := make([]string, len(block))
	how := rng.IntN(5)
	for i, line := range block {
		sent[i] = [...]string{line, strings.TrimRight(line, " \t") + " ", fmt.Sprintf("%6d\t%s", first+i+1, line), "\t" + line, line + "q"}[how]
	}
	fold := [...]func(string) string{
		func(l string) string { return l },
		func(l string) string { return strings.TrimRight(l, " \t") },
		func(l string) string { return l },
		strings.TrimSpace,
		func(l string) string { return l },
	}[how]
	old, newText := strings.Join(sent, "\n")+"\n", s.text(rng)+"\n"
	res := s.call(f, map[string]any{"file_path": s.path, "old_string": old, "new_string": newText})
	exact := s.exact(f.t.(*testing.T), old)
	if res.IsError {
		if len(exact) == 1 && old != newText {
			require.Failf(f.t, "not made", "%s, variant %d: %q: %s", s.name, how, old, res.Text)
		}
		return res.Code
	}
	after := f.read(s.path)
	if len(exact) > 0 || how == 4 {
		require.Len(f.t, exact, 1, "%s, variant %d: %q", s.name, how, old)
		s.requireReplaced(f.t, after, exact[0], exact[0]+len(s.encode(f.t.(*testing.T), old)), newText)
		return ""
	}
	places := s.alike(block, fold)
	if how == 2 { // it had a line number, so it begins its line, after indentation
		places = slices.DeleteFunc(places, func(at int) bool {
			before, _ := strings.CutSuffix(s.lines[at], block[0])
			return strings.Trim(before, " \t") != ""
		})
	}
	// Blanks alone do not match at the end of a line, and a line with exactly
	// the blanks that were sent takes precedence.
	if how < 3 && (how != 1 || strings.TrimSpace(block[0]) != "" && !strings.Contains(strings.Join(s.lines, "\n")+"\n", old)) {
		require.Len(f.t, places, 1, "%s, variant %d: %q is not unique", s.name, how, old)
	}
	inside := 0
	for _, at := range places {
		start, end := s.starts[at], s.starts[at+len(block)]
		if bytes.HasPrefix(after, s.raw[:start]) && bytes.HasSuffix(after, s.raw[end:]) {
			inside++
		}
	}
	require.Positive(f.t, inside, "%s, variant %d: %q was not there, and something was changed:\n%s", s.name, how, old, res.Text)
	if how == 0 || how == 2 {
		start, end := s.starts[places[0]], s.starts[places[0]+len(block)]
		if head, ok := strings.CutSuffix(s.lines[places[0]], block[0]); ok {
			start += len(s.encode(f.t.(*testing.T), head))
		}
		s.requireReplaced(f.t, after, start, end, newText)
	}
	return ""
}

// requireReplaced asserts that a range of the file is the new text, with any
// line endings, and everything else is unchanged.
func (s *sample) requireReplaced(t testing.TB, after []byte, start, end int, newText string) {
	t.Helper()
	rest := len(s.raw) - end
	require.Equal(t, s.raw[:start], after[:start], "%s: before the edit", s.name)
	require.Equal(t, s.raw[end:], after[len(after)-rest:], "%s: behind the edit", s.name)
	text, err := s.codec.NewDecoder().Bytes(after[start : len(after)-rest])
	require.NoError(t, err)
	got := strings.ReplaceAll(string(text), "\r\n", "\n")
	// A last line without an ending stays without one.
	require.Equal(t, strings.TrimSuffix(newText, "\n"), strings.TrimSuffix(got, "\n"), s.name)
	if rest > 0 {
		require.Equal(t, newText, got, s.name)
	}
}
