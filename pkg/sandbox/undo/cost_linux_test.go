package undo_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// TestCost prints the time of commands with and without a record, in pairs.
// UNDO_COST is the number of pairs; 0 skips the test. UNDO_COST_CASES holds
// the names of the cases, UNDO_COST_DIR a directory for the roots,
// UNDO_COST_REPO a clone of this repository, and UNDO_COST_MODULES the module
// cache.
func TestCost(t *testing.T) {
	pairs, _ := strconv.Atoi(os.Getenv("UNDO_COST"))
	if pairs == 0 {
		t.Skip("UNDO_COST is not set")
	}
	repo := os.Getenv("UNDO_COST_REPO")
	cases := []struct{ name, before, script string }{
		{"empty", "", "true"},
		{"tar", "mkdir -p src; python3 -c \"\nimport os\nfor i in range(1000):\n  d=f'src/p{i%200}/d{i}'\n  os.makedirs(d)\n  for j in range(20): open(f'{d}/f{j}.js','w').write('x'*700)\n\"; tar cf src.tar src; rm -rf src", "mkdir node_modules; tar xf src.tar -C node_modules"},
		{"rm", "mkdir -p src; python3 -c \"\nimport os\nfor i in range(1000):\n  d=f'src/p{i%200}/d{i}'\n  os.makedirs(d)\n  for j in range(20): open(f'{d}/f{j}.js','w').write('x'*700)\n\"", "rm -rf src"},
		{"checkout", "git clone -q " + repo + " r; cd r; git checkout -q HEAD~400 || git checkout -q HEAD~100", "cd r; git checkout -q main"},
		{"build", "git clone -q " + repo + " r", "cd r; export GOCACHE=$PWD/.gocache GOFLAGS=-mod=mod GOPROXY=off CGO_ENABLED=0; go build -o out ./tools/bash 2>&1 | tail -3"},
	}
	for _, level := range []proc.Level{proc.L2, proc.L1} {
		at := cmp.Or(os.Getenv("UNDO_COST_DIR"), mcpkittest.OuterDir(t, ""))
		with := benchIn(t, level, filepath.Join(at, "with"), filepath.Join(at, "with", "state", "commands"))
		plain := benchIn(t, level, filepath.Join(at, "plain"), filepath.Join(at, "plain", "state", "commands"))
		plain.WithoutUndo()
		for _, c := range cases {
			if only := os.Getenv("UNDO_COST_CASES"); only != "" && !strings.Contains(only, c.name) || c.name == "build" && level != proc.L2 {
				continue
			}
			took, cpu := map[*bench][]float64{}, map[*bench][]float64{}
			n := pairs
			if c.name == "empty" {
				n *= 100
			}
			for i := range n {
				order := []*bench{with, plain}
				if i%2 == 1 {
					order = []*bench{plain, with}
				}
				for _, b := range order {
					if c.before != "" {
						b.RemoveFiles()
						b.RunOutside(c.before)
					}
					used := usage()
					began := time.Now()
					id, out := b.run(c.script)
					took[b] = append(took[b], float64(time.Since(began).Microseconds())/1000)
					if c.name != "empty" {
						time.Sleep(100 * time.Millisecond) // until Wait has collected the supervisor
						now := usage()
						cpu[b] = append(cpu[b], now-used)
					}
					if out != "" && i == 0 {
						t.Log(c.name, out)
					}
					if id != "" && i == 0 {
						size, _ := b.du(id)
						t.Logf("%s record %d bytes", c.name, size)
						began = time.Now()
						b.undo(id)
						t.Logf("%s undo took %v", c.name, time.Since(began))
					}
				}
			}
			fmt.Printf("%s %s: with %.2f ms, without %.2f ms (medians of %d)\n", level, c.name, median(took[with]), median(took[plain]), n)
			if c.name != "empty" {
				fmt.Printf("%s %s: processor with %.0f ms, without %.0f ms\n", level, c.name, median(cpu[with]), median(cpu[plain]))
			}
		}
	}
}

func median(all []float64) float64 {
	sort.Float64s(all)
	return all[len(all)/2]
}

// usage returns the processor time of all ended children in milliseconds.
func usage() float64 {
	var r syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_CHILDREN, &r) //nolint:errcheck // on failure the result is 0
	return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e6
}
