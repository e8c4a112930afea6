package core_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func TestModelsOfAConfiguration(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "toolroom.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
models:
  providers:
    tests: {kind: scripted, file: answers.yaml}
    typed: {kind: command}
`), 0o600))
	cfg, err := config.Load(config.Flags{Config: file, State: dir}, dir, "", func(string) string { return "" }, nil)
	require.NoError(t, err)
	a, err := core.Open(cfg)
	require.NoError(t, err)
	defer a.Close()

	_, err = a.Models().Default(t.Context())
	require.Equal(t, toolerr.NoModel, toolerr.CodeOf(err), "the file is not there yet")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "answers.yaml"), []byte("answers: [{text: hello}]"), 0o600))
	m, err := a.Models().Default(t.Context())
	require.NoError(t, err)
	require.Equal(t, provider.Info{Name: "tests", Provider: "tests"}, m.Info())
	res, err := m.Ask(t.Context(), &llm.Request{}, nil)
	require.NoError(t, err)
	require.Equal(t, "hello", provider.TextOf(res.Parts))
	m, err = a.Models().Get(t.Context(), "typed")
	require.NoError(t, err)
	require.Equal(t, "typed", m.Info().Provider)
}

func TestWhatIsWrongWithModels(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "toolroom.yaml")
	for text, says := range map[string]string{
		"models: {default: [a]}":                                                                   file + ":1: models.default: want a string",
		"models: {provider: {}}":                                                                   "models.provider: unknown; did you mean providers?",
		"models: {providers: {a: {kind: open}}}":                                                   "models.providers.a.kind: want one of openai",
		"models: {providers: {a: {api_key: x}}}":                                                   "models.providers.a.api_key: unknown",
		"models: {providers: {a: {base_url: 'ftp://h'}}}":                                          "models: providers.a.base_url: want an address",
		"models: {providers: {a: {base_url: 'http://h', headers: {A: $NO}}}}":                      "models: providers.a.headers: A: ",
		"models: {providers: {a: {kind: scripted}}}":                                               "models: providers.a.file: a scripted model needs",
		"models: {providers: {a: {models: [{window: 1}]}}}":                                        "models: providers.a.models[0]: name is missing",
		"models: {providers: {a: {models: [{name: m, window: 0}]}}}":                               "models.providers.a.models[0].window: want a whole number",
		"models: {providers: {a: {models: [{name: m, prices: {in: 1}}]}}}":                         "models.providers.a.models[0].prices.in: unknown",
		"models: {providers: {a: {project: p, region: r, token_command: [no-such-program-here]}}}": "token_command",
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := config.Load(config.Flags{Config: file, State: dir}, dir, "", func(string) string { return "" }, nil)
		require.ErrorContains(t, err, says, text)
	}
}
