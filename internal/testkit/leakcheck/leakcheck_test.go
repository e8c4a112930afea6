package leakcheck_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/internal/testkit/leakcheck"
)

type testsFunc func() int

func (f testsFunc) Run() int { return f() }

func TestGoroutinesThatAreLeft(t *testing.T) {
	var out strings.Builder
	run := func(tests testsFunc) int { return leakcheck.Tests{Tests: tests, Out: &out}.Run() }
	require.Zero(t, run(func() int { return 0 }))
	require.Equal(t, 2, run(func() int { return 2 }), "failed tests keep their status")
	require.Zero(t, run(func() int {
		go time.Sleep(20 * time.Millisecond) // it ends soon
		return 0
	}))
	require.Empty(t, out.String())
	stop := make(chan struct{})
	require.Equal(t, 1, run(func() int {
		go func() { <-stop }()
		return 0
	}))
	require.Contains(t, out.String(), "the tests left 1 goroutines:")
	require.Contains(t, out.String(), "leakcheck_test.go")
	close(stop)
}
