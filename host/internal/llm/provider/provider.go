// Package provider defines the host's interface to a model: Ask takes an
// llm.Request and returns an llm.Response, also in pieces. Each of these packages
// below implements it:
//
//	openai      chat completions, at any compatible address
//	anthropic   the Messages API
//	gemini      generateContent, of the Gemini API and of Vertex AI
//	scripted    answers from a YAML file, for tests and demonstrations
//	directcall  no model: each typed line is a tool call
package provider

import (
	"context"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
)

// Info describes a model.
type Info struct {
	Name      string     `json:"name"` // name in requests
	Vendor    llm.Vendor `json:"vendor,omitempty"`
	Provider  string     `json:"provider"`            // name of the configured provider
	Window    int        `json:"window,omitempty"`    // tokens of a request and its answer together; 0: unknown
	MaxOutput int        `json:"maxOutput,omitempty"` // tokens of an answer; 0: unknown
	Price     Price      `json:"price,omitzero"`
	Family    string     `json:"family,omitempty"` // vocabulary with which tokens are counted; see package tokens
	Images    bool       `json:"images,omitempty"` // accepts images
}

// A Price is the price of a million tokens, in the currency of the configuration. The
// zero value means unknown.
type Price struct {
	Input      float64 `json:"input,omitempty"`
	CacheRead  float64 `json:"cacheRead,omitempty"`
	CacheWrite float64 `json:"cacheWrite,omitempty"`
	Output     float64 `json:"output,omitempty"`
}

// Cost returns the price of a usage, in the currency of the configuration.
func (p Price) Cost(u llm.Usage) float64 {
	plain := u.Input - u.CacheRead - u.CacheWrite
	return (float64(plain)*p.Input + float64(u.CacheRead)*p.CacheRead +
		float64(u.CacheWrite)*p.CacheWrite + float64(u.Output)*p.Output) / 1e6
}

// A Model answers requests. It is safe for concurrent use.
type Model interface {
	Info() Info

	// Ask sends a request, retries it where that is safe, and returns the whole
	// answer. on, if not nil, is called with the pieces of the answer as they arrive,
	// in order, by the goroutine that called Ask. After the first piece nothing is
	// retried. Ask does not change the request.
	//
	// Errors have the codes CANCELLED, TIMEOUT, AUTH_FAILED, RATE_LIMITED,
	// INVALID_INPUT (the vendor refuses the request), LIMIT_REACHED (the request does
	// not fit the model), TRANSPORT_ERROR or MODEL_ERROR. Together with an error, the
	// response is the partial answer or nil.
	Ask(ctx context.Context, r *llm.Request, on func(llm.Delta)) (*llm.Response, error)
}
