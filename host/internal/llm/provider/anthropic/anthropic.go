// Package anthropic asks models through Anthropic's Messages API. Thinking is
// carried with its signature, and what only Anthropic can read (redacted thinking,
// its own tools' calls and results) as it came. 529 is RATE_LIMITED, as 429 is.
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

// Address is Anthropic's own.
const Address = "https://api.anthropic.com"

// maxTokens is the default limit of an answer, if the model permits it: enough for
// most answers, and less than what takes Anthropic longer than it permits without
// streaming.
const maxTokens = 8192

// Config is a model and where it is.
type Config struct {
	endpoint.Config                 // BaseURL "": Address
	Model           string          // as Anthropic names it
	Info            provider.Info   //
	Strict          bool            // hold the model to the schemas of all tools
	Extra           json.RawMessage // members of every request, such as thinking; nil: none
}

// Model is one.
type Model struct {
	cfg    Config
	client *endpoint.Client
}

// New makes a model. It asks nobody.
func New(cfg Config) *Model {
	if cfg.BaseURL == "" {
		cfg.BaseURL = Address
	}
	cfg.BaseURL = strings.TrimSuffix(cfg.BaseURL, "/v1")
	cfg.Default("X-Api-Key", cfg.Key)
	cfg.Default("Anthropic-Version", "2023-06-01")
	return &Model{cfg: cfg, client: endpoint.New(cfg.Config)}
}

// Info returns information about the model.
func (m *Model) Info() provider.Info { return m.cfg.Info }

// Ask asks it.
func (m *Model) Ask(ctx context.Context, r *llm.Request, on func(llm.Delta)) (*llm.Response, error) {
	names := llm.NewNames(wire.Rule(), r.Tools)
	strict := endpoint.StrictOf(r.Tools, m.cfg.Strict, schema.HeldByAnthropic())
	return m.client.Post(ctx, "/v1/messages", m.body(r, names, on != nil), func() endpoint.Answer {
		return &answer{Pieces: endpoint.NewPieces(on, strict), names: names, blocks: map[int]*block{}}
	})
}

// body is a request.
func (m *Model) body(r *llm.Request, names *llm.Names, stream bool) []byte {
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
	endpoint.Merge(body, m.cfg.Extra)
	return body.JSON()
}
