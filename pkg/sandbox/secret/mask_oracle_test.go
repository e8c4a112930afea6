//go:build oracle

package secret_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/secret"
)

// What bash takes for the value of K is never seen.
func TestMasksWhatBashReads(t *testing.T) {
	bash := oracle.Path(t, "bash")
	r := rand.New(rand.NewPCG(22, 2))
	dir := t.TempDir()
	values := 0
	for range 3000 {
		text := scribble(r)
		path := filepath.Join(dir, "env")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		cmd := exec.Command(bash, "--norc", "-c", "K=; PATH=; . ./env; printf '%s' \"$K\"")
		cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir}
		got, _ := cmd.Output() // most of them are no script
		out := secret.Mask([]byte(text))
		for _, word := range scribbled.FindAllString(string(got), -1) {
			if strings.Contains(text, word) {
				values++
				require.False(t, bytes.Contains(out, []byte(word)), "%q in %q: %q", word, text, out)
			}
		}
	}
	require.Greater(t, values, 100)
}
