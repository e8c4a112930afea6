//go:build oracle

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// TestTypesAreRipgreps compares the table of types with ripgrep's.
func TestTypesAreRipgreps(t *testing.T) {
	out, err := exec.Command(oracle.Path(t, "rg"), "--no-config", "--type-list").Output()
	require.NoError(t, err)
	require.Equal(t, string(out), typeList)
}

// number returns a count or seed that the environment may set.
func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	if value := os.Getenv(name); value != "" {
		n, err := strconv.Atoi(value)
		require.NoError(t, err, name)
		return n
	}
	return otherwise
}

// casesPerTree is the number of searches of each random tree.
const casesPerTree = 25

// TestLikeRipgrep compares random searches of random trees by one running
// server with ripgrep: files, lines, context and counts must be equal.
// GREP_CASES is the number of searches, GREP_SEED the seed of the first tree.
// Half of the trees have files with \r\n, or with both line endings: ripgrep
// searches a copy with \n, and if no match can span lines also the original,
// with --crlf.
func TestLikeRipgrep(t *testing.T) {
	cases, seed := number(t, "GREP_CASES", 250), uint64(number(t, "GREP_SEED", 1))
	rg := oracle.Path(t, "rg")
	root, plain := t.TempDir(), t.TempDir()
	client := mcpkittest.Start(t, mcpkittest.Build(t, "./tools/grep"), "--no-state", "--max-tokens", "1000000", root)
	matches, refused, odd := 0, 0, 0
	for done := 0; done < cases; seed++ {
		r := &random{Rand: rand.New(rand.NewPCG(seed, 7))}
		name := fmt.Sprintf("t%d", seed)
		r.endings = seed%2 == 0
		r.tree(t, filepath.Join(root, name))
		plainTree(t, filepath.Join(plain, name), filepath.Join(root, name))
		for range min(casesPerTree, cases-done) {
			c := r.search()
			done++
			want, err := c.ripgrep(rg, filepath.Join(plain, name))
			c.args["path"] = name
			got := client.Call("grep", c.args)
			if err != nil {
				refused++
				require.True(t, got.IsError, "seed %d: ripgrep refuses %v: %v\n%s", seed, c.args, err, got.Text)
				continue
			}
			if got.IsError && onlyInParentheses(c.args["pattern"].(string)) {
				refused++
				continue
			}
			require.False(t, got.IsError, "seed %d: %v: %s", seed, c.args, got.Text)
			found := c.read(t, name, got)
			if c.odd && !reflect.DeepEqual(want, found) {
				odd++
				continue
			}
			require.Equal(t, want, found, "seed %d: %v\n%s", seed, c.args, got.Text)
			matches += len(want)
			// There, \B matches between \r and \n, which is not a position
			// here.
			if r.endings && !c.multi && !strings.Contains(c.args["pattern"].(string), `\B`) {
				c.flags = append(c.flags, "--crlf")
				want, err := c.ripgrep(rg, filepath.Join(root, name))
				require.NoError(t, err, "seed %d: %v", seed, c.args)
				require.Equal(t, want, found, "seed %d: --crlf %v\n%s", seed, c.args, got.Text)
			}
		}
		require.NoError(t, os.RemoveAll(filepath.Join(root, name)))
		require.NoError(t, os.RemoveAll(filepath.Join(plain, name)))
	}
	t.Logf("%d cases up to seed %d, %d files with matches, %d patterns refused by both, %d cases where ripgrep's own answers contradict each other", cases, seed-1, matches, refused, odd)
	require.NotZero(t, matches)
	require.LessOrEqual(t, odd, 5+cases/500)
}

// onlyInParentheses reports whether a pattern is valid only within the
// parentheses that ripgrep adds, like a)(b.
func onlyInParentheses(pattern string) bool {
	_, plain := regexp.Compile(pattern)
	_, inside := regexp.Compile("(?:" + pattern + ")")
	return plain != nil && inside == nil
}

// Empty matches at the end of a file, with and without a last line end.
func TestEmptyMatchesAtTheEnd(t *testing.T) {
	rg := oracle.Path(t, "rg")
	root := t.TempDir()
	client := mcpkittest.Start(t, mcpkittest.Build(t, "./tools/grep"), "--no-state", root)
	file := filepath.Join(root, "f")
	for _, pattern := range []string{`$`, `^`, `\b`, `\B`, `\z`, `(?m:$)`, `$|o`, `\b|q`, `x*`} {
		for _, text := range []string{"foo", "foo\n", "foo\nbar", "foo\n\n", "foo bar"} {
			require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
			out, err := exec.Command(rg, "--no-config", "-U", "--count-matches", "-e", pattern, file).Output()
			want := strings.TrimSpace(string(out))
			got := client.Call("grep", map[string]any{"pattern": pattern, "path": "f", "multiline": true, "output_mode": "count"})
			if err != nil {
				require.Contains(t, got.Text, "0 matches", "%s in %q", pattern, text)
				continue
			}
			require.Contains(t, got.Text, "f: "+want+"\n", "%s in %q", pattern, text)
		}
	}
}

// random generates trees and searches.
type random struct {
	*rand.Rand
	endings bool // files end lines with \r\n, or with both
}

func (r *random) one(n int) bool             { return r.IntN(n) == 0 }
func (r *random) of(list ...string) string   { return list[r.IntN(len(list))] }
func (r *random) some(n int) (list []string) { return make([]string, r.IntN(n)) }

func (r *random) name() string {
	return r.of("a", "b", "c", "Ab") + r.of(".txt", ".md", ".go", ".py", ".log", "", ".tmp")
}

func (r *random) dir() string { return r.of("d", "e", "out", ".dot", "sub dir") }

func (r *random) tree(t *testing.T, root string) {
	require.NoError(t, os.MkdirAll(root, 0o755))
	if r.one(2) {
		require.NoError(t, os.MkdirAll(filepath.Join(root, ".git", "info"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, ".git", "info", "exclude"), r.rules(), 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(root, ".git", "config"), []byte("foo bar\n"), 0o644))
	}
	for range 4 + r.IntN(20) {
		dir := root
		for range r.IntN(4) {
			dir = filepath.Join(dir, r.dir())
		}
		require.NoError(t, os.MkdirAll(dir, 0o755))
		name, text := r.name(), r.text()
		switch r.IntN(12) {
		case 0:
			name, text = r.of(".gitignore", ".ignore", ".rgignore"), r.rules()
		case 1:
			if err := os.Symlink(r.of("a.txt", "..", "nowhere"), filepath.Join(dir, "link"+name)); !errors.Is(err, os.ErrExist) {
				require.NoError(t, err)
			}
			continue
		case 2:
			name = "." + name
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o644))
	}
}

func (r *random) rules() []byte {
	var b strings.Builder
	for range r.some(4) {
		b.WriteString(r.of("", "", "", "!", "/"))
		b.WriteString(r.of("*.log", "*.tmp", "out", "out/", "d/e", "a.*", "b.txt", "**/e", "d/**", ".dot", "# none", "c?", "[ab].go"))
		b.WriteString("\n")
	}
	return []byte(b.String())
}

func (r *random) word() string {
	return r.of("foo", "bar", "Foo", "BAR", "foobar", "x", "xx", "naïve", "ÄÖ", "ſk", "42", "1.5", "a_b", "-v", "f(x)", "日本", "\t", "  ", "é")
}

// text returns random content of a file.
func (r *random) text() []byte {
	if r.one(25) {
		return nil
	}
	ending := func() string { return "\n" }
	if r.endings {
		in := 1 + r.IntN(3)
		ending = func() string {
			if r.one(in) {
				return "\r\n"
			}
			return "\n"
		}
	}
	var b strings.Builder
	for range 1 + r.IntN(12) {
		for i := range r.IntN(5) {
			if i > 0 && !r.one(3) {
				b.WriteString(" ")
			}
			b.WriteString(r.word())
		}
		b.WriteString(ending())
	}
	text := b.String()
	if r.one(4) {
		text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
	}
	switch r.IntN(20) {
	case 0:
		return append([]byte{0}, text...)
	case 1:
		return append([]byte("\xef\xbb\xbf"), text...)
	case 2:
		return wideText(text)
	case 3:
		return append([]byte(text), "éééééééé foo \xff\xfe bar\n"...) // mostly UTF-8: damaged, not another encoding
	}
	return []byte(text)
}

// plainTree copies a tree and replaces each \r\n by \n.
func plainTree(t *testing.T, to, from string) {
	require.NoError(t, filepath.WalkDir(from, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		require.NoError(t, err)
		copied := filepath.Join(to, rel)
		switch {
		case e.IsDir():
			return os.MkdirAll(copied, 0o755)
		case e.Type()&os.ModeSymlink != 0:
			target, err := os.Readlink(path)
			require.NoError(t, err)
			return os.Symlink(target, copied)
		}
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		if rest, wide := bytes.CutPrefix(raw, []byte{0xff, 0xfe}); wide {
			raw = append([]byte{0xff, 0xfe}, bytes.ReplaceAll(rest, []byte("\r\x00\n\x00"), []byte("\n\x00"))...)
		}
		return os.WriteFile(copied, bytes.ReplaceAll(raw, []byte("\r\n"), []byte("\n")), 0o644)
	}))
}

// wideText returns text encoded as UTF-16.
func wideText(text string) []byte {
	out := []byte{0xff, 0xfe}
	for _, c := range text {
		out = append(out, byte(c), byte(c>>8))
	}
	return out
}

// searchCase is one search: the arguments for grep and the flags for ripgrep.
type searchCase struct {
	args  map[string]any
	flags []string
	mode  string
	only  bool
	multi bool
	vague bool // multiline, and the pattern matches the empty text: ripgrep's matches and lines disagree
	odd   bool // multiline, and ripgrep shows lines without a match by its own account
}

func (r *random) search() *searchCase {
	c := &searchCase{args: map[string]any{"head_limit": 100_000, "max_per_file": 100_000, "-C": 0}, mode: modeContent}
	c.args["pattern"] = r.pattern()
	option := func(chance int, name string, value any, flags ...string) bool {
		if !r.one(chance) {
			return false
		}
		c.args[name] = value
		c.flags = append(c.flags, flags...)
		return true
	}
	option(4, "-i", true, "-i")
	if !option(8, "literal", true, "-F") {
		c.multi = option(8, "multiline", true, "-U", "--multiline-dotall")
	}
	if !c.multi { // ripgrep refuses some of these and ignores the \n in others
		c.args["pattern"] = strings.ReplaceAll(c.args["pattern"].(string), `\n`, " ")
	}
	option(6, "no_ignore", true, "--no-ignore")
	if !option(6, "hidden", false) {
		c.flags = append(c.flags, "--hidden", "-g", "!.git")
	}
	kind := r.of("go", "py", "md", "txt", "all")
	typed := option(8, "type", kind, "-t", kind)
	glob := r.of("*.txt", "d/**", "**/a.*", "*.{txt,md}", "a.txt", "/a.txt", "d/*", "*", "[ab].*", "**/e/**", "?.go")
	if !typed { // in ripgrep a glob overrides a type; here both apply
		option(6, "glob", []string{glob}, "-g", glob)
	}
	exclude := r.of("*.txt", "d", "e/", "d/e", "**/a.*", ".dot", "*.{py,md}")
	option(6, "exclude", []string{exclude}, "-g", "!"+exclude)
	option(4, "sort", "path")
	switch r.IntN(5) {
	case 0:
		c.mode = modeFiles
	case 1:
		c.mode = modeCount
	}
	c.args["output_mode"] = c.mode
	if c.mode != modeFiles {
		c.only = option(5, "-o", true)
	}
	empty, err := regexp.MatchString("(?s)"+c.args["pattern"].(string), "")
	c.vague = c.multi && (empty || err != nil)
	if c.mode == modeContent && !c.only && !c.vague { // otherwise there is context of matches that are not shown
		for _, side := range []string{"-A", "-B", "-C"} {
			n := r.IntN(4)
			option(4, side, n, side, strconv.Itoa(n))
		}
	}
	return c
}

// pattern returns a random pattern, usually a valid one.
func (r *random) pattern() string {
	var b strings.Builder
	for range 1 + r.IntN(3) {
		b.WriteString(r.atom(2))
	}
	return b.String()
}

func (r *random) atom(depth int) string {
	switch r.IntN(14) {
	case 0:
		return r.of("^", "$", `\b`, `\B`)
	case 1:
		return r.of(".", `\w`, `\d`, `\s`, `\S`, `\W`, "[a-z]", "[^a-z]", `\pL`, `[[:upper:]]`, "[ſk]")
	case 2:
		return r.of(".*", ".+", `\w+`, "(foo|bar)+", "(x|xx|1){1,2}", "x*", "x?", "o{2}", "[a-f]+?", `\s*`)
	case 3:
		if depth > 0 {
			return "(" + r.atom(depth-1) + "|" + r.atom(depth-1) + ")" + r.of("", "", "?")
		}
	case 4:
		return r.of("(?i)", "(?i:bar)", "")
	case 5:
		return r.of(" ", `\.`, `\(`, "-")
	case 6:
		return r.of("(", "[", "*", `\`, "(?=x)", `\n`)
	}
	return regexp.QuoteMeta(r.word())
}

// result holds the results of a search by file: numbers and texts of lines, or
// the number of matches.
type result map[string][]string

// ripgrep searches below dir with ripgrep.
func (c *searchCase) ripgrep(rg, dir string) (result, error) {
	files := exec.Command(rg, append(slices.DeleteFunc(slices.Clone(c.fileFlags()), func(s string) bool { return s == "" }), "--files", ".")...)
	files.Dir = dir
	listed, err := files.Output()
	if exit := new(exec.ExitError); err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) {
		return nil, err
	}
	cmd := exec.Command(rg, append(append([]string{"--no-config", "--json"}, c.flags...), "-e", c.args["pattern"].(string), ".")...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if exit := new(exec.ExitError); err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) {
		return nil, fmt.Errorf("%w: %s", err, stderr.String())
	}
	all, err := c.parse(out)
	seen := map[string]bool{}
	for name := range strings.Lines(string(listed)) {
		seen[strings.TrimPrefix(strings.TrimSpace(name), "./")] = true
	}
	for name := range all {
		if !seen[name] { // in ripgrep a glob re-includes ignored files; not here
			delete(all, name)
		}
	}
	return all, err
}

// fileFlags returns the flags that select the files for ripgrep, without globs.
func (c *searchCase) fileFlags() []string {
	flags := []string{"--no-config", "-g", "!.git"}
	for _, flag := range c.flags {
		if flag == "--hidden" || flag == "--no-ignore" {
			flags = append(flags, flag)
		}
	}
	return flags
}

// message is a line of ripgrep's JSON output.
type message struct {
	Type string
	Data struct {
		Path, Lines  jsonText
		LineNumber   int  `json:"line_number"`
		BinaryOffset *int `json:"binary_offset"`
		Submatches   []struct {
			Match      jsonText
			Start, End int
		}
	}
}

// groups returns the number of groups of matches that share lines; ripgrep
// shows groups on adjacent lines in one message.
func (m *message) groups() int {
	text, last, n := m.Data.Lines.text(), -1, 0
	for _, sub := range m.Data.Submatches {
		if first := strings.Count(text[:sub.Start], "\n"); first > last {
			n++
		}
		last = strings.Count(text[:max(sub.Start, sub.End-1)], "\n")
	}
	if last < strings.Count(strings.TrimSuffix(text, "\n"), "\n") {
		n++ // an empty match after a last line without an ending is omitted
	}
	return n
}

// odd reports whether lines after the last match are shown. To find the next
// match, ripgrep (15.0) cuts off the text up to the end of the previous one, so
// ^ and \b match there, in the middle of a line; when it prints that match, it
// does not find it again.
func (m *message) odd() bool {
	text, end := m.Data.Lines.text(), 0
	if n := len(m.Data.Submatches); n > 0 {
		end = m.Data.Submatches[n-1].End
	}
	_, behind, more := strings.Cut(text[max(end-1, 0):], "\n")
	return more && strings.Contains(behind, "\n")
}

type jsonText struct{ Text, Bytes string }

func (j jsonText) text() string {
	if j.Bytes != "" {
		raw, err := base64.StdEncoding.DecodeString(j.Bytes)
		if err != nil {
			panic(err)
		}
		return string(raw)
	}
	return j.Text
}

func (c *searchCase) parse(out []byte) (result, error) {
	all := result{}
	counts := map[string]int{}
	for line := range bytes.Lines(out) {
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, err
		}
		name := strings.TrimPrefix(m.Data.Path.text(), "./")
		switch m.Type {
		case "match":
			c.odd = c.odd || c.multi && m.odd()
			if !c.only {
				if c.mode == modeCount && c.multi {
					counts[name] += len(m.Data.Submatches)
				} else {
					counts[name] += m.groups()
				}
				all[name] = append(all[name], numbered(m.Data.Lines.text(), m.Data.LineNumber, ":")...)
				continue
			}
			lines := m.Data.Lines.text()
			for _, sub := range m.Data.Submatches {
				if text := sub.Match.text(); text != "" {
					counts[name]++
					number := m.Data.LineNumber + strings.Count(lines[:sub.Start], "\n")
					all[name] = append(all[name], numbered(text, number, ":")...)
				}
			}
		case "context":
			all[name] = append(all[name], numbered(m.Data.Lines.text(), m.Data.LineNumber, "-")...)
		case "end":
			if m.Data.BinaryOffset != nil {
				delete(counts, name)
			}
		}
	}
	for name := range all {
		switch n, ok := counts[name]; {
		case !ok:
			delete(all, name)
		case c.mode == modeFiles:
			all[name] = []string{}
		case c.mode == modeCount && c.vague && !c.only:
			all[name] = []string{"some"}
		case c.mode == modeCount:
			all[name] = []string{strconv.Itoa(n)}
		}
	}
	return all, nil
}

// numbered returns the lines of a text in the form of an answer.
func numbered(text string, number int, sign string) []string {
	var lines []string
	for l := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		l = strings.ToValidUTF8(strings.TrimSuffix(l, "\r"), "\uFFFD")
		lines = append(lines, fmt.Sprintf("%d%s %s", number, sign, l))
		number++
	}
	return lines
}

// read parses an answer and checks its totals.
func (c *searchCase) read(t *testing.T, dir string, got mcpkittest.Result) result {
	t.Helper()
	all := result{}
	lines := strings.Split(strings.TrimSuffix(got.Text, "\n"), "\n")
	matches, name := 0, ""
	shown := regexp.MustCompile(`^\d+([:-]) `)
	for _, l := range lines[1:] {
		l, indented := strings.CutPrefix(l, "  ")
		switch {
		case strings.HasPrefix(l, "note: "), len(all) == 0 && strings.HasPrefix(lines[0], "0 matches"), l == "--" && indented:
		case indented:
			require.Regexp(t, shown, l, got.Text)
			if l[strings.IndexAny(l, ":-")] == ':' {
				matches++
			}
			all[name] = append(all[name], l)
		default:
			name = strings.TrimPrefix(l, dir+"/")
			count := ""
			if c.mode == modeCount {
				i := strings.LastIndex(name, ": ")
				name, count = name[:i], name[i+2:]
			}
			all[name] = []string{}
			if c.mode == modeCount {
				n, err := strconv.Atoi(count)
				require.NoError(t, err)
				matches += n
				if c.vague && !c.only {
					count = "some"
				}
				all[name] = append(all[name], count)
			}
		}
	}
	require.EqualValues(t, len(all), got.Meta["files"], got.Text)
	if c.mode != modeFiles && !c.multi && len(all) > 0 {
		require.EqualValues(t, matches, got.Meta["matches"], got.Text)
	}
	return all
}
