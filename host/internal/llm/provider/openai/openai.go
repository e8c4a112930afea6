// Package openai asks models through the chat completions API, OpenAI's own or that
// of any compatible endpoint: Ollama, llama.cpp, vLLM, LM Studio, OpenRouter and so
// on. What they do otherwise is taken as it is meant: calls without ids or indices,
// arguments that are objects, reasoning under either name, usage at the end or never,
// a stream that ends without [DONE], an answer as a whole where a stream was asked
// for; and parameters that one refuses by name are left out.
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

// Address is OpenAI's own.
const Address = "https://api.openai.com/v1"

// Config is a model and where it is.
type Config struct {
	endpoint.Config                 // BaseURL "": Address
	Model           string          // as the endpoint names it
	Info            provider.Info   //
	Strict          bool            // hold the model to the schemas of all tools
	Extra           json.RawMessage // members of every request; nil: none
}

// Model is one.
type Model struct {
	cfg     Config
	client  *endpoint.Client
	options wire.Options

	// What the endpoint has refused, and is not sent again.
	noStreamOptions, newMaxTokens, oldMaxTokens atomic.Bool
}

// New makes a model. It asks nobody.
func New(cfg Config) *Model {
	m := &Model{cfg: cfg, client: client(&cfg)}
	host := hostOf(cfg.BaseURL)
	m.options = wire.Options{
		Strict:       cfg.Strict,
		OldMaxTokens: host != "api.openai.com" && !strings.HasSuffix(host, ".openai.azure.com"),
		Extensions:   host == "generativelanguage.googleapis.com",
	}
	return m
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}

// client makes the endpoint's, and fills in the address.
func client(cfg *Config) *endpoint.Client {
	if cfg.BaseURL == "" {
		cfg.BaseURL = Address
	}
	if cfg.Key != "" && cfg.Header.Get("Authorization") == "" {
		cfg.Default("Authorization", "Bearer "+cfg.Key)
		if strings.HasSuffix(hostOf(cfg.BaseURL), ".openai.azure.com") {
			cfg.Header.Set("Api-Key", cfg.Key)
		}
	}
	return endpoint.New(cfg.Config)
}

// Info returns information about the model.
func (m *Model) Info() provider.Info { return m.cfg.Info }

// Ask asks it.
func (m *Model) Ask(ctx context.Context, r *llm.Request, on func(llm.Delta)) (*llm.Response, error) {
	names := llm.NewNames(wire.Rule(), r.Tools)
	strict := endpoint.StrictOf(r.Tools, m.cfg.Strict, schema.HeldByOpenAI())
	for range 3 {
		a := &answer{}
		res, err := m.client.Post(ctx, "/chat/completions", m.body(r, names, on != nil), func() endpoint.Answer {
			a = newAnswer(endpoint.NewPieces(on, strict), names)
			return a
		})
		if !toolerr.Is(err, toolerr.InvalidInput) || a.Begun() || !m.learn(err.Error()) {
			return res, err
		}
	}
	return nil, toolerr.New(toolerr.InvalidInput, "%s refuses the request in every form", m.cfg.Name)
}

// body is a request.
func (m *Model) body(r *llm.Request, names *llm.Names, stream bool) []byte {
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
	endpoint.Merge(body, m.cfg.Extra)
	return body.JSON()
}

// learn notes what a refusal is about, and reports whether there is another way to
// write it that was not tried before.
func (m *Model) learn(refusal string) bool {
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

// List returns the models of an endpoint in its order, and the header of the answer,
// also together with an error.
func List(ctx context.Context, cfg Config) ([]string, http.Header, error) {
	body, header, err := client(&cfg).Get(ctx, "/models")
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

// maxListed bounds what is taken of a list of models.
const maxListed = 1000
