//go:build linux

package proc_test

import (
	"context"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// BenchmarkTrue measures bash -c true: without the package, and the additional
// time at each level. The variants alternate, so that other load on the
// machine affects all alike. It reports medians in milliseconds.
func BenchmarkTrue(b *testing.B) {
	names := []string{"plain"}
	run := map[string]func(){"plain": func() {
		require.NoError(b, exec.Command("bash", "--noprofile", "--norc", "-c", "true").Run())
	}}
	for _, level := range levels(b) {
		r := trusted(b, level)
		c := proc.Command{Script: "true", Dir: "/", Rules: rules{root: b.TempDir()}}
		names = append(names, string(level))
		run[string(level)] = func() {
			result, out, err := r.Run(context.Background(), c)
			require.NoError(b, err)
			require.Zero(b, result.ExitCode)
			out.Close()
		}
	}
	took := map[string][]time.Duration{}
	for b.Loop() {
		for _, name := range names {
			time.Sleep(30 * time.Millisecond) // commands do not follow each other immediately
			began := time.Now()
			run[name]()
			took[name] = append(took[name], time.Since(began))
		}
	}
	median := func(name string) time.Duration {
		slices.Sort(took[name])
		return took[name][len(took[name])/2]
	}
	for _, name := range names {
		value := median(name)
		if name != "plain" {
			value -= median("plain")
			name += "-more"
		}
		b.ReportMetric(float64(value.Microseconds())/1000, name+"-ms")
	}
}

// BenchmarkOutput measures how fast large output is read.
func BenchmarkOutput(b *testing.B) {
	r := newRunner(b, proc.Config{Level: proc.Off})
	const size = 512 << 20
	b.SetBytes(size)
	for b.Loop() {
		_, out, err := r.Run(context.Background(), proc.Command{Script: "yes | head -c 536870912", Dir: "/"})
		require.NoError(b, err)
		require.EqualValues(b, size, out.Size())
		out.Close()
	}
}
