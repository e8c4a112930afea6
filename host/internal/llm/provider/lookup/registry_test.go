package lookup_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/lookup"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// stub is a model that is only looked at.
type stub struct{ info provider.Info }

func (s stub) Info() provider.Info { return s.info }
func (s stub) Ask(context.Context, *llm.Request, func(llm.Delta)) (*llm.Response, error) {
	return nil, errors.New("not asked")
}

// seen counts what a registry does.
type seen struct{ opened, listed, looked int }

func ways(s *seen, listed []string, local *lookup.Provider) lookup.Backend {
	return lookup.Backend{
		Open: func(p lookup.Provider, m lookup.Model) (provider.Model, error) {
			s.opened++
			return stub{p.Info(m)}, nil
		},
		List: func(_ context.Context, p lookup.Provider) (all []lookup.Model, err error) {
			s.listed++
			if listed == nil {
				return nil, errors.New("nobody answers at " + p.Name)
			}
			for _, name := range listed {
				all = append(all, lookup.Model{Name: name})
			}
			return all, nil
		},
		FindLocal: func(context.Context) (lookup.Provider, bool) {
			s.looked++
			if local == nil {
				return lookup.Provider{}, false
			}
			return *local, true
		},
	}
}

func names(t *testing.T, r *lookup.Finder) (all []string) {
	t.Helper()
	for _, info := range r.List(t.Context()) {
		all = append(all, info.Provider+":"+info.Name)
		m, err := r.Get(t.Context(), info.Name)
		require.NoError(t, err)
		require.Equal(t, info.Provider, m.Info().Provider, "a listed name leads to its model")
	}
	return all
}

func get(t *testing.T, r *lookup.Finder, name string) string {
	t.Helper()
	m, err := r.Get(t.Context(), name)
	if err != nil {
		require.Equal(t, toolerr.NoModel, toolerr.CodeOf(err))
		return err.Error()
	}
	return m.Info().Provider + ":" + m.Info().Name
}

func model(names ...string) (all []lookup.Model) {
	for _, name := range names {
		all = append(all, lookup.Model{Name: name})
	}
	return all
}

func TestNamesOfTheConfiguration(t *testing.T) {
	var s seen
	r := lookup.New(lookup.Config{
		Default: "b/m2",
		Providers: []lookup.Provider{
			{Name: "a", Kind: lookup.OpenAI, BaseURL: "http://x", Models: model("m1", "m2", "org/m3")},
			{Name: "b", Kind: lookup.OpenAI, BaseURL: "http://y", Models: model("m2", "m4")},
			{Name: "claude", Kind: lookup.Anthropic, Models: model("claude-x")},
			{Name: "tests", Kind: lookup.Scripted, File: "f"},
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
	require.Empty(t, r.DefaultNotice(t.Context()))
	require.Zero(t, s.looked)
}

func TestTheDefaultIsTheFirst(t *testing.T) {
	var s seen
	configured := []lookup.Provider{{Name: "a", Kind: lookup.OpenAI, BaseURL: "http://x"}, {Name: "b", Kind: lookup.OpenAI, Models: model("m")}}
	r := lookup.New(lookup.Config{Providers: configured, Found: []lookup.Provider{{Name: "openai", Kind: lookup.OpenAI, Why: "x", Models: model("g")}}}, ways(&s, []string{"l1", "l2"}, nil))
	require.Equal(t, "a:l1", get(t, r, ""))
	require.Equal(t, "a:l1", get(t, r, "a"))
	require.Equal(t, 1, s.listed, "what was listed is known for a while")
	require.Equal(t, []string{"a:l1", "a:l2", "b:m", "openai:g", "command:command"}, names(t, r))
	r = lookup.New(lookup.Config{Providers: configured}, ways(&s, nil, nil))
	require.Contains(t, get(t, r, ""), "provider a cannot list its models (nobody answers at a)", "another that is configured is not taken for it")
	found := []lookup.Provider{{Name: "openai", Kind: lookup.OpenAI, BaseURL: "http://x", Why: "OPENAI_API_KEY is set"}}
	r = lookup.New(lookup.Config{Found: found}, ways(&s, nil, nil))
	require.Equal(t, "command:command", get(t, r, ""))
	require.Contains(t, r.DefaultNotice(t.Context()), "provider openai cannot list its models (nobody answers at openai): give one as openai/NAME")
	require.NotContains(t, r.DefaultNotice(t.Context()), lookup.NoModel, "a key is set")
}

func TestWhatIsFound(t *testing.T) {
	env := map[string]string{"ANTHROPIC_API_KEY": " k ", "GOOGLE_API_KEY": "g", "GEMINI_MODEL": "gemini-x"}
	var s seen
	r := lookup.New(lookup.Config{Found: lookup.FromEnv(func(name string) string { return env[name] })}, ways(&s, nil, nil))
	require.Equal(t, "anthropic:claude-sonnet-4-5", get(t, r, ""))
	require.Equal(t, "gemini:gemini-x", get(t, r, "gemini-x"))
	require.Equal(t, "gemini:gemini-y", get(t, r, "gemini-y"))
	require.Equal(t, "the model is claude-sonnet-4-5 of anthropic: ANTHROPIC_API_KEY is set", r.DefaultNotice(t.Context()))
	require.Zero(t, s.looked)
	require.Zero(t, s.listed)
}

func TestEnvironment(t *testing.T) {
	one := func(env map[string]string) lookup.Provider {
		t.Helper()
		all := lookup.FromEnv(func(name string) string { return env[name] })
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
	require.Empty(t, lookup.FromEnv(func(name string) string { return map[string]string{"OPENAI_BASE_URL": "nonsense"}[name] }))
	require.Empty(t, lookup.FromEnv(func(string) string { return "" }))
}

func TestOnThisMachineAndThenCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s seen
		var local *lookup.Provider
		w := ways(&s, []string{"q", "r"}, nil)
		w.FindLocal = func(context.Context) (lookup.Provider, bool) {
			s.looked++
			if local == nil {
				return lookup.Provider{}, false
			}
			return *local, true
		}
		r := lookup.New(lookup.Config{}, w)
		require.Equal(t, "command:command", get(t, r, ""))
		require.Contains(t, r.DefaultNotice(t.Context()), "input lines are tool calls")
		require.Contains(t, get(t, r, "gpt-5"), "only command is available")
		require.Equal(t, 1, s.looked)
		local = &lookup.Provider{Name: "local", Kind: lookup.OpenAI, BaseURL: "http://127.0.0.1:1/v1", Why: "it answers at 127.0.0.1:1"}
		require.Equal(t, "command:command", get(t, r, ""))
		time.Sleep(2 * time.Minute)
		require.Equal(t, "local:q", get(t, r, ""))
		require.Equal(t, "local:r", get(t, r, "r"))
		require.Equal(t, "local:local/x", get(t, r, "local/x"))
		require.Equal(t, "the model is q of local: it answers at 127.0.0.1:1", r.DefaultNotice(t.Context()))
		require.Equal(t, []string{"local:q", "local:r", "command:command"}, names(t, r))
		require.Equal(t, 2, s.looked)
	})
}

func TestGivenUp(t *testing.T) {
	var s seen
	w := ways(&s, nil, nil)
	w.FindLocal = func(ctx context.Context) (lookup.Provider, bool) { <-ctx.Done(); return lookup.Provider{}, false }
	r := lookup.New(lookup.Config{}, w)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.Get(ctx, "x")
	require.ErrorIs(t, err, context.Canceled)
}

func TestWhatIsKnown(t *testing.T) {
	yes := false
	p := lookup.Provider{Name: "p", Kind: lookup.OpenAI}
	require.Equal(t, provider.Info{Name: "q", Provider: "p", Vendor: llm.OpenAI}, p.Info(lookup.Model{Name: "q"}))
	info := p.Info(lookup.Model{Name: "gpt-4o-mini", Window: 5, MaxOutput: 4, Price: provider.Price{Input: 1}, Images: &yes})
	require.Equal(t, provider.Info{Name: "gpt-4o-mini", Provider: "p", Vendor: llm.OpenAI, Window: 5, MaxOutput: 4, Price: provider.Price{Input: 1}, Family: "o200k"}, info)
}

func TestValidate(t *testing.T) {
	for says, p := range map[string]lookup.Provider{
		"providers.a/b.name":    {Name: "a/b", Kind: lookup.OpenAI},
		"kind: want one of":     {Name: "a", Kind: "x"},
		"file: a scripted":      {Name: "a", Kind: lookup.Scripted},
		"file: only":            {Name: "a", Kind: lookup.OpenAI, File: "f"},
		"base_url: want":        {Name: "a", Kind: lookup.OpenAI, BaseURL: "ftp://x"},
		"base_url: contains":    {Name: "a", Kind: lookup.OpenAI, BaseURL: "https://u:p@h/v1"},
		"project: region":       {Name: "a", Kind: lookup.Gemini, Region: "x"},
		"project: only":         {Name: "a", Kind: lookup.OpenAI, Project: "x"},
		"project: Vertex AI":    {Name: "a", Kind: lookup.Gemini, Project: "x"},
		"project: invalid":      {Name: "a", Kind: lookup.Gemini, Project: "x/y", Region: "r", TokenCommand: []string{"t"}},
		"headers: invalid":      {Name: "a", Kind: lookup.OpenAI, Headers: map[string]secret.Text{"a": "b\r\nc"}},
		"models[0]: name":       {Name: "a", Kind: lookup.OpenAI, Models: model("")},
		"models[1]: m appears":  {Name: "a", Kind: lookup.OpenAI, Models: model("m", "m")},
		"models[0]: max_output": {Name: "a", Kind: lookup.OpenAI, Models: []lookup.Model{{Name: "m", Window: 1, MaxOutput: 2}}},
		"models[0]: a number":   {Name: "a", Kind: lookup.OpenAI, Models: []lookup.Model{{Name: "m", Window: -1}}},
	} {
		err := lookup.Config{Providers: []lookup.Provider{p}}.Validate()
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "u:p")
	}
	twice := lookup.Provider{Name: "a", Kind: lookup.Command}
	require.ErrorContains(t, lookup.Config{Providers: []lookup.Provider{twice, twice}}.Validate(), "twice")
	require.NoError(t, lookup.Config{Providers: []lookup.Provider{twice}}.Validate())
	listed := lookup.Provider{Name: "b", Kind: lookup.OpenAI, Models: model("m")}
	for name, ok := range map[string]bool{"": true, "auto": true, "command": true, "a": true, "m": true, "b/x": true, "gpt-7": true, "x": false, "c/m": false} {
		err := lookup.Config{Default: name, Providers: []lookup.Provider{twice, listed}}.Validate()
		require.Equal(t, ok, err == nil, "%s: %v", name, err)
	}
	listed.Models = nil
	require.NoError(t, lookup.Config{Default: "x", Providers: []lookup.Provider{listed}}.Validate(), "it may list it")
}
