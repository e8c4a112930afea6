package confine_test

import (
	"context"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/confine"
)

// BenchmarkStart measures the start and end of a program, confined and not.
func BenchmarkStart(b *testing.B) {
	b.Run("unconfined", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, level := range []confine.Settings{{Level: "L2"}, {Level: "L1"}} {
		b.Run(string(level.Level), func(b *testing.B) {
			c := confine.New(b.TempDir())
			null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
			if err != nil {
				b.Fatal(err)
			}
			defer null.Close()
			for b.Loop() {
				read, write, err := os.Pipe()
				if err != nil {
					b.Fatal(err)
				}
				p, err := c.Start(context.Background(), confine.Program{Server: "s", Command: []string{"/bin/true"}, Env: os.Environ(), Stdio: [3]*os.File{null, write, null}, Grace: time.Second}, level)
				if err != nil {
					b.Fatal(err)
				}
				write.Close()
				io.ReadAll(read) //nolint:errcheck // its end is waited for
				read.Close()
				b.StopTimer()
				p.Wait() //nolint:errcheck // true
				b.StartTimer()
			}
		})
	}
}
