// Package anthropic requests answers from models through Anthropic's Messages API.
// Thinking keeps its signature, and blocks that only Anthropic understands (redacted
// thinking, calls and results of its own tools) are kept unchanged. Status 529 means
// RATE_LIMITED, as 429 does.
package anthropic

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/endpoint"
	wire "github.com/toolroom-mcp/toolroom/host/internal/llm/wire/anthropic"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/schema"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// BaseURL is the base URL of Anthropic's API.
const BaseURL = "https://api.anthropic.com"

// maxTokens is the default limit of an answer, if the model permits it. It is enough
// for most answers, and small enough for Anthropic to permit a request without
// streaming.
const maxTokens = 8192

// Config holds a model's address and properties.
type Config struct {
	endpoint.Config                 // an empty BaseURL means Address
	Model           string          // Anthropic's name of the model
	Info            provider.Info   //
	Strict          bool            // enforce the schemas of all tools (strict mode)
	Extra           json.RawMessage // members of every request, such as thinking; nil: none
}

// Model is a model behind the Messages API.
type Model struct {
	cfg    Config
	client *endpoint.Client
}

// New returns a model. It sends no request.
func New(cfg Config) *Model {
	if cfg.BaseURL == "" {
		cfg.BaseURL = BaseURL
	}
	cfg.BaseURL = strings.TrimSuffix(cfg.BaseURL, "/v1")
	cfg.SetDefaultHeader("X-Api-Key", cfg.Key)
	cfg.SetDefaultHeader("Anthropic-Version", "2023-06-01")
	return &Model{cfg: cfg, client: endpoint.New(cfg.Config)}
}

// Info returns information about the model.
func (m *Model) Info() provider.Info { return m.cfg.Info }

// Ask implements provider.Model: it sends a request to the model and waits for the answer.
func (m *Model) Ask(ctx context.Context, r *llm.Request, on func(llm.Delta)) (*llm.Response, error) {
	names := llm.NewNameMap(wire.NameRule(), r.Tools)
	strict := endpoint.NewStrictSchemas(r.Tools, m.cfg.Strict, schema.AnthropicLimits())
	return m.client.Post(ctx, "/v1/messages", m.requestBody(r, names, on != nil), func() endpoint.Answer {
		return &answer{Pieces: endpoint.NewPieces(on, strict), names: names, blocks: map[int]*block{}}
	})
}

// requestBody returns the body of POST /v1/messages for a request, with Config.Extra. The
// vendor gets the tools under the names in names. What the format cannot express is
// left out.
func (m *Model) requestBody(r *llm.Request, names *llm.NameMap, stream bool) []byte {
	asked := *r
	asked.Model, asked.Stream, asked.StreamUsage = m.cfg.Model, stream, false
	if len(asked.Tools) == 0 {
		asked.Choice, asked.Parallel = nil, nil
	}
	limit := maxTokens
	if most := m.cfg.Info.MaxOutput; most > 0 {
		limit = min(limit, most)
	}
	o := wire.Options{Names: names, Strict: m.cfg.Strict, MaxTokens: limit}
	if extra := tree.Raw(m.cfg.Extra).Get("max_tokens"); asked.MaxTokens == 0 && extra.Int() > 0 {
		o.MaxTokens = extra.Int()
	}
	body, _ := wire.EncodeRequest(&asked, o)
	endpoint.AddExtra(body, m.cfg.Extra)
	return body.JSON()
}
