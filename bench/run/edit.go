//go:build unix

package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

func measureEdit(b *bench) ([]table, error) {
	root, err := os.MkdirTemp(b.temp, "edit-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(root)
	large, err := b.largeEdits(root)
	if err != nil {
		return nil, err
	}
	many, err := b.manyEdits(root)
	return []table{large, many}, err
}

// largeEdits changes one line in the middle of a file of 100 MB repeatedly.
func (b *bench) largeEdits(root string) (table, error) {
	file, state := filepath.Join(root, "large.log"), filepath.Join(root, "state")
	if err := writeLarge(file, 100_000_000); err != nil {
		return table{}, err
	}
	defer os.Remove(file)
	version := 0
	next := func() string {
		version++
		return fmt.Sprintf(`{"file_path":"large.log","old_string":"version %d of","new_string":"version %d of"}`, version-1, version)
	}
	server, err := startStdio(b.toolCommand("edit", root, "--state", state))
	if err != nil {
		return table{}, err
	}
	if err := server.handshake(); err != nil {
		return table{}, err
	}
	copied := filepath.Join(root, "copy.log")
	defer os.Remove(copied)
	copying := []string{"cp", file, copied}
	synced := []string{"sh", "-c", `cp "$0" "$1" && sync "$1"`, file, copied}
	id := 0
	series, err := inTurn(b.runs, []subject{
		{name: "cp", command: "cp file copy", run: func() (sample, error) { return process(copying) }},
		{name: "cp and sync", command: "cp file copy && sync copy", run: func() (sample, error) { return process(synced) }},
		{name: "mcp-edit, one call", ours: true, command: shownTool("edit", "--call", `{"file_path":"large.log","old_string":"version 0 of","new_string":"version 1 of"}`),
			run: func() (sample, error) {
				return process(b.toolCommand("edit", root, "--state", state, "--call", next()))
			}},
		{name: "edit, a call to a server", ours: true, command: "tools/call edit, with the same arguments", run: func() (sample, error) {
			id++
			value, err := timed(func() error {
				_, err := server.call(id, "tools/call", `{"name":"edit","arguments":`+next()+`}`)
				return err
			})
			return sample{value: value, rss: peak(server.cmd.Process.Pid)}, err
		}},
	})
	if _, stopErr := server.stop(); err == nil {
		err = stopErr
	}
	return table{
		title: "One line in the middle of a file of 100 MB. Programs marked \"one call\" are processes that make one call and exit. edit reads and hashes the file, writes and syncs a new one, and renames it; cp does not sync.",
		unit:  "ms", target: "≤ 3 × cp, peak memory ≤ 2 × the file", series: series,
	}, err
}

// writeLarge writes a log file with one unique line in the middle.
func writeLarge(name string, size int) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	written, marked := 0, false
	for i := 0; written < size; i++ {
		n, _ := fmt.Fprintf(w, "2026-07-28T12:00:00.%09d level=info request=%016x an ordinary line of a log, as long as such lines are\n", i, i*7919)
		written += n
		if !marked && written >= size/2 {
			marked = true
			fmt.Fprintln(w, "version 0 of this line")
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return f.Close()
}

// manyServers is the number of servers that edit concurrently.
const manyServers = 64

// manyEdits lets servers edit concurrently: first one file, then one file each.
func (b *bench) manyEdits(root string) (table, error) {
	state := filepath.Join(root, "state")
	servers := make([]*stdioServer, manyServers)
	for i := range servers {
		s, err := startStdio(b.toolCommand("edit", root, "--state", state))
		if err != nil {
			return table{}, err
		}
		if err := s.handshake(); err != nil {
			return table{}, err
		}
		servers[i] = s
	}
	round := 0
	together := func(file func(i int) string) func() (sample, error) {
		return func() (sample, error) {
			round++
			for i := range servers { // each file has one line for each server
				var text strings.Builder
				for j := range servers {
					fmt.Fprintf(&text, "line %d of many\n", j)
				}
				if err := os.WriteFile(filepath.Join(root, file(i)), []byte(text.String()), 0o644); err != nil {
					return sample{}, err
				}
			}
			var group sync.WaitGroup
			failed := make([]error, len(servers))
			start := time.Now()
			for i, s := range servers {
				group.Go(func() {
					_, failed[i] = s.call(round, "tools/call", fmt.Sprintf(`{"name":"edit","arguments":{"file_path":%q,"old_string":"line %d of","new_string":"edited %d in round %d of"}}`, file(i), i, i, round))
				})
			}
			group.Wait()
			return sample{value: milliseconds(time.Since(start))}, errors.Join(failed...)
		}
	}
	files := 0
	series, err := inTurn(b.runs, []subject{
		{name: "64 edits of 64 files", ours: true, command: "tools/call edit in 64 servers", run: together(func(i int) string { return "own" + strconv.Itoa(i) + ".txt" })},
		{name: "64 edits of one file", ours: true, command: "the same", run: func() (sample, error) {
			files++
			return together(func(int) string { return fmt.Sprintf("shared%d.txt", files) })()
		}},
	})
	for _, s := range servers {
		if _, stopErr := s.stop(); err == nil {
			err = stopErr
		}
	}
	return table{
		title: "64 servers make one edit each at the same time. The time ends with the last answer. Each edit is synced to the disk.",
		unit:  "ms", target: "no edit is lost", series: series,
	}, err
}
