// Package auto looks for a model on this machine: at the ports that programs which
// serve models take (11434 Ollama, 8080 llama.cpp, 1234 LM Studio, 8000 vLLM), on
// loopback alone, all at once and within a moment. The first of them, in this order,
// that lists a model as OpenAI does is taken. A host of toolroom's is none of them:
// it would ask itself.
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

// Within limits the search.
const Within = 500 * time.Millisecond

// Server is the value of the header Server of toolroom's hosts.
const Server = "toolroom"

// errOwn is why a host of toolroom's lists no models.
var errOwn = toolerr.New(toolerr.NoModel, "a toolroom host answers there, which is not a model provider")

// Ports returns the searched ports in order.
func Ports() []int { return []int{11434, 8080, 1234, 8000} }

// Local looks at the ports, for as long as within.
func Local(ctx context.Context, within time.Duration, ports ...int) (lookup.Provider, bool) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	found := make([][]lookup.Model, len(ports))
	var all sync.WaitGroup
	for i, port := range ports {
		all.Go(func() { found[i] = look(ctx, port) })
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

func look(ctx context.Context, port int) []lookup.Model {
	models, err := List(ctx, lookup.Provider{Name: "local", BaseURL: "http://127.0.0.1:" + strconv.Itoa(port) + "/v1"})
	if err != nil {
		return nil
	}
	return models
}

// List asks a provider for its models. A host of toolroom's has none.
func List(ctx context.Context, p lookup.Provider) ([]lookup.Model, error) {
	if p.Kind != lookup.OpenAI && p.Kind != "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	header := http.Header{}
	for name, value := range p.Headers {
		header.Set(name, value.Reveal())
	}
	names, answered, err := openai.List(ctx, openai.Config{
		Config: endpoint.Config{Name: p.Name, BaseURL: p.BaseURL, Header: header, Key: p.Key.Reveal(), KeyEnv: p.KeyEnv, Retry: retry.Policy{Attempts: 1}},
	})
	if Own(answered) {
		return nil, errOwn
	}
	if err != nil {
		return nil, err
	}
	models := []lookup.Model{}
	for _, name := range names {
		if !embeds(name) {
			models = append(models, lookup.Model{Name: name})
		}
	}
	return models, nil
}

// Own reports whether an answer is one of a host of toolroom's.
func Own(header http.Header) bool {
	return header != nil && strings.HasPrefix(header.Get("Server"), Server)
}

// embeds reports whether a model only makes vectors, by its name: it answers nothing.
func embeds(name string) bool {
	name = strings.ToLower(name)
	return strings.Contains(name, "embed") || strings.Contains(name, "rerank")
}
