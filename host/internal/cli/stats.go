package cli

import (
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/audit"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/limit"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/stats"
	"github.com/toolroom-mcp/toolroom/host/internal/telemetry/prometheus"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// statsReport holds sums of the audit log over a period.
type statsReport struct {
	Since      time.Time  `json:"since"`
	Tools      []toolStat `json:"tools"`
	Unfinished int        `json:"unfinished"` // calls without an end in the log
	Lost       int        `json:"lost"`       // events that could not be written
	Skipped    int        `json:"skipped"`    // lines that are not events

	Hosts []hostStat `json:"hosts,omitempty"` // running hosts
}

// hostStat holds the counters of one running host.
type hostStat struct {
	core.RunningHost
	Tools   []toolStat         `json:"tools"`
	Loads   []limit.Load       `json:"loads"`
	Process prometheus.Process `json:"process"`
}

// toolStat holds the counters of a tool, in units for other programs.
type toolStat struct {
	Tool   string  `json:"tool"`
	Server string  `json:"server"`
	Calls  int64   `json:"calls"`
	Errors int64   `json:"errors"`
	P50    float64 `json:"p50Ms"`
	P99    float64 `json:"p99Ms"`
	Bytes  int64   `json:"bytes"`
}

func (p *program) statsCommand() *cobra.Command {
	var asJSON bool
	var since time.Duration
	var pid int
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Show calls, errors, durations and bytes by tool, from the audit log",
		Long: `stats reads the audit log of the state directory, to which all hosts with that
directory write, and asks running hosts for their current load. Errors are calls
that failed and results that report an error; output is the size of all results.
With --json all numbers are raw and their names give the unit: p50Ms, bytes.`,
		Example: "  mcp-host stats\n  mcp-host stats --since 24h --json",
		Args:    argumentCount(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if since <= 0 {
				return usageError("--since %v: want a duration such as 24h", since)
			}
			state, err := config.StateDir(p.flags.State, p.getenv)
			if err != nil {
				return withStatus(exitUsage, err)
			}
			if state == "" {
				return usageError("no state directory; use --state DIR")
			}
			s, err := statsOfLog(core.AuditDir(state), time.Now().Add(-since))
			if err != nil {
				return withStatus(exitFailed, err)
			}
			hosts, err := p.liveHosts(cmd.Context(), pid)
			if err != nil && !errors.Is(err, errSilent) {
				return err
			}
			s.Hosts = p.hostCounters(cmd.Context(), hosts)
			if asJSON {
				return p.printJSON(s)
			}
			return p.printStats(s, since)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	hostFlag(cmd, &pid)
	cmd.Flags().DurationVar(&since, "since", 24*time.Hour, "include the calls of the last `DURATION`")
	return cmd
}

// statsOfLog counts the calls in the audit log of a directory since a time. With an error it
// returns what could be read.
func statsOfLog(dir string, since time.Time) (statsReport, error) {
	s := statsReport{Since: since.UTC().Truncate(time.Second), Tools: []toolStat{}}
	var r stats.Recorder
	open := map[string]bool{}
	skipped, err := audit.Read(dir, since, func(e audit.Event) {
		switch e.Event {
		case "tool.call.started":
			open[e.ID] = true
		case "tool.call.completed", "tool.call.failed":
			delete(open, e.ID)
			r.Add(stats.Observation{
				Tool: e.Tool, Server: e.Server, Duration: time.Duration(e.Millis * float64(time.Millisecond)),
				Bytes: e.Bytes, Code: toolerr.Code(e.Code), Failed: e.IsError,
			})
		case "audit.lost":
			s.Lost += e.Records
		}
	})
	s.Skipped, s.Unfinished = skipped, len(open)
	s.Tools = toolStats(r.Rows())
	return s, err
}

// toolStats returns rows of package stats for the output, with times in ms.
func toolStats(rows []stats.Row) []toolStat {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	all := make([]toolStat, 0, len(rows))
	for _, row := range rows {
		all = append(all, toolStat{row.Tool, row.Server, row.Calls, row.Errors, ms(row.P50), ms(row.P99), row.Bytes})
	}
	return all
}

// printStats prints the statistics by tool and the load of running hosts.
func (p *program) printStats(s statsReport, since time.Duration) error {
	if len(s.Tools) == 0 {
		if err := p.printf("no calls within %v\n", since); err != nil {
			return err
		}
		return p.printHosts(s.Hosts)
	}
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "calls\terrors\tp50\tp99\toutput\t  tool\n") //nolint:errcheck // Flush tells
	took := func(ms float64) string { return textfmt.Duration(time.Duration(ms * float64(time.Millisecond))) }
	for _, t := range s.Tools {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t  %s\n", textfmt.Number(t.Calls), textfmt.Number(t.Errors), took(t.P50), took(t.P99), textfmt.Bytes(t.Bytes), printable(t.Tool)) //nolint:errcheck // Flush tells
	}
	if err := w.Flush(); err != nil {
		return withStatus(exitFailed, err)
	}
	if s.Unfinished+s.Lost+s.Skipped > 0 {
		p.logf("unfinished calls: %d; lost events: %d; unreadable lines: %d", s.Unfinished, s.Lost, s.Skipped)
	}
	return p.printHosts(s.Hosts)
}

// printHosts prints the load of the running hosts.
func (p *program) printHosts(hosts []hostStat) error {
	for _, h := range hosts {
		var running, waiting, calls int64
		for _, l := range h.Loads {
			running, waiting = running+int64(l.Running), waiting+int64(l.Waiting)
		}
		for _, t := range h.Tools {
			calls += t.Calls
		}
		many := "calls"
		if calls == 1 {
			many = "call"
		}
		err := p.printf("%s: %s %s so far, %s running, %s waiting; %s of memory, %s, %s\n", printable(liveHost{RunningHost: h.RunningHost}.String()),
			textfmt.Number(calls), many, textfmt.Number(running), textfmt.Number(waiting), textfmt.Bytes(int64(h.Process.Resident)),
			textfmt.Count(h.Process.Goroutines, "goroutine"), textfmt.Count(h.Process.Open, "descriptor"))
		if err != nil {
			return err
		}
	}
	return nil
}
