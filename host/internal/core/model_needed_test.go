package core_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/lookup"
)

// agentsIn reports whether dispatch_agent is served, and why not.
func agentsIn(t *testing.T, a *core.App) (served bool, why string) {
	t.Helper()
	for _, tool := range a.List(t.Context()) {
		served = served || tool.Name == "dispatch_agent"
	}
	for _, s := range a.Statuses(t.Context()) {
		if s.Name == "dispatch_agent" {
			why = s.Withheld
		}
	}
	return served, why
}

func TestAgentsAreServedWhereAModelCanBeFound(t *testing.T) {
	for name, c := range map[string]struct {
		models lookup.Config
		served bool
	}{
		"nothing":        {lookup.Config{}, false},
		"a key":          {lookup.Config{Found: []lookup.Provider{{Name: "openai", Kind: lookup.OpenAI, Key: "k", Models: []lookup.Model{{Name: "m"}}}}}, true},
		"no key for it":  {lookup.Config{Providers: []lookup.Provider{{Name: "anthropic", Kind: lookup.Anthropic, KeyEnv: "ANTHROPIC_API_KEY"}}}, false},
		"an address":     {lookup.Config{Providers: []lookup.Provider{{Name: "lan", Kind: lookup.OpenAI, BaseURL: "http://127.0.0.1:1/v1"}}}, true},
		"a scripted one": {lookup.Config{Providers: []lookup.Provider{{Name: "s", Kind: lookup.Scripted, File: "/s.yaml"}}}, true},
		"chosen command": {aModel(), true},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := core.Open(config.Config{State: t.TempDir(), Models: c.models, Servers: []config.Server{agent()}})
			require.NoError(t, err)
			t.Cleanup(a.Close)
			if !c.served && a.Models().HasLocal(t.Context()) {
				t.Skip("a model answers on this machine")
			}
			served, why := agentsIn(t, a)
			require.Equal(t, c.served, served)
			require.Equal(t, c.served, why == "", why)
			if !c.served {
				require.Contains(t, why, "its tools are not served: no model is configured")
			}
		})
	}
}
