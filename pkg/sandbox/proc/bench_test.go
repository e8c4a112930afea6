//go:build linux

package proc_test

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// BenchmarkTrue is what bash -c true costs: plain, and at each level. Run it
// with -count and compare medians.
func BenchmarkTrue(b *testing.B) {
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			time.Sleep(50 * time.Millisecond)
			b.StartTimer()
			require.NoError(b, exec.Command("bash", "--noprofile", "--norc", "-c", "true").Run())
		}
	})
	for _, level := range levels(b) {
		b.Run(string(level), func(b *testing.B) {
			r := newRunner(b, proc.Config{Level: level})
			c := proc.Command{Script: "true", Dir: "/", Rules: rules{root: b.TempDir()}}
			_, err := r.SelfTest(context.Background())
			require.NoError(b, err)
			for b.Loop() {
				b.StopTimer() // commands do not follow each other this closely
				time.Sleep(50 * time.Millisecond)
				b.StartTimer()
				result, out, err := r.Run(context.Background(), c)
				require.NoError(b, err)
				require.Zero(b, result.ExitCode)
				out.Close()
			}
		})
	}
}

// BenchmarkOutput is how fast much output is taken.
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
