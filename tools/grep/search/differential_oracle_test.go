//go:build oracle

package search_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
	"github.com/toolroom-mcp/toolroom/tools/grep/search"
)

// number returns a count or seed that the environment may set.
func stateMask(t *testing.T, name string, otherwise int) int {
	t.Helper()
	if value := os.Getenv(name); value != "" {
		n, err := strconv.Atoi(value)
		require.NoError(t, err, "%s", name)
		return n
	}
	return otherwise
}

// TestSameAsRipgrep compares lines and spans for random patterns over random
// texts. GREP_CASES is the number of pairs, GREP_SEED the first seed.
func TestSameAsRipgrep(t *testing.T) {
	const textsPerTree = 40
	cases, seed := stateMask(t, "GREP_CASES", 800), uint64(stateMask(t, "GREP_SEED", 1))
	rg := oracle.Path(t, "rg")
	compared, rejected, lines, defects := 0, 0, 0, 0
	keepGoing := stateMask(t, "GREP_KEEP_GOING", 0) != 0
	for ; compared+rejected < cases; seed++ {
		g := generator{rand.New(rand.NewPCG(seed, 0))}
		texts, asIs, unix := map[string][]byte{}, t.TempDir(), t.TempDir()
		for i := range textsPerTree {
			name := fmt.Sprint(i)
			texts[name] = bytes.ReplaceAll(g.text(), []byte("\r\r\n"), []byte("\r\n"))
			require.NoError(t, os.WriteFile(filepath.Join(asIs, name), texts[name], 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(unix, name), bytes.ReplaceAll(texts[name], []byte("\r\n"), []byte("\n")), 0o600))
		}
		for range 25 {
			pattern := g.pattern()
			o := search.Options{IgnoreCase: g.one(4), Multiline: g.one(5)}
			m, err := search.Compile(pattern, o)
			dir := asIs
			if err == nil && m.CRLF() { // the pattern sees \n for each \r\n
				dir = unix
			}
			want, failed := ripgrep(t, rg, dir, pattern, o)
			if failed != "" || err != nil {
				if failed != "panic" && (failed == "") != (err == nil) && !onlyHere(pattern, err) {
					t.Errorf("seed %d: %q %+v: ripgrep says %q, this %v", seed, pattern, o, failed, err)
				}
				rejected += textsPerTree
				continue
			}
			differs := false
			for name, text := range texts {
				if differs {
					break
				}
				got := run(m, text)
				if m.CRLF() {
					got = got.moved(text)
					text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
				}
				// ripgrep omits this match if it ends a text without \n.
				if n := len(got.spans); n > 0 && got.spans[n-1] == [2]int{len(text), len(text)} {
					got.spans = got.spans[:n-1]
				}
				expected := want[name]
				if mixedLooks(pattern) {
					continue
				}
				if !o.Multiline && textAnchor.MatchString(pattern) {
					// ripgrep finds lines one at a time, but spans in all lines
					// together.
					got.spans, expected.spans = nil, nil
				}
				if o.Multiline && textAnchor.MatchString(pattern) {
					continue // it treats the rest after a match as a new text
				}
				if o.Multiline { // blocks may be cut differently
					got = got.joined()
					*expected = expected.joined()
				}
				compared++
				lines += len(got.lines)
				differs = !slices.Equal(got.lines, expected.lines) || !slices.Equal(got.spans, expected.spans)
				if differs && o.Multiline && slices.Equal(got.spans, expected.spans) && within(got.lines, expected.lines) {
					differs, defects = false, defects+1 // it shows lines without a match by its own account
					continue
				}
				if !slices.Equal(got.lines, expected.lines) {
					t.Errorf("seed %d: %q %+v on %q: lines %v, ripgrep's %v", seed, pattern, o, text, got.lines, expected.lines)
				} else if differs && sameWithoutSuffix(t, rg, dir, name, pattern, o, got) {
					differs, defects = false, defects+1
				} else if differs {
					t.Errorf("seed %d: %q %+v on %q: spans %v, ripgrep's %v", seed, pattern, o, text, got.spans, expected.spans)
				}
			}
			if t.Failed() && !keepGoing {
				t.FailNow()
			}
		}
		require.NoError(t, os.RemoveAll(asIs))
		require.NoError(t, os.RemoveAll(unix))
	}
	require.Positive(t, lines, "nothing matched: the generator is broken")
	t.Logf("%d pairs compared, %d rejected by both, %d matching lines, %d where ripgrep's own answers contradict each other",
		compared, rejected, lines, defects)
}

// TestSyntaxIsRipgreps runs the fixed cases with ripgrep.
func TestSyntaxIsRipgreps(t *testing.T) {
	rg := oracle.Path(t, "rg")
	for _, test := range syntax() {
		dir := t.TempDir()
		m, err := search.Compile(test.pattern, search.Options{})
		require.NoError(t, err)
		got, text := run(m, []byte(test.text)), test.text
		if m.CRLF() {
			got, text = got.moved([]byte(text)), strings.ReplaceAll(text, "\r\n", "\n")
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, "0"), []byte(text), 0o600))
		want, failed := ripgrep(t, rg, dir, test.pattern, search.Options{})
		require.Empty(t, failed, "%q", test.pattern)
		expected := want["0"]
		require.Equal(t, expected.lines, got.lines, "%q on %q", test.pattern, test.text)
		if !textAnchor.MatchString(test.pattern) {
			require.Equal(t, expected.joined().spans, got.joined().spans, "%q on %q", test.pattern, test.text)
		}
	}
}

var textAnchor = regexp.MustCompile(`\\A|\\z|\(\?[a-z]*-[a-z]*m`)

// mixedLooks reports whether a pattern has an ASCII \B next to a Unicode look;
// only in ripgrep does that hold within characters.
func mixedLooks(pattern string) bool {
	rest := strings.ReplaceAll(pattern, `(?-u:\B)`, "")
	return rest != pattern && unicodeLook.MatchString(strings.ReplaceAll(rest, `(?-u:\b)`, "")) ||
		strings.Contains(pattern, "(?-u)") && unicodeLook.MatchString(pattern)
}

// sameWithoutSuffix compares again with an added alternative that never
// matches, which keeps ripgrep from searching backwards from a literal suffix:
// that sometimes misses the first match.
func sameWithoutSuffix(t *testing.T, rg, dir, name, pattern string, o search.Options, got found) bool {
	t.Helper()
	want, failed := ripgrep(t, rg, dir, `(?:`+pattern+`)|\x{10FFFD}[^a]`, o)
	if failed != "" {
		return false
	}
	if o.Multiline {
		*want[name] = want[name].joined()
	}
	return slices.Equal(got.lines, want[name].lines) && slices.Equal(got.spans, want[name].spans)
}

// within reports whether each of lines is contained in one of others.
func within(lines, others [][2]int) bool {
	for _, l := range lines {
		if !slices.ContainsFunc(others, func(o [2]int) bool { return o[0] <= l[0] && l[1] <= o[1] }) {
			return false
		}
	}
	return true
}

var unicodeLook = regexp.MustCompile(`\\[bB<>]`)

// onlyHere reports whether err is due to a limit that ripgrep lacks, or to a
// pattern that ripgrep accepts because it adds "(?:" and ")".
func onlyHere(pattern string, err error) bool {
	return err != nil && (strings.Contains(err.Error(), "too large") || strings.Contains(err.Error(), "both a Unicode word boundary") ||
		strings.Contains(err.Error(), "unopened group") && strings.HasSuffix(pattern, `\`))
}

type rgText struct {
	Text  *string `json:"text"`
	Bytes string  `json:"bytes"`
}

func (x rgText) content() []byte {
	if x.Text != nil {
		return []byte(*x.Text)
	}
	content, _ := base64.StdEncoding.DecodeString(x.Bytes)
	return content
}

type rgEvent struct {
	Type string `json:"type"`
	Data struct {
		Path       rgText `json:"path"`
		Lines      rgText `json:"lines"`
		Offset     int    `json:"absolute_offset"`
		Submatches []struct{ Start, End int }
	} `json:"data"`
}

func ripgrep(t *testing.T, rg, dir, pattern string, o search.Options) (map[string]*found, string) {
	t.Helper()
	args := []string{"--no-config", "--json", "-a", "--encoding", "none", "--hidden", "--no-ignore", "-j1"}
	if o.IgnoreCase {
		args = append(args, "-i")
	}
	if o.Multiline {
		args = append(args, "-U", "--multiline-dotall")
	}
	cmd := exec.Command(rg, append(args, "-e", pattern, ".")...)
	cmd.Dir = dir
	var errors bytes.Buffer
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if strings.Contains(errors.String(), "panicked") {
		return nil, "panic" // it does, where -u and -U meet a match at the end
	}
	if err != nil && cmd.ProcessState.ExitCode() != 1 {
		return nil, errors.String()
	}
	all := map[string]*found{}
	for i := range 1000 {
		all[fmt.Sprint(i)] = &found{}
	}
	for _, line := range bytes.Split(out, []byte("\n")) {
		var event rgEvent
		if len(line) == 0 {
			continue
		}
		require.NoError(t, json.Unmarshal(line, &event))
		if event.Type != "match" {
			continue
		}
		f := all[filepath.Base(string(event.Data.Path.content()))]
		content := event.Data.Lines.content()
		f.lines = append(f.lines, [2]int{event.Data.Offset, event.Data.Offset + len(content)})
		for _, s := range event.Data.Submatches {
			if s.Start == s.End && withinCharacter(content, s.Start) {
				continue
			}
			f.spans = append(f.spans, [2]int{event.Data.Offset + s.Start, event.Data.Offset + s.End})
		}
	}
	return all, ""
}

func withinCharacter(text []byte, at int) bool {
	for i := 0; i < at; {
		_, size := utf8.DecodeRune(text[i:])
		if i += size; i > at {
			return true
		}
	}
	return false
}
