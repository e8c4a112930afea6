package app_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/app"
	"github.com/toolroom-mcp/toolroom/host/config"
	"github.com/toolroom-mcp/toolroom/host/provider/registry"
)

// agentsIn reports whether dispatch_agent is served, and why not.
func agentsIn(t *testing.T, a *app.App) (served bool, why string) {
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
		models registry.Config
		served bool
	}{
		"nothing":        {registry.Config{}, false},
		"a key":          {registry.Config{Found: []registry.Provider{{Name: "openai", Kind: registry.OpenAI, Key: "k", Models: []registry.Model{{Name: "m"}}}}}, true},
		"no key for it":  {registry.Config{Providers: []registry.Provider{{Name: "anthropic", Kind: registry.Anthropic, KeyEnv: "ANTHROPIC_API_KEY"}}}, false},
		"an address":     {registry.Config{Providers: []registry.Provider{{Name: "lan", Kind: registry.OpenAI, BaseURL: "http://127.0.0.1:1/v1"}}}, true},
		"a scripted one": {registry.Config{Providers: []registry.Provider{{Name: "s", Kind: registry.Scripted, File: "/s.yaml"}}}, true},
		"chosen command": {aModel(), true},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := app.Open(config.Config{State: t.TempDir(), Models: c.models, Servers: []config.Server{agent()}})
			require.NoError(t, err)
			t.Cleanup(a.Close)
			if !c.served && a.Models().Local(t.Context()) {
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
