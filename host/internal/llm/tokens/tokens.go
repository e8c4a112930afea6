// Package tokens counts what texts cost a model.
//
// An estimate is cheap and needs no vocabulary: the text is cut into the pieces
// that tokenizers cut it into, and each counts what such pieces have on the
// average. Over the definitions of tools it is within a few percent of the
// exact count, over prose and programs within ten (see the tests).
//
// An exact count is by the vocabulary o200k_base, which OpenAI's models since
// 2024 use. It is part of the binary, compressed to a megabyte; to load it takes
// some 30 ms, and to keep it 4 MiB. Other vendors' models have vocabularies
// of their own, of similar size; for them it is as good an estimate.
//
// The vocabulary is OpenAI's (github.com/openai/tiktoken), see LICENSE.o200k_base.
package tokens

import "encoding/json"

// A Counter counts the tokens of a text.
type Counter interface {
	Count(text string) int
}

// Estimator is the counter that estimates.
type Estimator struct{}

// Count returns about how many tokens a text has.
func (Estimator) Count(text string) int { return Estimate(text) }

// Estimate returns about how many tokens a text has.
func Estimate(text string) int {
	var sum int // in hundredths
	for text != "" {
		n, kind := next(text)
		sum += cost(text[:n], kind)
		text = text[n:]
	}
	return (sum + 50) / 100
}

// EstimateJSON returns about how many tokens a JSON text has.
func EstimateJSON(raw json.RawMessage) int { return Estimate(string(raw)) }
