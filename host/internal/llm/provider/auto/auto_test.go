package auto_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/auto"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/lookup"
)

// at serves a list of models, and returns its port.
func at(t *testing.T, server, list string) int {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if server != "" {
			w.Header().Set("Server", server)
		}
		if r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		io.WriteString(w, list) //nolint:errcheck // the test sees
	}))
	t.Cleanup(s.Close)
	return s.Listener.Addr().(*net.TCPAddr).Port
}

func TestTheFirstThatListsAModel(t *testing.T) {
	own := at(t, "toolroom", `{"data":[{"id":"own"}]}`)
	other := at(t, "nginx", "<html>")
	empty := at(t, "", `{"data":[]}`)
	vectors := at(t, "", `{"data":[{"id":"nomic-embed-text"}]}`)
	good := at(t, "uvicorn", `{"data":[{"id":"nomic-embed-text"},{"id":"qwen3:8b"}]}`)
	later := at(t, "", `{"data":[{"id":"other"}]}`)
	p, ok := auto.FindLocal(t.Context(), time.Minute, own, other, empty, vectors, good, later)
	require.True(t, ok)
	require.Equal(t, lookup.OpenAI, p.Kind)
	require.Equal(t, []lookup.Model{{Name: "qwen3:8b"}}, p.Models)
	require.Contains(t, p.Why, "it answers at 127.0.0.1:")
	_, ok = auto.FindLocal(t.Context(), time.Minute, own, other)
	require.False(t, ok)
}

func TestAProviderThatIsAHost(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Server", "toolroom")
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer s.Close()
	_, err := auto.ListModels(t.Context(), lookup.Provider{Name: "a", Kind: lookup.OpenAI, BaseURL: s.URL})
	require.ErrorContains(t, err, "a toolroom host answers there")
}
