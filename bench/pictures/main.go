// Pictures draws the pictures of README from data: a terminal session from a
// recording, and a chart from bench/RESULTS.md.
//
// Usage: go run ./bench/pictures [-record]
//
// It is started in the repository's directory and writes docs/pictures, each
// picture in a light and a dark version. With -record it first runs the
// commands of bench/pictures/session.txtar with the binaries in bin/ and writes
// what they print to bench/pictures/session.txt. Tests compare the committed
// pictures with the recording and the report, byte by byte.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

const (
	recording = "bench/pictures/session.txt"
	script    = "bench/pictures/session.txtar"
	results   = "bench/RESULTS.md"
	pictures  = "docs/pictures"
)

func main() {
	again := flag.Bool("record", false, "run the session again first, with the binaries in bin/")
	flag.Parse()
	if err := run(*again); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func run(again bool) error {
	if again {
		text, err := record(script, "bin", nil)
		if err != nil {
			return err
		}
		if err := os.WriteFile(recording, []byte(text), 0o644); err != nil {
			return err
		}
	}
	drawn, err := draw(recording, results)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(pictures, 0o755); err != nil {
		return err
	}
	for name, content := range drawn {
		if err := os.WriteFile(filepath.Join(pictures, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// draw returns the content of each picture by its file name.
func draw(recording, results string) (map[string][]byte, error) {
	session, err := os.ReadFile(recording)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(results)
	if err != nil {
		return nil, err
	}
	measured := report(text)
	drawn := map[string][]byte{}
	for _, t := range themes() {
		if drawn["session-"+t.name+".svg"], err = drawSession(string(session), t); err != nil {
			return nil, fmt.Errorf("%s: %w", recording, err)
		}
		if drawn["performance-"+t.name+".svg"], err = drawChart(measured, t); err != nil {
			return nil, fmt.Errorf("%s: %w", results, err)
		}
	}
	return drawn, nil
}
