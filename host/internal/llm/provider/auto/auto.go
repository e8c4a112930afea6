// Package auto finds a model server on this machine. It asks the default ports of
// model servers (11434 Ollama, 8080 llama.cpp, 1234 LM Studio, 8000 vLLM) at the same
// time, only on loopback, and for half a second at most. The first server in this
// order that lists a model in OpenAI's format is used. A toolroom host is skipped,
// because it would call itself.
package auto

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/endpoint"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/lookup"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/openai"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/retry"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// MaxSearchTime limits the search.
const MaxSearchTime = 500 * time.Millisecond

// ServerHeader is the value of the header Server in answers of a toolroom host.
const ServerHeader = "toolroom"

// errToolroomHost is the error for a toolroom host, which lists no models.
var errToolroomHost = toolerr.New(toolerr.NoModel, "a toolroom host answers there, which is not a model provider")

// Ports returns the searched ports in order.
func Ports() []int { return []int{11434, 8080, 1234, 8000} }

// FindLocal searches the ports of this machine for a model server and returns the first
// one, in the order of ports, that lists a model. It returns false if no server does
// within the time limit.
func FindLocal(ctx context.Context, within time.Duration, ports ...int) (lookup.Provider, bool) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	found := make([][]lookup.Model, len(ports))
	var all sync.WaitGroup
	for i, port := range ports {
		all.Go(func() { found[i] = requestModels(ctx, port) })
	}
	all.Wait()
	for i, models := range found {
		if len(models) > 0 {
			at := "127.0.0.1:" + strconv.Itoa(ports[i])
			return lookup.Provider{Name: "local", Kind: lookup.OpenAI, BaseURL: "http://" + at + "/v1", Why: "it answers at " + at, Models: models}, true
		}
	}
	return lookup.Provider{}, false
}

// requestModels returns the models of a server at a port of this machine; nil if none
// answers.
func requestModels(ctx context.Context, port int) []lookup.Model {
	models, err := ListModels(ctx, lookup.Provider{Name: "local", BaseURL: "http://127.0.0.1:" + strconv.Itoa(port) + "/v1"})
	if err != nil {
		return nil
	}
	return models
}

// ListModels requests the provider's list of models, without those that only compute
// embeddings. It returns nil for a provider that is not OpenAI-compatible, and an error
// for a toolroom host.
func ListModels(ctx context.Context, p lookup.Provider) ([]lookup.Model, error) {
	if p.Kind != lookup.OpenAI && p.Kind != "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	header := http.Header{}
	for name, value := range p.Headers {
		header.Set(name, value.Reveal())
	}
	names, answered, err := openai.ListModels(ctx, openai.Config{
		Config: endpoint.Config{Name: p.Name, BaseURL: p.BaseURL, Header: header, Key: p.Key.Reveal(), KeyEnv: p.KeyEnv, Retry: retry.Policy{Attempts: 1}},
	})
	if IsToolroomHost(answered) {
		return nil, errToolroomHost
	}
	if err != nil {
		return nil, err
	}
	models := []lookup.Model{}
	for _, name := range names {
		if !isEmbeddingModel(name) {
			models = append(models, lookup.Model{Name: name})
		}
	}
	return models, nil
}

// IsToolroomHost reports whether the header belongs to an answer of a toolroom host.
func IsToolroomHost(header http.Header) bool {
	return header != nil && strings.HasPrefix(header.Get("Server"), ServerHeader)
}

// isEmbeddingModel reports, by its name, whether a model only computes embeddings and
// cannot answer.
func isEmbeddingModel(name string) bool {
	name = strings.ToLower(name)
	return strings.Contains(name, "embed") || strings.Contains(name, "rerank")
}
