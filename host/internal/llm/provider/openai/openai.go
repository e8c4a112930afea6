// Package openai requests answers from models through the chat completions API, of
// OpenAI or of any compatible server: Ollama, llama.cpp, vLLM, LM Studio, OpenRouter
// and so on. It accepts their deviations: calls without IDs or indexes, arguments as
// objects, reasoning under either name, usage at the end or never, a stream that ends
// without [DONE], a complete answer instead of a stream. It leaves out parameters that
// a server has refused by name.
package openai

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/endpoint"
	wire "github.com/toolroom-mcp/toolroom/host/internal/llm/wire/openai"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/schema"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// BaseURL is the base URL of OpenAI's API.
const BaseURL = "https://api.openai.com/v1"

// Config holds a model's address and properties.
type Config struct {
	endpoint.Config                 // an empty BaseURL means Address
	Model           string          // the server's name of the model
	Info            provider.Info   // properties of the model that the host reports
	Strict          bool            // enforce the schemas of all tools (strict mode)
	Extra           json.RawMessage // members of every request; nil: none
}

// Model is a model behind the chat completions API.
type Model struct {
	cfg     Config
	client  *endpoint.Client
	options wire.Options

	// Parameters that the server has refused, and that are no longer sent.
	noStreamOptions, newMaxTokens, oldMaxTokens atomic.Bool
}

// New returns a model. It sends no request.
func New(cfg Config) *Model {
	m := &Model{cfg: cfg, client: newClient(&cfg)}
	host := hostOf(cfg.BaseURL)
	m.options = wire.Options{
		Strict:       cfg.Strict,
		OldMaxTokens: host != "api.openai.com" && !strings.HasSuffix(host, ".openai.azure.com"),
		Extensions:   host == "generativelanguage.googleapis.com",
	}
	return m
}

// hostOf returns the host of an address in lower case, "" if it is malformed.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// newClient returns a client for the endpoint, and sets an empty address.
func newClient(cfg *Config) *endpoint.Client {
	if cfg.BaseURL == "" {
		cfg.BaseURL = BaseURL
	}
	if cfg.Key != "" && cfg.Header.Get("Authorization") == "" {
		cfg.SetDefaultHeader("Authorization", "Bearer "+cfg.Key)
		if strings.HasSuffix(hostOf(cfg.BaseURL), ".openai.azure.com") {
			cfg.Header.Set("Api-Key", cfg.Key)
		}
	}
	return endpoint.New(cfg.Config)
}

// Info returns information about the model.
func (m *Model) Info() provider.Info { return m.cfg.Info }

// Ask implements provider.Model: it sends a request to the model and waits for the answer.
// If the server refuses a part of the request's format, it sends the request in another
// form, at most three times.
func (m *Model) Ask(ctx context.Context, r *llm.Request, on func(llm.Delta)) (*llm.Response, error) {
	names := llm.NewNameMap(wire.NameRule(), r.Tools)
	strict := endpoint.NewStrictSchemas(r.Tools, m.cfg.Strict, schema.OpenAILimits())
	for range 3 {
		a := &answer{}
		res, err := m.client.Post(ctx, "/chat/completions", m.requestBody(r, names, on != nil), func() endpoint.Answer {
			a = newAnswer(endpoint.NewPieces(on, strict), names)
			return a
		})
		if !toolerr.Is(err, toolerr.InvalidInput) || a.HasBegun() || !m.recordRefusal(err.Error()) {
			return res, err
		}
	}
	return nil, toolerr.New(toolerr.InvalidInput, "%s refuses the request in every form", m.cfg.Name)
}

// requestBody returns the body of a chat completion for a request, with Config.Extra. The
// vendor gets the tools under the names in names. What the format cannot express is
// left out.
func (m *Model) requestBody(r *llm.Request, names *llm.NameMap, stream bool) []byte {
	asked := *r
	asked.Model, asked.Stream, asked.StreamUsage = m.cfg.Model, stream, stream && !m.noStreamOptions.Load()
	if len(asked.Tools) == 0 {
		asked.Choice, asked.Parallel = nil, nil
	}
	o := m.options
	o.Names = names
	switch {
	case m.newMaxTokens.Load():
		o.OldMaxTokens = false
	case m.oldMaxTokens.Load():
		o.OldMaxTokens = true
	}
	body, _ := wire.EncodeRequest(&asked, o)
	endpoint.AddExtra(body, m.cfg.Extra)
	return body.JSON()
}

// recordRefusal notes which parameter a server refused, from its message. It reports
// whether the request can be written in another way that was not tried yet.
func (m *Model) recordRefusal(refusal string) (canRetry bool) {
	switch {
	case strings.Contains(refusal, "stream_options") || strings.Contains(refusal, "include_usage"):
		return m.noStreamOptions.CompareAndSwap(false, true)
	case !strings.Contains(refusal, "max_tokens") && !strings.Contains(refusal, "max_completion_tokens"):
		return false
	case m.options.OldMaxTokens && strings.Contains(refusal, "max_completion_tokens"):
		return m.newMaxTokens.CompareAndSwap(false, true)
	case !m.options.OldMaxTokens && strings.Contains(refusal, "max_completion_tokens") && !strings.Contains(refusal, "not supported with this model"):
		return m.oldMaxTokens.CompareAndSwap(false, true)
	}
	return false
}

// ListModels returns the names of the server's models in its order, at most maxListed,
// and the header of the response, also together with an error.
func ListModels(ctx context.Context, cfg Config) ([]string, http.Header, error) {
	body, header, err := newClient(&cfg).Get(ctx, "/models")
	if err != nil {
		return nil, header, err
	}
	v, err := tree.Parse(body)
	if err != nil || !v.Get("data").Is(tree.Array) {
		return nil, header, toolerr.New(toolerr.ModelError, "%s does not list its models as OpenAI does", cfg.Name)
	}
	names := []string{}
	for _, item := range v.Get("data").Items {
		if name := item.Get("id").Str(); name != "" && len(names) < maxListed {
			names = append(names, name)
		}
	}
	return names, header, nil
}

// maxListed bounds the models that ListModels returns.
const maxListed = 1000
