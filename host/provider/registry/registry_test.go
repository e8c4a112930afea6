package registry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/host/config/secret"
	"github.com/toolroom-mcp/toolroom/host/convert"
	"github.com/toolroom-mcp/toolroom/host/provider"
	"github.com/toolroom-mcp/toolroom/host/provider/registry"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// stub is a model that is only looked at.
type stub struct{ info provider.Info }

func (s stub) Info() provider.Info { return s.info }
func (s stub) Ask(context.Context, *convert.Request, func(convert.Delta)) (*convert.Response, error) {
	return nil, errors.New("not asked")
}

// seen counts what a registry does.
type seen struct{ opened, listed, looked int }

func ways(s *seen, listed []string, local *registry.Provider) registry.Ways {
	return registry.Ways{
		Open: func(p registry.Provider, m registry.Model) (provider.Model, error) {
			s.opened++
			return stub{p.Info(m)}, nil
		},
		List: func(_ context.Context, p registry.Provider) (all []registry.Model, err error) {
			s.listed++
			if listed == nil {
				return nil, errors.New("nobody answers at " + p.Name)
			}
			for _, name := range listed {
				all = append(all, registry.Model{Name: name})
			}
			return all, nil
		},
		Local: func(context.Context) (registry.Provider, bool) {
			s.looked++
			if local == nil {
				return registry.Provider{}, false
			}
			return *local, true
		},
	}
}

func names(t *testing.T, r *registry.Registry) (all []string) {
	t.Helper()
	for _, info := range r.List(t.Context()) {
		all = append(all, info.Provider+":"+info.Name)
		m, err := r.Get(t.Context(), info.Name)
		require.NoError(t, err)
		require.Equal(t, info.Provider, m.Info().Provider, "a listed name leads to its model")
	}
	return all
}

func get(t *testing.T, r *registry.Registry, name string) string {
	t.Helper()
	m, err := r.Get(t.Context(), name)
	if err != nil {
		require.Equal(t, toolerr.NoModel, toolerr.CodeOf(err))
		return err.Error()
	}
	return m.Info().Provider + ":" + m.Info().Name
}

func model(names ...string) (all []registry.Model) {
	for _, name := range names {
		all = append(all, registry.Model{Name: name})
	}
	return all
}

func TestNamesOfTheConfiguration(t *testing.T) {
	var s seen
	r := registry.New(registry.Config{
		Default: "b/m2",
		Providers: []registry.Provider{
			{Name: "a", Kind: registry.OpenAI, BaseURL: "http://x", Models: model("m1", "m2", "org/m3")},
			{Name: "b", Kind: registry.OpenAI, BaseURL: "http://y", Models: model("m2", "m4")},
			{Name: "claude", Kind: registry.Anthropic, Models: model("claude-x")},
			{Name: "tests", Kind: registry.Scripted, File: "f"},
		},
	}, ways(&s, nil, nil))
	require.Zero(t, s, "nothing is done before a model is asked for")
	require.Equal(t, []string{"a:m1", "a:m2", "a:org/m3", "b:b/m2", "b:m4", "claude:claude-x", "tests:tests", "command:command"}, names(t, r))
	for name, want := range map[string]string{
		"": "b:b/m2", "auto": "b:b/m2", "default": "b:b/m2", "m1": "a:m1", "m2": "a:m2", "b/m2": "b:b/m2", "org/m3": "a:org/m3", "a": "a:m1", "b/unlisted": "b:b/unlisted",
		"claude-other": "claude:claude-other", "tests": "tests:tests", "command": "command:command",
	} {
		require.Equal(t, want, get(t, r, name), name)
	}
	require.Contains(t, get(t, r, "gpt-9"), `no model "gpt-9"; available: m1, m2`)
	require.Empty(t, r.Notice(t.Context()))
	require.Zero(t, s.looked)
}

func TestTheDefaultIsTheFirst(t *testing.T) {
	var s seen
	configured := []registry.Provider{{Name: "a", Kind: registry.OpenAI, BaseURL: "http://x"}, {Name: "b", Kind: registry.OpenAI, Models: model("m")}}
	r := registry.New(registry.Config{Providers: configured, Found: []registry.Provider{{Name: "openai", Kind: registry.OpenAI, Why: "x", Models: model("g")}}}, ways(&s, []string{"l1", "l2"}, nil))
	require.Equal(t, "a:l1", get(t, r, ""))
	require.Equal(t, "a:l1", get(t, r, "a"))
	require.Equal(t, 1, s.listed, "what was listed is known for a while")
	require.Equal(t, []string{"a:l1", "a:l2", "b:m", "openai:g", "command:command"}, names(t, r))
	r = registry.New(registry.Config{Providers: configured}, ways(&s, nil, nil))
	require.Contains(t, get(t, r, ""), "provider a cannot list its models (nobody answers at a)", "another that is configured is not taken for it")
}

func TestWhatIsFound(t *testing.T) {
	env := map[string]string{"ANTHROPIC_API_KEY": " k ", "GOOGLE_API_KEY": "g", "GEMINI_MODEL": "gemini-x"}
	var s seen
	r := registry.New(registry.Config{Found: registry.FromEnv(func(name string) string { return env[name] })}, ways(&s, nil, nil))
	require.Equal(t, "anthropic:claude-sonnet-4-5", get(t, r, ""))
	require.Equal(t, "gemini:gemini-x", get(t, r, "gemini-x"))
	require.Equal(t, "gemini:gemini-y", get(t, r, "gemini-y"))
	require.Equal(t, "the model is claude-sonnet-4-5 of anthropic: ANTHROPIC_API_KEY is set", r.Notice(t.Context()))
	require.Zero(t, s.looked)
	require.Zero(t, s.listed)
}

func TestEnvironment(t *testing.T) {
	one := func(env map[string]string) registry.Provider {
		t.Helper()
		all := registry.FromEnv(func(name string) string { return env[name] })
		require.Len(t, all, 1)
		return all[0]
	}
	p := one(map[string]string{"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://h/v1/", "OPENAI_MODEL": "m"})
	require.Equal(t, "http://h/v1", p.BaseURL)
	require.Equal(t, model("m"), p.Models)
	require.Equal(t, "k", p.Key.Reveal())
	p = one(map[string]string{"OPENAI_BASE_URL": "http://h/v1"})
	require.Empty(t, p.Models, "it is asked")
	p = one(map[string]string{"GEMINI_API_KEY": "a", "GOOGLE_API_KEY": "b"})
	require.Equal(t, "a", p.Key.Reveal())
	p = one(map[string]string{"GOOGLE_GENAI_USE_VERTEXAI": "true", "GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "europe-west4"})
	require.Equal(t, "p europe-west4", p.Project+" "+p.Region)
	require.Empty(t, registry.FromEnv(func(name string) string { return map[string]string{"OPENAI_BASE_URL": "nonsense"}[name] }))
	require.Empty(t, registry.FromEnv(func(string) string { return "" }))
}

func TestOnThisMachineAndThenCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s seen
		var local *registry.Provider
		w := ways(&s, []string{"q", "r"}, nil)
		w.Local = func(context.Context) (registry.Provider, bool) {
			s.looked++
			if local == nil {
				return registry.Provider{}, false
			}
			return *local, true
		}
		r := registry.New(registry.Config{}, w)
		require.Equal(t, "command:command", get(t, r, ""))
		require.Contains(t, r.Notice(t.Context()), "input lines are tool calls")
		require.Contains(t, get(t, r, "gpt-5"), "only command is available")
		require.Equal(t, 1, s.looked)
		local = &registry.Provider{Name: "local", Kind: registry.OpenAI, BaseURL: "http://127.0.0.1:1/v1", Why: "it answers at 127.0.0.1:1"}
		require.Equal(t, "command:command", get(t, r, ""))
		time.Sleep(2 * time.Minute)
		require.Equal(t, "local:q", get(t, r, ""))
		require.Equal(t, "local:r", get(t, r, "r"))
		require.Equal(t, "local:local/x", get(t, r, "local/x"))
		require.Equal(t, "the model is q of local: it answers at 127.0.0.1:1", r.Notice(t.Context()))
		require.Equal(t, []string{"local:q", "local:r", "command:command"}, names(t, r))
		require.Equal(t, 2, s.looked)
	})
}

func TestGivenUp(t *testing.T) {
	var s seen
	w := ways(&s, nil, nil)
	w.Local = func(ctx context.Context) (registry.Provider, bool) { <-ctx.Done(); return registry.Provider{}, false }
	r := registry.New(registry.Config{}, w)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.Get(ctx, "x")
	require.ErrorIs(t, err, context.Canceled)
}

func TestWhatIsKnown(t *testing.T) {
	yes := false
	p := registry.Provider{Name: "p", Kind: registry.OpenAI}
	require.Equal(t, provider.Info{Name: "q", Provider: "p", Vendor: convert.OpenAI}, p.Info(registry.Model{Name: "q"}))
	info := p.Info(registry.Model{Name: "gpt-4o-mini", Window: 5, MaxOutput: 4, Price: provider.Price{Input: 1}, Images: &yes})
	require.Equal(t, provider.Info{Name: "gpt-4o-mini", Provider: "p", Vendor: convert.OpenAI, Window: 5, MaxOutput: 4, Price: provider.Price{Input: 1}, Family: "o200k"}, info)
}

func TestValidate(t *testing.T) {
	for says, p := range map[string]registry.Provider{
		"providers.a/b.name":    {Name: "a/b", Kind: registry.OpenAI},
		"kind: want one of":     {Name: "a", Kind: "x"},
		"file: a scripted":      {Name: "a", Kind: registry.Scripted},
		"file: only":            {Name: "a", Kind: registry.OpenAI, File: "f"},
		"base_url: want":        {Name: "a", Kind: registry.OpenAI, BaseURL: "ftp://x"},
		"base_url: contains":    {Name: "a", Kind: registry.OpenAI, BaseURL: "https://u:p@h/v1"},
		"project: region":       {Name: "a", Kind: registry.Gemini, Region: "x"},
		"project: only":         {Name: "a", Kind: registry.OpenAI, Project: "x"},
		"project: Vertex AI":    {Name: "a", Kind: registry.Gemini, Project: "x"},
		"project: invalid":      {Name: "a", Kind: registry.Gemini, Project: "x/y", Region: "r", TokenCommand: []string{"t"}},
		"headers: invalid":      {Name: "a", Kind: registry.OpenAI, Headers: map[string]secret.Text{"a": "b\r\nc"}},
		"models[0]: name":       {Name: "a", Kind: registry.OpenAI, Models: model("")},
		"models[1]: m appears":  {Name: "a", Kind: registry.OpenAI, Models: model("m", "m")},
		"models[0]: max_output": {Name: "a", Kind: registry.OpenAI, Models: []registry.Model{{Name: "m", Window: 1, MaxOutput: 2}}},
		"models[0]: a number":   {Name: "a", Kind: registry.OpenAI, Models: []registry.Model{{Name: "m", Window: -1}}},
	} {
		err := registry.Config{Providers: []registry.Provider{p}}.Validate()
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "u:p")
	}
	twice := registry.Provider{Name: "a", Kind: registry.Command}
	require.ErrorContains(t, registry.Config{Providers: []registry.Provider{twice, twice}}.Validate(), "twice")
	require.NoError(t, registry.Config{Providers: []registry.Provider{twice}}.Validate())
	listed := registry.Provider{Name: "b", Kind: registry.OpenAI, Models: model("m")}
	for name, ok := range map[string]bool{"": true, "auto": true, "command": true, "a": true, "m": true, "b/x": true, "gpt-7": true, "x": false, "c/m": false} {
		err := registry.Config{Default: name, Providers: []registry.Provider{twice, listed}}.Validate()
		require.Equal(t, ok, err == nil, "%s: %v", name, err)
	}
	listed.Models = nil
	require.NoError(t, registry.Config{Default: "x", Providers: []registry.Provider{listed}}.Validate(), "it may list it")
}
