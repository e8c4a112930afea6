package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/host/internal/gateway"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/auto"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/endpoint"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/openai"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// api is one whose answer would be a model's.
type api struct{ t *testing.T }

func (api) Serves(string) bool                             { return true }
func (a api) ServeHTTP(http.ResponseWriter, *http.Request) { require.Fail(a.t, "a host asks itself") }
func (api) Refuse(w http.ResponseWriter, _ *http.Request, status int, message string) {
	http.Error(w, message, status)
}

// A host that is configured, or looks, for models does not take a host for one.
func TestAHostIsNoModel(t *testing.T) {
	var h *gateway.HTTPHandler
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, r) }))
	defer s.Close()
	h = open(t, fixtures()).HTTP(gateway.HTTPConfig{Hosts: []string{s.Listener.Addr().String()}, API: api{t}})
	cfg := openai.Config{Config: endpoint.Config{Name: "o", BaseURL: s.URL + "/v1"}, Model: "m"}
	_, err := openai.New(cfg).Ask(t.Context(), &llm.Request{}, nil)
	require.Equal(t, toolerr.AuthFailed, toolerr.CodeOf(err))
	require.ErrorContains(t, err, "cannot be the model of a host")
	_, header, err := openai.ListModels(t.Context(), cfg)
	require.Error(t, err)
	require.True(t, auto.IsToolroomHost(header))
}
