// Package gemini requests answers from models through generateContent: of the Gemini
// API with a key, or of Vertex AI with an access token that a command prints. Parts
// keep their signatures (thoughtSignature). History from other models is marked so
// that Gemini 3 accepts it without a signature.
package gemini

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/endpoint"
	wire "github.com/toolroom-mcp/toolroom/host/internal/llm/wire/gemini"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// BaseURL is the base URL of the Gemini API.
const BaseURL = "https://generativelanguage.googleapis.com/v1beta"

// Config holds a model's address and properties.
type Config struct {
	endpoint.Config                 // an empty BaseURL means Address, or Vertex AI's address
	Model           string          // Google's name of the model
	Info            provider.Info   //
	Extra           json.RawMessage // members of every request; nil: none

	Project string   // project in Vertex AI; "": the Gemini API is used
	Region  string   // region of Project, or global
	Token   []string // command that prints an access token
}

// Model is a model behind generateContent.
type Model struct {
	cfg    Config
	client *endpoint.Client
	tokens *tokenCommand // nil: a key is used
	path   string
}

// New returns a model. It sends no request.
func New(cfg Config) *Model {
	var access *tokenCommand
	path := "/models/" + url.PathEscape(strings.TrimPrefix(cfg.Model, "models/"))
	switch {
	case cfg.Project != "":
		if cfg.BaseURL == "" {
			cfg.BaseURL = vertexBaseURL(cfg.Region)
		}
		path = "/projects/" + url.PathEscape(cfg.Project) + "/locations/" + url.PathEscape(cfg.Region) + "/publishers/google/models/" + url.PathEscape(cfg.Model)
		access = &tokenCommand{name: cfg.Name, command: cfg.Token, slot: make(chan struct{}, 1), minAge: time.Second}
		cfg.Authorize = access.authorize
	case cfg.BaseURL == "":
		cfg.BaseURL = BaseURL
	}
	cfg.SetDefaultHeader("X-Goog-Api-Key", cfg.Key)
	return &Model{cfg: cfg, client: endpoint.New(cfg.Config), tokens: access, path: path}
}

// vertexBaseURL returns the base URL of Vertex AI in a region.
func vertexBaseURL(region string) string {
	if region == "global" {
		return "https://aiplatform.googleapis.com/v1"
	}
	return "https://" + region + "-aiplatform.googleapis.com/v1"
}

// Info returns information about the model.
func (m *Model) Info() provider.Info { return m.cfg.Info }

// Ask implements provider.Model: it sends a request to the model and waits for the answer.
func (m *Model) Ask(ctx context.Context, r *llm.Request, on func(llm.Delta)) (*llm.Response, error) {
	names := llm.NewNameMap(wire.NameRule(), r.Tools)
	body := m.requestBody(r, names)
	turn := len(body.Get("contents").PeekItems())
	path := m.path + ":generateContent"
	if on != nil {
		path = m.path + ":streamGenerateContent?alt=sse"
	}
	return m.client.Post(ctx, path, body.JSON(), func() endpoint.Answer {
		return &answer{Pieces: endpoint.NewPieces(on, nil), names: names, turn: turn}
	})
}

// requestBody returns the body of generateContent for a request, with Config.Extra. The
// vendor gets the tools under the names in names. What the format cannot express is
// left out.
func (m *Model) requestBody(r *llm.Request, names *llm.NameMap) *tree.Value {
	asked := *r
	asked.Model, asked.Stream, asked.StreamUsage = "", false, false
	if len(asked.Tools) == 0 {
		asked.Choice, asked.Parallel = nil, nil
	}
	body, _ := wire.EncodeRequest(&asked, wire.Options{Names: names, NoIDs: m.cfg.Project != "", SkipSignatures: needsSignatures(m.cfg.Model)})
	extra := tree.Raw(m.cfg.Extra)
	if config := extra.Get("generationConfig"); config.Is(tree.Object) && body.Get("generationConfig") != nil {
		endpoint.AddExtra(body.Get("generationConfig"), config.JSON())
	}
	endpoint.AddExtra(body, m.cfg.Extra)
	return body
}

// needsSignatures reports whether a model refuses calls in the history without a
// signature, as Gemini 3 and later models do.
func needsSignatures(model string) bool {
	version, ok := strings.CutPrefix(strings.TrimPrefix(model, "models/"), "gemini-")
	return ok && version != "" && (version[0] >= '3' && version[0] <= '9' || len(version) > 1 && version[0] == '1' && version[1] >= '0' && version[1] <= '9')
}
