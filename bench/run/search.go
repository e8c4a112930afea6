//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// question is one search that all programs run.
type question struct {
	what, pattern string
	ignoreCase    bool
	target        string
}

// questions searches the Go distribution.
var questions = []question{
	{"A literal in a few files", "StatusTeapot", false, "first ≤ 1.0 ×, later ≤ 0.25 × ripgrep"},
	{"A literal in a tenth of the files", "errors", false, "later ≤ 0.33 ×"},
	{"A literal in about half of the files", "return", false, "later ≤ 0.67 ×"},
	{"An expression that contains a literal", `func \(\w+ \*?Server\)`, false, "first ≤ 1.0 ×"},
	{"A literal, ignoring case", "statusteapot", true, "first ≤ 1.2 ×"},
	{"Alternatives", `(Teapot|Conflict)\w*`, false, "first ≤ 1.2 ×"},
	{"An expression without a literal", `[A-Z][a-z]+\d`, false, "first ≤ 6 ×"},
}

// arguments returns the arguments of grep for a question.
func (q question) arguments() string {
	more := ""
	if q.ignoreCase {
		more = `,"-i":true`
	}
	return fmt.Sprintf(`{"pattern":%q%s}`, q.pattern, more)
}

func measureSearch(b *bench) ([]table, error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	tables, err := b.ask(strings.TrimSpace(string(out)), "`dir` is the Go distribution.", questions)
	if err != nil {
		return nil, err
	}
	root := filepath.Join(b.temp, "small")
	if err := writeSmall(root); err != nil {
		return nil, err
	}
	defer os.RemoveAll(root)
	more, err := b.ask(root, "`dir` has 200,000 small files.", []question{
		{"A literal in 1 of 1,000 files", "needle_in_hay", false, "first ≤ 1.0 ×, later ≤ 0.25 ×"},
		{"A literal in 1 of 10 files", "every_tenth", false, "later ≤ 0.33 ×"},
	})
	return append(tables, more...), err
}

// ask measures each question in turn: with the peers, as a server's first call, and as
// a later call to a server that has searched the same tree.
func (b *bench) ask(root, where string, asked []question) ([]table, error) {
	var tables []table
	warm, err := b.warmServer(root)
	if err != nil {
		return nil, err
	}
	for _, q := range asked {
		var flags []string
		if q.ignoreCase {
			flags = []string{"-i"}
		}
		var subjects []subject
		for _, p := range b.peers.Search {
			command := b.fill(p.Command, "pattern", q.pattern, "dir", root)
			command = append(command[:1:1], append(flags, command[1:]...)...)
			display := append(p.Command[:1:1], append(flags, p.Command[1:]...)...)
			subjects = append(subjects, subject{
				name: p.Name, command: strings.ReplaceAll(shown(display), "pattern", "'"+q.pattern+"'"),
				run: func() (sample, error) { return process(command) },
			})
		}
		call := "tools/call grep " + q.arguments()
		subjects = append(subjects,
			subject{name: "grep, first call", command: call, ours: true, run: func() (sample, error) { return b.measuredCall("grep", root, "", q.arguments()) }},
			subject{name: "grep, later call", command: "the same call to a server that has searched before", ours: true, run: func() (sample, error) { return warm.measured(q.arguments()) }},
			subject{name: "grep --no-index, later call", command: "the same call to a server without an index", ours: true, run: func() (sample, error) { return b.plainCall(root, q.arguments()) }},
		)
		series, err := inTurn(b.runs, subjects)
		if err != nil {
			return nil, errors.Join(err, warm.close())
		}
		tables = append(tables, table{
			title: fmt.Sprintf("%s: `%s`. %s With ignore rules, hidden files and a warm page cache.", q.what, q.pattern, where),
			unit:  "ms", target: q.target, series: series,
		})
	}
	return tables, warm.close()
}

// plainCall measures the second call to a server without an index.
func (b *bench) plainCall(root, arguments string) (sample, error) {
	w := &warmGrep{}
	err := w.start(b, root, "--no-index")
	if err != nil {
		return sample{}, err
	}
	if err = w.call(arguments); err != nil {
		return sample{}, errors.Join(err, w.close())
	}
	got, err := w.measured(arguments)
	return got, errors.Join(err, w.close())
}

// warmGrep is a server that keeps running.
type warmGrep struct {
	server *stdioServer
	calls  int
}

func (w *warmGrep) start(b *bench, root string, more ...string) error {
	state, err := os.MkdirTemp(b.temp, "state-")
	if err != nil {
		return err
	}
	w.server, err = startStdio(b.toolCommand("grep", root, append([]string{"--state", state}, more...)...))
	if err != nil {
		return err
	}
	return w.server.handshake()
}

// warmServer starts a server, makes a first call, and waits until the server's
// background work is done: until it uses no processor time.
func (b *bench) warmServer(root string) (*warmGrep, error) {
	w := &warmGrep{}
	if err := w.start(b, root); err != nil {
		return nil, err
	}
	if err := w.call(`{"pattern":"no_such_word_anywhere"}`); err != nil {
		return nil, err
	}
	pid := w.server.cmd.Process.Pid
	for before := time.Duration(-1); ; {
		taken, err := processorTime(pid)
		if err != nil || taken == before {
			return w, err
		}
		before = taken
		time.Sleep(500 * time.Millisecond)
	}
}

func (w *warmGrep) call(arguments string) error {
	w.calls++
	_, err := w.server.call(w.calls, "tools/call", fmt.Sprintf(`{"name":"grep","arguments":%s}`, arguments))
	return err
}

// measured makes one call and measures it.
func (w *warmGrep) measured(arguments string) (sample, error) {
	pid := w.server.cmd.Process.Pid
	before, err := processorTime(pid)
	if err != nil {
		return sample{}, err
	}
	value, err := timed(func() error { return w.call(arguments) })
	if err != nil {
		return sample{}, err
	}
	after, err := processorTime(pid)
	return sample{value: value, cpu: after - before, rss: peak(pid)}, err
}

func (w *warmGrep) close() error {
	_, err := w.server.stop()
	return err
}

// processorTime returns the user and system time of a running process, in kernel ticks
// of 10 ms (proc_pid_stat(5)).
func processorTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, ok := strings.Cut(string(text), ") ") // the name may contain spaces
	fields := strings.Fields(rest)
	if !ok || len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat is not as expected", pid)
	}
	var user, system int64
	if _, err := fmt.Sscan(fields[11]+" "+fields[12], &user, &system); err != nil {
		return 0, err
	}
	return time.Duration(user+system) * 10 * time.Millisecond, nil
}

// writeSmall writes 200 000 files of about a kilobyte into 2 000 directories.
func writeSmall(root string) error {
	const dirs, each = 2000, 100
	line := "the quick brown fox jumps over the lazy dog, as in file number %d of them all\n"
	for d := range dirs {
		dir := filepath.Join(root, fmt.Sprintf("group%02d", d/50), fmt.Sprintf("part%02d", d%50))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		for i := range each {
			n := d*each + i
			text := strings.Repeat(fmt.Sprintf(line, n), 12)
			if n%1000 == 0 {
				text += "here is the needle_in_hay\n"
			}
			if n%10 == 0 {
				text += "every_tenth has this\n"
			}
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file%d.txt", i)), []byte(text), 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}
