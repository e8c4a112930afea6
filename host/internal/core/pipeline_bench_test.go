package core

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/approve"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/policy"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/stagetest"
)

// BenchmarkStages measures what all stages together add to a call of 64 bytes:
// of a tool of a foreign server, whose arguments are validated, and of one of
// ours, which checks them itself. p50-ns is the median of single calls, the
// figure to compare with the hop's 150 µs.
func BenchmarkStages(b *testing.B) {
	ours := stagetest.Tool()
	ours.Validates, ours.OwnsDeadline, ours.MaxConcurrent = true, true, 64
	for name, tool := range map[string]*call.Tool{"foreign": stagetest.Tool(), "ours": ours} {
		b.Run(name, func(b *testing.B) {
			w, err := newPipeline(config.Config{State: b.TempDir(), Stages: config.Stages{Policy: policy.Config{
				Block: []string{"other__*"}, MaxTotalCalls: 1 << 30,
				Rules: []policy.Rule{{Tool: "srv__*", Args: map[string]string{"text": "forbidden*"}, Do: policy.Deny}},
			}}}, dependencies{approval: func(c approve.Config) *approve.Stage { return approve.New(c, &approve.Store{}, nil) }}, nil)
			require.NoError(b, err)
			defer w.close()
			res := stagetest.Text("0123456789012345678901234567890123456789012345678901")
			h := call.Chain(func(context.Context, *call.Request) (*call.Result, error) { return res, nil }, w.stages()...)
			params := stagetest.Request("a", `{"text":"0123456789012345678901234567890123456789012345678901"}`).Params
			took := make([]time.Duration, 0, 1<<20)
			b.ReportAllocs()
			for b.Loop() {
				begin := time.Now()
				req := call.Request{Tool: tool, Params: params, Caller: call.Caller{EntryPoint: "http", ID: "a"}}
				if _, err := h(b.Context(), &req); err != nil {
					b.Fatal(err)
				}
				if len(took) < cap(took) {
					took = append(took, time.Since(begin))
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2]), "p50-ns")
			b.ReportMetric(float64(took[len(took)*99/100]), "p99-ns")
		})
	}
}
