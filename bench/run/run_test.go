//go:build unix

package main

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

func TestFigures(t *testing.T) {
	require.Equal(t, 2.0, median([]float64{3, 1, 2}))
	require.Equal(t, 2.5, median([]float64{4, 1, 3, 2}))
	require.Zero(t, median(nil))
	require.Equal(t, 50*time.Millisecond, percentile([]time.Duration{30e6, 50e6, 10e6}, 0.9))
	require.Equal(t, "123", figure(123.4))
	require.Equal(t, "12.3", figure(12.34))
	require.Equal(t, "1.23", figure(1.234))
}

func TestRunsAreInTurnAndTheFirstRoundIsNot(t *testing.T) {
	var order string
	one := func(name string) subject {
		return subject{name: name, run: func() (sample, error) { order += name; return sample{value: float64(len(order))}, nil }}
	}
	all, err := inTurn(2, []subject{one("a"), one("b")})
	require.NoError(t, err)
	require.Equal(t, "ab"+"ba"+"ab", order)
	require.Len(t, all[0].samples, 2)
	_, err = inTurn(1, []subject{{name: "x", run: func() (sample, error) { return sample{}, errors.New("broken") }}})
	require.EqualError(t, err, "x: broken", "a run that fails fails the benchmark")
}

func TestRatiosArePaired(t *testing.T) {
	base := series{subject: subject{name: "a"}, samples: []sample{{value: 1}, {value: 100}, {value: 10}}}
	other := series{subject: subject{name: "b"}, samples: []sample{{value: 2}, {value: 200}, {value: 20}}}
	require.Equal(t, "2.00", table{}.ratio(other, base))
	require.Equal(t, "1", table{}.ratio(base, base))
}

func TestCommandLinesAreShownWithoutPlaces(t *testing.T) {
	b := &bench{names: map[string]string{"rg": "/somewhere/rg"}}
	command := []string{"{rg}", "--files", "-g", "!.git", "{dir}"}
	require.Equal(t, []string{"/somewhere/rg", "--files", "-g", "!.git", "/d"}, b.fill(command, "dir", "/d"))
	require.Equal(t, "rg --files -g '!.git' dir", shown(command))
	require.Equal(t, `mcp-ls --call '{"path":"."}'`, shown([]string{"mcp-ls", "--call", `{"path":"."}`}))
}

func TestLoadMakesEveryCallOnce(t *testing.T) {
	seen := make(chan int, 1000)
	times, rate, err := load(func(id int) error { seen <- id; return nil }, 8, 100)
	require.NoError(t, err)
	require.Len(t, times, 100)
	require.Positive(t, rate)
	close(seen)
	ids := map[int]bool{}
	for id := range seen {
		require.False(t, ids[id], "an id is never used twice")
		ids[id] = true
	}
	require.Len(t, ids, 100)
	_, _, err = load(func(int) error { return errors.New("refused") }, 2, 10)
	require.ErrorContains(t, err, "refused")
}

func TestEchoServersAnswer(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	for _, name := range []string{"plain", "kit"} {
		binary := mcpkittest.Build(t, "./bench/echo/"+name)
		for _, workers := range []int{1, 64} {
			got, err := overStdio(binary).load("tools/call", echoParams, workers, 200)
			require.NoError(t, err)
			require.Positive(t, got.value)
			require.Positive(t, got.rss)
		}
	}
}

func TestSectionsThatAreNotMeasuredStay(t *testing.T) {
	earlier := "# Measured\n\nSays how.\n\n## One\n\nMachine: old.\n\n| a |\n\n## Two\n\nMachine: old.\n\ntext\n"
	r := &report{machine: "Machine: new."}
	r.keep(earlier, "One")
	r.add("Two", nil)
	r.keep(earlier, "Three")
	require.Equal(t, "\n## One\n\nMachine: old.\n\n| a |\n\n## Two\n\nMachine: new.\n", r.String())
}
