//go:build unix

package main

import (
	"errors"
	"path/filepath"
	"runtime"
	"time"
)

// timed returns the run time of a function in milliseconds.
func timed(f func() error) (float64, error) {
	start := time.Now()
	err := f()
	return milliseconds(time.Since(start)), err
}

// serverSubject is a server whose start is measured.
type serverSubject struct {
	name, shown string
	command     []string
	ours        bool
}

func (b *bench) stdioSubjects() ([]serverSubject, error) {
	built, err := filepath.Glob(filepath.Join(b.bin, "mcp-*"))
	if err != nil {
		return nil, err
	}
	var all []serverSubject
	for _, path := range built {
		name := filepath.Base(path)
		args := []string{"--root", b.temp}
		if name == "mcp-host" {
			args = []string{"stdio", "--root", b.temp}
		}
		all = append(all, serverSubject{name: name, command: append([]string{path}, args...), ours: true})
	}
	if len(all) == 0 {
		return nil, errors.New("bin/ is empty: run `make build` first")
	}
	all = append(all, serverSubject{name: "plain mcp-go", command: []string{b.echo("plain")}})
	for _, p := range b.peers.StdioServers {
		all = append(all, serverSubject{name: p.Name, shown: shown(p.Command), command: b.fill(p.Command, "dir", b.temp)})
	}
	return all, nil
}

func measureStart(b *bench) ([]table, error) {
	servers, err := b.stdioSubjects()
	if err != nil {
		return nil, err
	}
	var starts, idles []subject
	for _, s := range servers {
		starts = append(starts, subject{name: s.name, command: s.shown, ours: s.ours, run: func() (sample, error) { return startOnce(s.command, false) }})
		if runtime.GOOS == "linux" {
			idles = append(idles, subject{name: s.name, ours: s.ours, run: func() (sample, error) { return startOnce(s.command, true) }})
		}
	}
	start, err := inTurn(b.runs, starts)
	if err != nil {
		return nil, err
	}
	tables := []table{{
		title: "Time from the start of the process to its answer to `initialize`.",
		unit:  "ms", target: "tools ≤ 12 ms, host ≤ 15 ms", series: start,
	}}
	if len(idles) == 0 {
		return tables, nil
	}
	idle, err := inTurn(b.runs, idles)
	return append(tables, table{
		title: "Resident memory half a second after `initialize` and `tools/list`.",
		unit:  "MiB", target: "tools ≤ 16 MiB", series: idle,
	}), err
}

// startOnce measures the time to the first answer or, if idle is set, the resident
// memory of the idle server.
func startOnce(command []string, idle bool) (sample, error) {
	var server *stdioServer
	value, err := timed(func() (err error) {
		if server, err = startStdio(command); err != nil {
			return err
		}
		return server.handshake()
	})
	if server == nil {
		return sample{}, err
	}
	if err == nil && idle {
		if _, err = server.call(1, "tools/list", "{}"); err == nil {
			time.Sleep(500 * time.Millisecond)
			value, err = statusMiB(server.cmd.Process.Pid, "VmRSS:")
		}
	}
	got, stopErr := server.stop()
	got.value = value
	return got, errors.Join(err, stopErr)
}

// loadTables measures subjects with 1 and with 64 concurrent calls.
func (b *bench) loadTables(title, target string, calls int, run func(workers, total int) []subject) ([]table, error) {
	one, err := inTurn(b.runs, run(1, calls/4))
	if err != nil {
		return nil, err
	}
	many, err := inTurn(b.runs, run(64, calls))
	return []table{
		{title: title + " One call in flight.", unit: "p50 µs", target: target, series: one},
		{title: title + " 64 calls in flight.", unit: "calls/s", series: many},
	}, err
}

func measureKit(b *bench) ([]table, error) {
	return b.loadTables("The tool `echo` with 64 bytes over stdio.", "mcpkit adds ≤ 10 %", 40_000, func(workers, total int) []subject {
		var all []subject
		for _, name := range []string{"plain", "kit"} {
			command := []string{b.echo(name)}
			all = append(all, subject{
				name: map[string]string{"plain": "plain mcp-go", "kit": "mcpkit"}[name], ours: name == "kit",
				run: func() (sample, error) { return overStdio(command...).load("tools/call", echoParams, workers, total) },
			})
		}
		return all
	})
}
