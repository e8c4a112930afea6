package match_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
	"github.com/toolroom-mcp/toolroom/tools/edit/match"
	"github.com/toolroom-mcp/toolroom/tools/edit/splice"
)

// sample is a random file and an edit made from one of its places.
type sample struct {
	raw      []byte
	old, new string
}

// pieces are the parts of random lines, few so that many repeat.
var pieces = []string{"foo", "bar(x)", "}", "{", "if a {", "return \"q\"", "it's", "a - b", "wait...", "one: 1", "x\ty", "key: value", "", "", "é", "“hi”", "日本"}

// wholes reveal each encoding, so that it is detected in a short file.
var wholes = map[textfile.Encoding]string{
	textfile.Latin1:      "# été à l'école, déjà vu, garçon",
	textfile.Windows1252: "# l’œuvre coûte 3 € – voilà “bien”",
	textfile.ShiftJIS:    "# 日本語のテキストです。カタカナとひらがな",
	textfile.GBK:         "# 你好，世界！这是一个测试文件。中文字符",
}

var encodings = []textfile.Encoding{
	textfile.UTF8, textfile.UTF8, textfile.UTF8, textfile.UTF16LE, textfile.UTF16BE,
	textfile.Latin1, textfile.Windows1252, textfile.ShiftJIS, textfile.GBK,
}

func newSample(rng *rand.Rand) sample {
	e := encodings[rng.IntN(len(encodings))]
	endings := [][]string{{"\n"}, {"\r\n"}, {"\n", "\r\n"}, {"\r"}}[rng.IntN(4)]
	var text strings.Builder
	end := func() { text.WriteString(endings[rng.IntN(len(endings))]) }
	for range 1 + rng.IntN(14) {
		text.WriteString(randomLine(rng, e))
		end()
	}
	if whole := wholes[e]; whole != "" {
		text.WriteString(whole)
		end()
	}
	for range rng.IntN(6) {
		text.WriteString(randomLine(rng, e))
		end()
	}
	if rng.IntN(3) == 0 {
		text.WriteString(strings.TrimRight(randomLine(rng, e), "\r\n"))
	}
	raw, err := e.Encode(text.String())
	if err != nil {
		panic(err)
	}
	s := sample{raw: raw}
	switch {
	case e.IsUTF16():
		mark, _ := e.Encode("\uFEFF")
		s.raw = append(mark, raw...)
	case e == textfile.UTF8 && rng.IntN(4) == 0:
		s.raw = append([]byte("\xef\xbb\xbf"), raw...)
	case e == textfile.UTF8 && rng.IntN(6) == 0 && len(raw) > 0:
		at := rng.IntN(len(raw))
		s.raw = append(append(bytes.Clone(raw[:at]), 0xE9), raw[at:]...)
	}
	s.old, s.new = randomEdit(rng, text.String(), e)
	return s
}

func randomLine(rng *rand.Rand, e textfile.Encoding) string {
	var line strings.Builder
	line.WriteString([]string{"", "", "\t", "\t\t", "  ", "    ", "        "}[rng.IntN(7)])
	for range rng.IntN(3) {
		piece := pieces[rng.IntN(len(pieces))]
		if _, err := e.Encode(piece); err != nil {
			piece = "ascii"
		}
		line.WriteString(piece)
	}
	line.WriteString([]string{"", "", "", " ", "\t"}[rng.IntN(5)])
	return line.String()
}

// randomEdit takes a part of the text and rewrites it like a model might.
func randomEdit(rng *rand.Rand, text string, e textfile.Encoding) (old, newText string) {
	runes := []rune(text)
	from := rng.IntN(len(runes))
	to := from + 1 + rng.IntN(min(60, len(runes)-from))
	if rng.IntN(2) == 0 { // whole lines
		for from > 0 && runes[from-1] != '\n' {
			from--
		}
		for to < len(runes) && runes[to-1] != '\n' {
			to++
		}
	}
	old = string(runes[from:to])
	lines := strings.Split(old, "\n")
	switch rng.IntN(6) {
	case 0: // unchanged
	case 1:
		old = strings.ReplaceAll(old, "\r\n", "\n")
	case 2:
		for i := range lines {
			lines[i] = fmt.Sprintf("%6d\t%s", i+7, strings.TrimSuffix(lines[i], "\r"))
		}
		old = strings.Join(lines, "\n")
	case 3:
		for i := range lines {
			lines[i] = strings.TrimRight(lines[i], " \t\r")
		}
		old = strings.Join(lines, "\n")
	case 4:
		old = strings.NewReplacer("“", `"`, "”", `"`, "'", "’", "-", "–", "...", "…", "\r\n", "\n").Replace(old)
	case 5:
		for i := range lines {
			lines[i] = strings.ReplaceAll(strings.TrimSuffix(lines[i], "\r"), "\t", "    ")
		}
		old = strings.Join(lines, "\n")
	}
	kept := strings.Split(old, "\n")
	for range 1 + rng.IntN(3) {
		at := rng.IntN(len(kept) + 1)
		switch rng.IntN(3) {
		case 0:
			kept = append(kept[:at:at], append([]string{randomLine(rng, e)}, kept[at:]...)...)
		case 1:
			if at < len(kept) && len(kept) > 1 {
				kept = append(kept[:at:at], kept[at+1:]...)
			}
		case 2:
			if at < len(kept) {
				kept[at] += pieces[rng.IntN(len(pieces))]
			}
		}
	}
	return old, strings.Join(kept, "\n")
}

// TestRandomEdits makes edits in random files and compares them with a simple
// implementation of the documented behaviour.
func TestRandomEdits(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	done, asGiven, steps, seen := 0, 0, map[match.Step]int{}, map[textfile.Encoding]int{}
	for i := range 10_000 {
		s := newSample(rng)
		f, err := splice.Open(t.Context(), s.raw)
		if err != nil || s.old == "" {
			continue
		}
		plan, err := match.Find(t.Context(), f, []match.Edit{{Old: s.old, New: s.new}}, match.Options{})
		if err != nil {
			checkRefusal(t, f, s, err)
			continue
		}
		place := plan.Places[0]
		step := plan.Found[0].Step
		count := occurrences(f, s.old, step)
		if step == match.Indentation { // the count includes places with non-uniform indentation
			count = min(count, 1)
		}
		require.Equal(t, 1, count, "sample %d is at one place at step %s: %q in %q", i, step, s.old, f.Text)
		for earlier := match.Exact; earlier < step; earlier++ {
			require.Zero(t, occurrences(f, s.old, earlier), "sample %d is at no place at step %s: %q in %q", i, earlier, s.old, f.Text)
		}
		result, err := f.Apply(t.Context(), plan.Changes)
		if err != nil {
			require.True(t, toolerr.Is(err, toolerr.BadEncoding), "sample %d: %v", i, err)
			_, encodeErr := f.Encoding.Encode(s.new)
			require.True(t, encodeErr != nil || strings.Contains(string(f.Text), "\uFFFD"), "sample %d: %v", i, err)
			continue
		}
		if plan.Found[0].NotShifted && step < match.Indentation {
			lead := string(f.Text[f.LineStart(place.Start):place.Start])
			require.Regexp(t, `^[ \t]+$`, lead)
			rest, ok := strings.CutPrefix(s.new, lead)
			if !ok { // after a pasted number
				rest = strings.Replace(s.new, "\t"+lead, "\t", 1)
			}
			s.new = rest
			asGiven++
		}
		checkResult(t, f, s, place, step, result.Bytes(), fmt.Sprintf("sample %d, step %s: %q to %q in %q", i, step, s.old, s.new, f.Text))
		done++
		steps[step]++
		seen[f.Encoding]++
	}
	require.Greater(t, done, 3000)
	require.Positive(t, asGiven)
	for step := match.Exact; step <= match.Indentation; step++ {
		require.Greater(t, steps[step], 30, "step %s was met: %v", step, steps)
	}
	for _, e := range encodings {
		require.Greater(t, seen[e], 50, "%s was met: %v", e, seen)
	}
}

// checkResult checks the bytes outside of the place, and the text inside.
func checkResult(t *testing.T, f *splice.File, s sample, place match.Place, step match.Step, got []byte, what string) {
	t.Helper()
	start, ok := f.RawOffset(place.Start)
	require.True(t, ok, what)
	end, ok := f.RawOffset(place.End)
	require.True(t, ok, what)
	require.True(t, bytes.HasPrefix(got, f.Raw[:start]), "what stands before is the same: %s", what)
	require.True(t, bytes.HasSuffix(got, f.Raw[end:]), "what stands behind is the same: %s", what)
	require.GreaterOrEqual(t, len(got), start+len(f.Raw)-end, what)

	inside := f.Encoding.Decode(got[start : len(got)-(len(f.Raw)-end)])
	want := s.new
	known := true
	if step >= match.Numbers && plainNumbers(lf(s.old, f)) != "" {
		want = plainNumbers(lf(s.new, f))
		known = want != "" && step == match.Numbers // some lines may lack a number
	}
	if step >= match.Endings && !endsIn(f.Text[place.Start:place.End], f.EOL) && strings.HasSuffix(lf(s.old, f), "\n") {
		want = strings.TrimSuffix(lf(want, f), "\n") // the file's last line has no ending
	}
	normal := func(text string) string { return normalised(lf(text, f), step) }
	if known {
		require.Equal(t, normal(want), normal(inside), what)
	}
	// A file with line endings gets no other ending.
	if f.Ending == textfile.LF || f.Ending == textfile.CRLF || f.Ending == textfile.CR {
		bare := strings.ReplaceAll(inside, map[textfile.Ending]string{textfile.LF: "\n", textfile.CRLF: "\r\n", textfile.CR: "\r"}[f.Ending], "")
		require.NotContains(t, bare, "\n", what)
		if f.Ending != textfile.LF && !strings.Contains(strings.ReplaceAll(s.new, "\r\n", ""), "\r") {
			require.NotContains(t, bare, "\r", what)
		}
	}
}

func endsIn(text []byte, eol byte) bool { return len(text) > 0 && text[len(text)-1] == eol }

// lf converts the line endings of a file's text to line feeds.
func lf(text string, f *splice.File) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if f.EOL == '\r' {
		text = strings.ReplaceAll(text, "\r", "\n")
	}
	return text
}

// plainNumbers removes view's numbers; "" if a line other than the first or an
// empty one has no number.
func plainNumbers(text string) string {
	var out []string
	found := false
	for i, line := range strings.Split(text, "\n") {
		number, rest, ok := strings.Cut(line, "\t")
		if !ok || strings.Trim(number, " 0123456789") != "" || strings.TrimSpace(number) == "" {
			if i > 0 && strings.TrimSpace(line) != "" {
				return ""
			}
			rest = line
		} else {
			found = true
		}
		out = append(out, rest)
	}
	if !found {
		return ""
	}
	return strings.Join(out, "\n")
}

var plainSigns = strings.NewReplacer("“", `"`, "”", `"`, "’", "'", "–", "-", "…", "...")

// normalised returns text without the differences that a step ignores.
func normalised(text string, step match.Step) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		if step >= match.Punctuation {
			lines[i] = plainSigns.Replace(lines[i])
		}
		if step >= match.Trailing {
			lines[i] = strings.TrimRight(lines[i], " \t\r")
		}
		if step >= match.Indentation {
			lines[i] = strings.TrimLeft(lines[i], " \t")
		}
	}
	return strings.Join(lines, "\n")
}

// checkRefusal checks that a refused text occurs not at all, or more than once.
func checkRefusal(t *testing.T, f *splice.File, s sample, err error) {
	t.Helper()
	switch code := toolerr.CodeOf(err); code {
	case toolerr.NoMatch:
		for step := match.Exact; step <= match.Punctuation; step++ {
			require.Zero(t, occurrences(f, s.old, step), "%s: %q in %q: %v", step, s.old, f.Text, err)
		}
	case toolerr.NotUnique:
		n := 0
		for step := match.Exact; step <= match.Indentation && n == 0; step++ {
			n = occurrences(f, s.old, step)
		}
		require.Greater(t, n, 1, "%q in %q: %v", s.old, f.Text, err)
	case toolerr.NoChange:
	default:
		require.Fail(t, string(code), err.Error())
	}
}

// occurrences counts the places of a text at a step by comparing every line
// with every line. It does not require uniform indentation, so it may count
// more.
func occurrences(f *splice.File, old string, step match.Step) int {
	text := string(f.Text[f.BodyStart:])
	if step == match.Exact {
		n := 0
		for at := 0; at+len(old) <= len(text); at++ {
			if text[at:at+len(old)] == old && !halves(text, at) && !halves(text, at+len(old)) {
				n++
			}
		}
		return n
	}
	if at := strings.LastIndex(old, "\n"); step == match.Indentation && strings.TrimSpace(old[at+1:]) == "" {
		old = old[:at+1] // the indentation of the next line
	}
	n := 0
	if step != match.Numbers {
		n = linewise(f, text, lf(old, f), step, false)
	}
	if plain := plainNumbers(lf(old, f)); n == 0 && step >= match.Numbers && strings.TrimSpace(plain) != "" {
		heads := !strings.HasPrefix(lf(old, f), strings.SplitAfter(plain, "\n")[0])
		n = linewise(f, text, plain, step, heads)
	}
	return n
}

func halves(text string, at int) bool {
	return at > 0 && at < len(text) && text[at-1] == '\r' && text[at] == '\n'
}

// linewise counts the places of lines; with heads only those that begin lines,
// after indentation.
func linewise(f *splice.File, text, old string, step match.Step, heads bool) int {
	have := strings.Split(lf(text, f), "\n")
	if !strings.HasSuffix(lf(text, f), "\n") {
		have = append(have, "") // a missing final ending
	}
	want := strings.Split(old, "\n")
	last := len(want) - 1
	n := 0
	for at := 0; at+last < len(have); at++ {
		if last == 0 {
			n += within(have[at], want[0], step, heads)
			continue
		}
		ok := first(have[at], want[0], step, heads) && final(have[at+last], want[last], step)
		for i := 1; i < last && ok; i++ {
			ok = normalised(have[at+i], step) == normalised(want[i], step)
		}
		if ok {
			n++
		}
	}
	return n
}

// within counts a text in one line.
func within(line, want string, step match.Step, heads bool) int {
	if step < match.Numbers {
		return strings.Count(line, want) // found by an earlier step, or not at all
	}
	if step == match.Indentation {
		if strings.HasPrefix(normalised(line, step), normalised(want, step)) {
			return 1
		}
		return 0
	}
	plain, wanted := line, want
	if step >= match.Punctuation {
		plain, wanted = plainSigns.Replace(line), plainSigns.Replace(want)
	}
	n := 0
	for at := range plain {
		if strings.HasPrefix(plain[at:], wanted) && (!heads || at <= indentation(line)) {
			n++
		}
	}
	if trimmed := normalised(want, step); n == 0 && step >= match.Trailing && trimmed != "" && trimmed != wanted && first(line, want, step, heads) {
		n++
	}
	return n
}

func indentation(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

func first(line, want string, step match.Step, heads bool) bool {
	if step >= match.Trailing && want != "" && strings.TrimSpace(want) == "" {
		return strings.TrimSpace(line) == ""
	}
	if step == match.Indentation && want != "" {
		return normalised(line, step) == normalised(want, step)
	}
	have, wanted := normalised(line, step), normalised(want, step)
	return strings.HasSuffix(have, wanted) && (!heads || len(have)-len(wanted) <= indentation(line))
}

func final(line, want string, step match.Step) bool {
	if step >= match.Punctuation {
		line, want = plainSigns.Replace(line), plainSigns.Replace(want)
	}
	if step == match.Indentation {
		line, want = strings.TrimLeft(line, " \t"), strings.TrimLeft(want, " \t")
	}
	return strings.HasPrefix(line, want) || step >= match.Trailing && normalised(line, step) == normalised(want, step) && strings.TrimRight(want, " \t\r") != want
}
