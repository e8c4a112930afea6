package prometheus_test

import (
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/telemetry/prometheus"
)

func text(t *testing.T, p *prometheus.Page) string {
	t.Helper()
	var b strings.Builder
	_, err := p.WriteTo(&b)
	require.NoError(t, err)
	return b.String()
}

func TestThePage(t *testing.T) {
	var p prometheus.Page
	require.Empty(t, text(t, &p))
	p.BeginFamily("a_total", prometheus.Counter, "Of \"a\", a \\ and\na line.")
	p.WriteSample(3)
	p.WriteSample(0.1, prometheus.Label{Name: "x", Value: "quote \" back \\ line\n and \xff, {}"}, prometheus.Label{Name: "y", Value: ""})
	p.WriteSample(math.Inf(1), prometheus.Label{Name: "x", Value: "é"})
	p.WriteSingle("b", prometheus.Gauge, "B.", 1.5e300)
	p.BeginFamily("c_seconds", prometheus.Histogram, "C.")
	p.WriteHistogram([]float64{0.000128, 1, 64}, []int64{1, 2, 3}, 4, 100.25, prometheus.Label{Name: "l", Value: "v"})
	p.WriteHistogram([]float64{1}, []int64{0}, 0, 0)
	require.Equal(t, `# HELP a_total Of "a", a \\ and\na line.
# TYPE a_total counter
a_total 3
a_total{x="quote \" back \\ line\n and `+"\uFFFD"+`, {}",y=""} 0.1
a_total{x="é"} +Inf
# HELP b B.
# TYPE b gauge
b 1.5e+300
# HELP c_seconds C.
# TYPE c_seconds histogram
c_seconds_bucket{l="v",le="0.000128"} 1
c_seconds_bucket{l="v",le="1"} 2
c_seconds_bucket{l="v",le="64"} 3
c_seconds_bucket{l="v",le="+Inf"} 4
c_seconds_sum{l="v"} 100.25
c_seconds_count{l="v"} 4
c_seconds_bucket{le="1"} 0
c_seconds_bucket{le="+Inf"} 0
c_seconds_sum 0
c_seconds_count 0
`, text(t, &p))
}

func TestThisProcess(t *testing.T) {
	p := prometheus.CurrentProcess()
	require.Positive(t, p.Goroutines)
	require.Positive(t, p.Heap)
	require.Greater(t, p.Mapped, p.Heap)
	var page prometheus.Page
	p.Write(&page, time.Unix(1_700_000_000, 5e8))
	require.Contains(t, text(t, &page), "process_start_time_seconds 1700000000.5\n")
	if runtime.GOOS != "linux" {
		return
	}
	require.Greater(t, p.Resident, uint64(1<<20))
	require.Positive(t, p.Open)
	require.GreaterOrEqual(t, p.MaxOpen, uint64(p.Open))
	require.Positive(t, p.CPU)
	require.Contains(t, text(t, &page), "\nprocess_open_fds ")
}
