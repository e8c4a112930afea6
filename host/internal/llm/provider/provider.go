// Package provider defines the interface of the host to a model: it takes an llm.Request and
// returns an llm.Response, in pieces on request. Each vendor is a package below this one:
//
//	openai     chat completions at any compatible address
//	anthropic  the Messages API
//	gemini     generateContent, of the Gemini API and of Vertex AI
//	scripted   answers from a YAML file, for tests and demonstrations
//	directcall no model: each typed line is a call
package provider

import (
	"context"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
)

// Info describes a model.
type Info struct {
	Name      string     `json:"name"` // as requests name it
	Vendor    llm.Vendor `json:"vendor,omitempty"`
	Provider  string     `json:"provider"`            // the configured one it belongs to
	Window    int        `json:"window,omitempty"`    // tokens of a request and its answer together; 0: not known
	MaxOutput int        `json:"maxOutput,omitempty"` // tokens of an answer; 0: not known
	Price     Price      `json:"price,omitzero"`
	Family    string     `json:"family,omitempty"` // how its tokens are counted: see tokens
	Images    bool       `json:"images,omitempty"` // takes images
}

// A Price is the price of a million tokens, in the unit of the configuration. The zero
// value: unknown.
type Price struct {
	Input      float64 `json:"input,omitempty"`
	CacheRead  float64 `json:"cacheRead,omitempty"`
	CacheWrite float64 `json:"cacheWrite,omitempty"`
	Output     float64 `json:"output,omitempty"`
}

// Of returns what a usage costs.
func (p Price) Of(u llm.Usage) float64 {
	plain := u.Input - u.CacheRead - u.CacheWrite
	return (float64(plain)*p.Input + float64(u.CacheRead)*p.CacheRead +
		float64(u.CacheWrite)*p.CacheWrite + float64(u.Output)*p.Output) / 1e6
}

// A Model answers requests. It is safe for concurrent use.
type Model interface {
	Info() Info

	// Ask sends a request, with safe retries, and returns the whole answer. on, if not
	// nil, is called with the pieces of that answer as they arrive, in order, by the
	// goroutine that called Ask; after the first piece nothing is retried. Ask does
	// not change the request.
	//
	// Its errors have the codes CANCELLED, TIMEOUT, AUTH_FAILED, RATE_LIMITED,
	// INVALID_INPUT (the vendor refuses the request), LIMIT_REACHED (the request does
	// not fit the model), TRANSPORT_ERROR, or MODEL_ERROR. Together with an error, the
	// response is the partial answer or nil.
	Ask(ctx context.Context, r *llm.Request, on func(llm.Delta)) (*llm.Response, error)
}
