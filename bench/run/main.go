//go:build unix

// Run measures the binaries of this repository against other programs and writes
// bench/RESULTS.md.
//
// Usage:
//
//	go run ./bench/run [-runs N] [-only NAME[,NAME]] [-out FILE]
//
// It runs in the repository's directory, after `make oracles`, and builds the binaries
// that it measures. Every figure is the median of at least seven runs. Programs that
// are compared run in turn, so that a slow moment of the machine affects all of them.
// The peers are command lines in bench/peers.yaml.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
)

func main() {
	runs := flag.Int("runs", 7, "runs of each program")
	only := flag.String("only", "", "sections to measure, separated by commas, the others staying as they are in the report; all when empty")
	out := flag.String("out", "bench/RESULTS.md", "the report")
	flag.Parse()
	if err := run(*runs, *only, *out); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// sections returns the sections in measuring order.
func sections() []section {
	return []section{
		{"size", "Size of results", measureSizes},
		{"list", "Listing the Go distribution", measureList},
		{"entries", "A directory of 100,000 entries", measureEntries},
		{"search", "Searching", measureSearch},
		{"same", "Same results as ripgrep", measureSame},
		{"view", "Line 4,000,000 of a 1 GB file", measureView},
		{"edit", "Editing", measureEdit},
		{"bash", "Commands", measureBash},
		{"start", "Start and idle memory", measureStart},
		{"kit", "mcpkit compared with plain mcp-go", measureKit},
		{"hop", "Calls through the host", measureHop},
		{"big", "Results of 1 MiB through the host", measureBig},
		{"lists", "Long lists", measureLists},
		{"upstreams", "Fifty servers", measureMany},
		{"fairness", "Fairness between clients", measureFair},
		{"build", "The host's size", measureBuild},
	}
}

func run(runs int, only, out string) error {
	if runs < 1 {
		return fmt.Errorf("-runs %d: at least one", runs)
	}
	build := exec.Command("make", "build")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("make build: %w", err)
	}
	b, err := newBench(runs)
	if err != nil {
		return err
	}
	defer b.close()
	earlier, err := os.ReadFile(out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	report := newReport(b)
	for _, s := range sections() {
		if only != "" && !slices.Contains(strings.Split(only, ","), s.key) {
			report.keep(string(earlier), s.title)
			continue
		}
		fmt.Fprintln(os.Stderr, "measuring:", s.title)
		tables, err := s.measure(b)
		if err != nil {
			return fmt.Errorf("%s: %w", s.key, err)
		}
		report.add(s.title, tables)
	}
	return os.WriteFile(out, []byte(report.String()), 0o644)
}

// section is one part of the report.
type section struct {
	key, title string
	measure    func(*bench) ([]table, error)
}
