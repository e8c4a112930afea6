package core

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/alias"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/manifest"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/approve"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/limit"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/policy"
	"github.com/toolroom-mcp/toolroom/host/internal/store/backend"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A call that was approved and waits for its turn while its server is replaced by
// another is not made there: nobody was asked about that one.
func TestAnApprovedCallThatWaitsDoesNotMove(t *testing.T) {
	for _, name := range []string{"s__echo", "alias"} {
		state := t.TempDir()
		a, cfg := within(t, config.Config{
			State: state, Store: backend.Config{Dir: state},
			Stages: config.Stages{
				Approval: approve.Config{ClientOff: true}, Limit: limit.Config{Concurrent: 1},
				Policy: policy.Config{Rules: []policy.Rule{{Tool: name, Do: policy.Ask}}},
			},
			Declared: []manifest.Tool{led("alias", &alias.Config{Server: "s", Tool: "echo"})},
		}, "s")
		_, err := ask(t.Context(), a, name, `{}`)
		require.Equal(t, toolerr.PendingApproval, toolerr.CodeOf(err))
		all, err := a.Approvals().List(t.Context())
		require.NoError(t, err)
		_, err = a.Decide(t.Context(), all[0].ID, approve.Decision{Approve: true})
		require.NoError(t, err)

		busy, free := context.WithCancel(t.Context())
		defer free()
		go ask(busy, a, "s__sleep", `{"n":60000}`) //nolint:errcheck // it is ended
		load := func() (of limit.Load) {
			for _, one := range a.Loads() {
				if one.Server == "s" {
					of = one
				}
			}
			return of
		}
		require.Eventually(t, func() bool { return load().Running == 1 }, time.Minute, time.Millisecond)
		made := make(chan error, 1)
		go func() {
			_, err := ask(t.Context(), a, name, `{}`)
			made <- err
		}()
		require.Eventually(t, func() bool { return load().Waiting == 1 }, time.Minute, time.Millisecond)
		require.NoError(t, a.apply(t.Context(), moved(cfg, 0, "production")))
		free()
		err = <-made
		require.Equal(t, toolerr.Conflict, toolerr.CodeOf(err), "%s: %v", name, err)
		require.ErrorContains(t, err, "the configuration of "+name+" changed after the approval")
		_, err = ask(t.Context(), a, name, `{}`)
		require.Equal(t, toolerr.PendingApproval, toolerr.CodeOf(err), name)
		all, err = a.Approvals().List(t.Context())
		require.NoError(t, err)
		require.Len(t, all, 2)
		require.Contains(t, all[1].Where, "production")
	}
}
