// Package gemini asks models through generateContent: of the Gemini API, with a key,
// or of Vertex AI, with an access token that a command writes. The signatures of
// parts (thoughtSignature) are carried; history that other models wrote is signed so
// that Gemini 3 takes it.
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

// Address is the Gemini API's.
const Address = "https://generativelanguage.googleapis.com/v1beta"

// Config is a model and where it is.
type Config struct {
	endpoint.Config               // BaseURL "": Address, or Vertex AI's
	Model           string        // as Google names it
	Info            provider.Info //
	Extra           json.RawMessage

	Project string // of Vertex AI; "": the Gemini API
	Region  string
	Token   []string // the command that writes an access token
}

// Model is one.
type Model struct {
	cfg    Config
	client *endpoint.Client
	tokens *tokens // nil: there is a key
	path   string
}

// New makes a model. It asks nobody.
func New(cfg Config) *Model {
	var access *tokens
	path := "/models/" + url.PathEscape(strings.TrimPrefix(cfg.Model, "models/"))
	switch {
	case cfg.Project != "":
		if cfg.BaseURL == "" {
			cfg.BaseURL = vertex(cfg.Region)
		}
		path = "/projects/" + url.PathEscape(cfg.Project) + "/locations/" + url.PathEscape(cfg.Region) + "/publishers/google/models/" + url.PathEscape(cfg.Model)
		access = &tokens{name: cfg.Name, command: cfg.Token, turn: make(chan struct{}, 1), fresh: time.Second}
		cfg.Authorize = access.authorize
	case cfg.BaseURL == "":
		cfg.BaseURL = Address
	}
	cfg.Default("X-Goog-Api-Key", cfg.Key)
	return &Model{cfg: cfg, client: endpoint.New(cfg.Config), tokens: access, path: path}
}

// vertex is Vertex AI's address in a region.
func vertex(region string) string {
	if region == "global" {
		return "https://aiplatform.googleapis.com/v1"
	}
	return "https://" + region + "-aiplatform.googleapis.com/v1"
}

// Info returns information about the model.
func (m *Model) Info() provider.Info { return m.cfg.Info }

// Ask asks it.
func (m *Model) Ask(ctx context.Context, r *llm.Request, on func(llm.Delta)) (*llm.Response, error) {
	names := llm.NewNames(wire.Rule(), r.Tools)
	body := m.body(r, names)
	turn := len(body.Get("contents").All())
	path := m.path + ":generateContent"
	if on != nil {
		path = m.path + ":streamGenerateContent?alt=sse"
	}
	return m.client.Post(ctx, path, body.JSON(), func() endpoint.Answer {
		return &answer{Pieces: endpoint.NewPieces(on, nil), names: names, turn: turn}
	})
}

// body is a request.
func (m *Model) body(r *llm.Request, names *llm.Names) *tree.Value {
	asked := *r
	asked.Model, asked.Stream, asked.StreamUsage = "", false, false
	if len(asked.Tools) == 0 {
		asked.Choice, asked.Parallel = nil, nil
	}
	body, _ := wire.EncodeRequest(&asked, wire.Options{Names: names, NoIDs: m.cfg.Project != "", SkipSignatures: signed(m.cfg.Model)})
	extra := tree.Raw(m.cfg.Extra)
	if config := extra.Get("generationConfig"); config.Is(tree.Object) && body.Get("generationConfig") != nil {
		endpoint.Merge(body.Get("generationConfig"), config.JSON())
	}
	endpoint.Merge(body, m.cfg.Extra)
	return body
}

// signed reports whether a model takes back only calls that are signed: Gemini 3 and
// what follows.
func signed(model string) bool {
	version, ok := strings.CutPrefix(strings.TrimPrefix(model, "models/"), "gemini-")
	return ok && version != "" && (version[0] >= '3' && version[0] <= '9' || len(version) > 1 && version[0] == '1' && version[1] >= '0' && version[1] <= '9')
}
