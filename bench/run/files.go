//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// toolCommand returns the command line of a tool.
func (b *bench) toolCommand(name, root string, more ...string) []string {
	return append([]string{b.tool(name), "--root", root, "--max-tokens", "1000000"}, more...)
}

// shownTool returns the command line of a tool for the report.
func shownTool(name string, more ...string) string {
	return shown(append([]string{"mcp-" + name, "--root", "{dir}", "--max-tokens", "1000000"}, more...))
}

// peerSubjects returns subjects for peers that run to their end.
func (b *bench) peerSubjects(peers []peer, fill ...string) []subject {
	var all []subject
	for _, p := range peers {
		command := b.fill(p.Command, fill...)
		all = append(all, subject{name: p.Name, command: shown(p.Command), run: func() (sample, error) { return process(command) }})
	}
	return all
}

// warmCall measures a call in a server that has answered the same call before.
func (b *bench) warmCall(tool, root, arguments string) subject {
	return subject{
		name: tool + ", running server", command: "tools/call " + tool + " " + arguments, ours: true,
		run: func() (sample, error) { return b.measuredCall(tool, root, arguments, arguments) },
	}
}

// measuredCall starts a tool, makes the first call unless it is empty, and measures
// the second.
func (b *bench) measuredCall(tool, root, first, second string) (sample, error) {
	state, err := os.MkdirTemp(b.temp, "state-") // no state of an earlier run
	if err != nil {
		return sample{}, err
	}
	server, err := startStdio(b.toolCommand(tool, root, "--state", state))
	if err != nil {
		return sample{}, err
	}
	call := func(id int, arguments string) error {
		_, err := server.call(id, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments))
		return err
	}
	if err = server.handshake(); err == nil && first != "" {
		err = call(1, first)
	}
	var value float64
	if err == nil {
		value, err = timed(func() error { return call(2, second) })
	}
	got, stopErr := server.stop()
	got.value = value
	if err != nil {
		return got, err
	}
	return got, stopErr
}

func measureList(b *bench) ([]table, error) {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	root := strings.TrimSpace(string(out))
	files := 0
	err = filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files++
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	arguments := `{"pattern":"**","limit":100000,"sort":"path"}`
	command := b.toolCommand("glob", root, "--call", arguments)
	subjects := append([]subject{{
		name: "mcp-glob, one call", ours: true, command: shownTool("glob", "--call", arguments),
		run: func() (sample, error) { return process(command) },
	}}, b.peerSubjects(b.peers.ListFiles, "dir", root)...)
	subjects = append(subjects, b.warmCall("glob", root, arguments), b.warmCall("ls", root, `{"depth":20,"limit":10000}`))
	series, err := inTurn(b.runs, subjects)
	return []table{{
		title: fmt.Sprintf("All files of the Go distribution (`dir`, %d files), with ignore rules and a warm page cache. Programs marked \"one call\" are processes that make one call and exit. glob prints all files, ls the first 10,000.", files),
		unit:  "ms", target: "at least as fast as fd; desired: twice as fast", series: series,
	}}, err
}

func measureEntries(b *bench) ([]table, error) {
	root := filepath.Join(b.temp, "entries")
	if err := os.Mkdir(root, 0o755); err != nil {
		return nil, err
	}
	for i := range 100_000 {
		f, err := os.Create(filepath.Join(root, "file"+strconv.Itoa(i)+".txt"))
		if err != nil {
			return nil, err
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
	oneShot := func(tool, arguments string) subject {
		command := b.toolCommand(tool, root, "--call", arguments)
		return subject{
			name: "mcp-" + tool + ", one call", ours: true, command: shownTool(tool, "--call", arguments),
			run: func() (sample, error) { return process(command) },
		}
	}
	subjects := []subject{
		oneShot("ls", `{"path":"."}`), oneShot("glob", `{"pattern":"*.txt"}`),
		b.warmCall("ls", root, `{"path":"."}`), b.warmCall("glob", root, `{"pattern":"*.txt"}`),
	}
	series, err := inTurn(b.runs, append(subjects, b.peerSubjects(b.peers.ListFiles, "dir", root)...))
	return []table{{
		title: "A directory `dir` with 100,000 empty files. ls and glob read the attributes of all files, sort and count them; the other programs only list them.",
		unit:  "ms", target: "under 1 s", series: series,
	}}, err
}

// bigLine is the line of the big file that is viewed.
const bigLine = 4_000_000

func measureView(b *bench) ([]table, error) {
	root := filepath.Join(b.temp, "big")
	name := filepath.Join(root, "big.log")
	if err := writeBig(name); err != nil {
		return nil, err
	}
	arguments := fmt.Sprintf(`{"file_path":"big.log","offset":%d,"limit":50}`, bigLine)
	subjects := []subject{
		{name: "view, first call", ours: true, command: "tools/call view " + arguments,
			run: func() (sample, error) { return b.measuredCall("view", root, "", arguments) }},
		{name: "view, second call", ours: true, command: "the same call again",
			run: func() (sample, error) { return b.measuredCall("view", root, arguments, arguments) }},
	}
	series, err := inTurn(b.runs, append(subjects, b.peerSubjects(b.peers.ReadFile, "file", name)...))
	if err := os.Remove(name); err != nil {
		return nil, err
	}
	return []table{{
		title: "50 lines from line 4,000,000 of `file`, which has 1 GB in 5 million lines, with a warm page cache. Each run starts a new server with an empty state directory. CPU and memory cover the whole run of the server.",
		unit:  "ms", target: "first ≤ 1.5 × wc -l, second ≤ 20 ms, peak memory ≤ 64 MiB", series: series,
	}}, err
}

func writeBig(name string) error {
	if err := os.Mkdir(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	for i := range 5_000_000 {
		// 200 bytes for each line, as in logs.
		fmt.Fprintf(w, "2026-07-28T12:00:00.%09d level=info request=%016x message=%q\n", i, i*7919,
			"an ordinary line of a log whose text fills the rest of it with words that say little, as such lines do; the quick brown fox jumps")
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}
