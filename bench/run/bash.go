//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// trues is the number of commands whose median is one sample. A single command takes a
// few milliseconds, which any other process on the machine disturbs.
const trues = 41

func measureBash(b *bench) ([]table, error) {
	root, err := os.MkdirTemp(b.temp, "bash-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(root)
	var tables []table
	for _, pause := range []time.Duration{50 * time.Millisecond, 0} {
		cost, err := b.commandCost(root, pause)
		if err != nil {
			return nil, err
		}
		tables = append(tables, cost)
	}
	flood, err := b.flood(root)
	return append(tables, flood), err
}

// bashServer is a running mcp-bash.
type bashServer struct {
	server *stdioServer
	calls  int
}

func (b *bench) startBash(root string, more ...string) (*bashServer, error) {
	state := filepath.Join(root, "..", "state-"+filepath.Base(root))
	server, err := startStdio(b.toolCommand("bash", root, append([]string{"--state", state}, more...)...))
	if err != nil {
		return nil, err
	}
	s := &bashServer{server: server}
	if err := server.handshake(); err != nil {
		return nil, err
	}
	return s, s.call("true") // the first call includes the self-test
}

func (s *bashServer) call(command string) error {
	s.calls++
	_, err := s.server.call(s.calls, "tools/call", fmt.Sprintf(`{"name":"bash","arguments":{"command":%q}}`, command))
	return err
}

func (s *bashServer) stop() error {
	_, err := s.server.stop()
	return err
}

// commandCost runs a command that does nothing, with bash alone and through servers at
// each level. A model pauses between two commands, and the server prepares for the
// next one meanwhile; pause is the length of that pause, 0 for none.
func (b *bench) commandCost(root string, pause time.Duration) (table, error) {
	alone := []string{"bash", "-c", "true"}
	subjects := []subject{{name: "bash", command: shown(alone), run: func() (sample, error) {
		return medianOf(pause, func() error { _, err := process(alone); return err })
	}}}
	var failed error
	for _, level := range []string{"off", "L1", "L2"} {
		s, err := b.startBash(root, "--sandbox", level)
		if err != nil {
			return table{}, err
		}
		defer func() { failed = errors.Join(failed, s.stop()) }()
		subjects = append(subjects, subject{
			name: "mcp-bash, " + level, ours: true, command: `tools/call bash {"command":"true"}, --sandbox ` + level,
			run: func() (sample, error) { return medianOf(pause, func() error { return s.call("true") }) },
		})
	}
	series, err := inTurn(b.runs, subjects)
	after := "one right after the other"
	if pause > 0 {
		after = fmt.Sprintf("each after a pause of %v", pause)
	}
	return table{
		title: fmt.Sprintf("The command `true`: `bash -c true` as a process, and calls to a running server at each level of confinement, %s. One run is the median of %d commands.", after, trues),
		unit:  "ms", target: "bash + 2.5 ms at L1, + 5 ms at L2", series: series,
	}, errors.Join(err, failed)
}

// medianOf returns the median of many short runs as one sample.
func medianOf(pause time.Duration, once func() error) (sample, error) {
	values := make([]float64, trues)
	for i := range values {
		time.Sleep(pause)
		var err error
		if values[i], err = timed(once); err != nil {
			return sample{}, err
		}
	}
	slices.Sort(values)
	return sample{value: values[trues/2]}, nil
}

// flood runs a command that prints 2 GB.
func (b *bench) flood(root string) (table, error) {
	const print = "yes the same line over and over again | head -c 2000000000"
	file := filepath.Join(root, "output")
	toFile := []string{"bash", "-c", print + ` > "$0"`, file}
	series, err := inTurn(min(b.runs, 3), []subject{
		{name: "bash, to a file", command: "bash -c '" + print + " > file'", run: func() (sample, error) {
			defer os.Remove(file)
			return process(toFile)
		}},
		{name: "mcp-bash", ours: true, command: `tools/call bash {"command":"` + print + `"}`, run: func() (sample, error) {
			s, err := b.startBash(root)
			if err != nil {
				return sample{}, err
			}
			value, err := timed(func() error { return s.call(print) })
			return sample{value: value, rss: peak(s.server.cmd.Process.Pid)}, errors.Join(err, s.stop())
		}},
	})
	return table{
		title: "A command that prints 2 GB. mcp-bash writes the first 256 MiB to a file, holds the beginning and the end in memory, and counts the rest. The memory is the peak of the server.",
		unit:  "ms", target: "memory ≤ 64 MiB", series: series,
	}, err
}
