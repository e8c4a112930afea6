// Package tokens counts the tokens of texts.
//
// An estimate is fast and needs no vocabulary: the text is split into the same pieces
// as by a tokenizer, and each piece counts the average number of tokens of such
// pieces. For definitions of tools the estimate is within a few percent of the exact
// count, for prose and programs within ten percent (see the tests).
//
// An exact count uses the vocabulary o200k_base of OpenAI's models since 2024. The
// binary contains it, compressed to a megabyte. Loading it takes about 30 ms, and it
// needs 4 MiB of memory. Vocabularies of other vendors have a similar size, so for
// their models the count is an estimate of the same quality.
//
// The vocabulary is OpenAI's (github.com/openai/tiktoken), see LICENSE.o200k_base.
package tokens

import "encoding/json"

// A Counter counts the tokens of a text.
type Counter interface {
	Count(text string) int
}

// Estimator is a Counter that estimates.
type Estimator struct{}

// Count returns an estimate of the number of tokens of a text.
func (Estimator) Count(text string) int { return Estimate(text) }

// Estimate returns an estimate of the number of tokens of a text.
func Estimate(text string) int {
	var sum int // in hundredths
	for text != "" {
		n, kind := nextPiece(text)
		sum += pieceCost(text[:n], kind)
		text = text[n:]
	}
	return (sum + 50) / 100
}

// EstimateJSON returns an estimate of the number of tokens of a JSON text.
func EstimateJSON(raw json.RawMessage) int { return Estimate(string(raw)) }
