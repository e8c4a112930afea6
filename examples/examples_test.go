package examples_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// forecast is the web service of manifests/forecast.yaml.
func forecast(w http.ResponseWriter, req *http.Request) {
	if req.Header.Get("X-Api-Key") != "sesame" {
		http.Error(w, `{"error":"who are you?"}`, http.StatusUnauthorized)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"city":%q,"unit":%q,"sky":"rain"}`, strings.TrimPrefix(req.URL.Path, "/v1/"), req.URL.Query().Get("unit")) //nolint:errcheck // the client has gone
}

func TestExamples(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(forecast))
	t.Cleanup(web.Close) // after the scripts, which run beside each other
	here, err := os.Getwd()
	require.NoError(t, err)
	bin := t.TempDir()
	for name, source := range map[string]string{"mcp-host": "./host", "mcp-wordcount": "./examples/wordcount"} {
		mcpkittest.CopyProgram(t, mcpkittest.Build(t, source), filepath.Join(bin, name))
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata", RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			for _, name := range []string{"XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME"} {
				env.Setenv(name, filepath.Join(env.WorkDir, strings.ToLower(name)))
			}
			env.Setenv("PATH", bin+string(filepath.ListSeparator)+env.Getenv("PATH"))
			env.Setenv("FORECAST_URL", web.URL)
			env.Setenv("SERVICE", web.URL)
			env.Setenv("FORECAST_KEY", "sesame")
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			env.Setenv("EXAMPLES", here)
			env.Cd = here
			return nil
		},
	})
}

func TestTheToolIsShort(t *testing.T) {
	text, err := os.ReadFile("wordcount/main.go")
	require.NoError(t, err)
	require.LessOrEqual(t, strings.Count(string(text), "\n"), 30)
}
