package core

import (
	"cmp"
	"io"
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/limit"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/stats"
	"github.com/toolroom-mcp/toolroom/host/internal/telemetry/prometheus"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
)

// maxSeries bounds the tools with separate lines on the page.
const maxSeries = 500

// Metrics writes the metrics in the Prometheus text format and returns the error of w.
func (a *App) Metrics(w io.Writer) error {
	var page prometheus.Page
	page.BeginFamily("toolroom_build_info", prometheus.Gauge, "The host's version, always 1.")
	page.WriteSample(1, prometheus.Label{Name: "version", Value: a.version}, prometheus.Label{Name: "goversion", Value: runtime.Version()})
	a.writeCalls(&page)
	a.writeServers(&page)
	a.writeQueues(&page)
	stale := 0.0
	if a.WhyStale() != nil {
		stale = 1
	}
	page.WriteSingle("toolroom_config_stale", prometheus.Gauge, "1 while the configuration files are invalid and the host keeps its previous configuration.", stale)
	lost, _ := a.AuditLosses()
	page.WriteSingle("toolroom_audit_lost_total", prometheus.Counter, "Events that could not be written to the audit log.", float64(lost))
	if a.tracer != nil {
		sent, dropped, _ := a.tracer.Sent()
		page.WriteSingle("toolroom_spans_sent_total", prometheus.Counter, "Spans accepted by the collector.", float64(sent))
		page.WriteSingle("toolroom_spans_dropped_total", prometheus.Counter, "Spans lost before the collector.", float64(dropped))
	}
	prometheus.CurrentProcess().Write(&page, a.startedAt)
	_, err := page.WriteTo(w)
	return err
}

// writeCalls writes the counters of the stats stage.
func (a *App) writeCalls(page *prometheus.Page) {
	all := a.currentPipeline().stats.Series(maxSeries)
	labels := func(s stats.Series) []prometheus.Label {
		return []prometheus.Label{{Name: "tool", Value: s.Tool}, {Name: "server", Value: s.Server}}
	}
	var bounds []float64
	for _, d := range stats.Bounds() {
		bounds = append(bounds, d.Seconds())
	}
	page.BeginFamily("toolroom_call_duration_seconds", prometheus.Histogram, "Call duration as seen by the caller, including waiting.")
	for _, s := range all {
		page.WriteHistogram(bounds, s.Within, s.Calls, s.Sum.Seconds(), labels(s)...)
	}
	page.BeginFamily("toolroom_calls_total", prometheus.Counter, "Finished calls, including refused and failed ones.")
	for _, s := range all {
		page.WriteSample(float64(s.Calls), labels(s)...)
	}
	page.BeginFamily("toolroom_call_errors_total", prometheus.Counter, "Failed calls by code; tool_error: the tool reported an error.")
	for _, s := range all {
		for _, code := range slices.Sorted(maps.Keys(s.Codes)) {
			page.WriteSample(float64(s.Codes[code]), append(labels(s), prometheus.Label{Name: "code", Value: string(code)})...)
		}
	}
	page.BeginFamily("toolroom_result_bytes_total", prometheus.Counter, "Bytes of results.")
	for _, s := range all {
		page.WriteSample(float64(s.Bytes), labels(s)...)
	}
}

// writeServers writes the state, restarts, tools, noise lines and latency of the servers.
func (a *App) writeServers(page *prometheus.Page) {
	var all []upstream.Status
	for _, s := range a.Servers() {
		all = append(all, s.Status())
	}
	each := func(name, kind, help string, value func(upstream.Status) float64) {
		page.BeginFamily(name, kind, help)
		for _, s := range all {
			page.WriteSample(value(s), prometheus.Label{Name: "server", Value: s.Name})
		}
	}
	page.BeginFamily("toolroom_server_state", prometheus.Gauge, "1 for the current state of a server, else 0.")
	for _, s := range all {
		for _, state := range []upstream.State{upstream.Configured, upstream.Starting, upstream.Ready, upstream.Unstable, upstream.CredentialsRejected, upstream.NeedsSignIn, upstream.Offline, upstream.Disabled} {
			value := 0.0
			if s.State == state {
				value = 1
			}
			page.WriteSample(value, prometheus.Label{Name: "server", Value: s.Name}, prometheus.Label{Name: "state", Value: state})
		}
	}
	each("toolroom_server_restarts_total", prometheus.Counter, "Restarts.", func(s upstream.Status) float64 { return float64(s.Restarts) })
	each("toolroom_server_tools", prometheus.Gauge, "Tools of running servers.", func(s upstream.Status) float64 { return float64(s.Tools) })
	each("toolroom_server_noise_lines_total", prometheus.Counter, "Non-message lines on standard output since the last start.", func(s upstream.Status) float64 { return float64(s.Noise) })
	each("toolroom_server_latency_seconds", prometheus.Gauge, "Duration of the last answered call or ping, without waiting in the host.", func(s upstream.Status) float64 { return s.Latency / 1000 })
}

// writeQueues writes the running and waiting calls of each server.
func (a *App) writeQueues(page *prometheus.Page) {
	loads := a.loadByServer()
	each := func(name, kind, help string, value func(limit.Load) float64) {
		page.BeginFamily(name, kind, help)
		for _, l := range loads {
			page.WriteSample(value(l), prometheus.Label{Name: "server", Value: l.Server}, prometheus.Label{Name: "tool", Value: l.Tool})
		}
	}
	each("toolroom_calls_running", prometheus.Gauge, "Running calls.", func(l limit.Load) float64 { return float64(l.Running) })
	each("toolroom_calls_waiting", prometheus.Gauge, "Queued calls.", func(l limit.Load) float64 { return float64(l.Waiting) })
	each("toolroom_permits", prometheus.Gauge, "Maximum number of calls at once.", func(l limit.Load) float64 { return float64(l.Permits) })
	each("toolroom_calls_turned_away_total", prometheus.Counter, "Calls refused because the queue was full or the wait too long.", func(l limit.Load) float64 { return float64(l.Refused) })
}

// loadByServer returns the load of the servers, summed over all depths of calls,
// sorted by name.
func (a *App) loadByServer() []limit.Load {
	type place struct{ server, tool string }
	sums := map[place]limit.Load{}
	for _, l := range a.Loads() {
		sum := sums[place{l.Server, l.Tool}]
		sums[place{l.Server, l.Tool}] = limit.Load{
			Server: l.Server, Tool: l.Tool, Permits: sum.Permits + l.Permits, Running: sum.Running + l.Running,
			Waiting: sum.Waiting + l.Waiting, Refused: sum.Refused + l.Refused,
		}
	}
	loads := slices.SortedFunc(maps.Values(sums), func(a, b limit.Load) int {
		return cmp.Or(strings.Compare(a.Server, b.Server), strings.Compare(a.Tool, b.Tool))
	})
	return append([]limit.Load{}, loads[:min(len(loads), maxSeries)]...)
}
