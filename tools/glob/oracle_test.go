//go:build oracle

package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
)

// TestLikeFd compares with fd on the Go distribution that runs the test.
func TestLikeFd(t *testing.T) {
	root := goRoot(t)
	for _, pattern := range []string{"**/*.go", "**/*_test.go", "src/net/**/*.{go,s}", "**/[a-c]*/*.txt", "src/*/*.go", "**/testdata/**/*.gol?en"} {
		cmd := exec.Command(oracle.Path(t, "fd"), "--type", "f", "--hidden", "--exclude", ".git", "--full-path",
			"--strip-cwd-prefix", "--glob", root+"/"+pattern)
		cmd.Dir = root
		out, err := cmd.Output()
		require.NoError(t, err, pattern)
		want := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
		slices.Sort(want)
		got := []string{}
		args := defaults(pattern)
		args.Sort, args.Limit = "path", 10_000
		for len(got) < len(want) {
			args.Offset = len(got)
			page := paths(t, args, root)
			require.NotEmpty(t, page, pattern)
			got = append(got, page...)
		}
		slices.Sort(got)
		require.Equal(t, len(want), len(got), pattern)
		require.True(t, slices.Equal(want, got), pattern)
	}
}
