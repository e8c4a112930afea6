// Package contextbudget makes a request fit the context window of a model:
//
//	available = window − tools − system prompt − messages − reserved for the answer
//
// The same counter counts all of them. Fit takes these steps, in this order, until
// the available tokens are not negative:
//
//  1. From CompactAt percent of the window on, old tool results are shortened to
//     their beginnings, except for the last KeepResults. The caller continues the
//     conversation with the messages that Fit returns, so that later requests
//     have the same beginning and the provider can use its cache.
//  2. The smallest configured model with a larger window into which everything
//     fits replaces the model.
//  3. Tools are left out: those with the lowest priority first; of equal ones,
//     those that were not called in the conversation or whose last call is the
//     oldest; then those with the least relevance for the user's last message.
//     Pinned tools and tools that the tool choice names are kept. The order of
//     the kept tools does not change.
//  4. Otherwise Fit returns an error with the tokens of each part.
//
// The result depends only on the input.
package contextbudget

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/tokens"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A Model is a possible recipient of a request.
type Model struct {
	Name      string
	Window    int // tokens of the request and the answer together
	MaxOutput int // tokens of an answer; 0: unknown
}

// Config holds the settings. A zero value means the default, which the comments name.
type Config struct {
	Models      []Model        // the configured models; none
	Counter     tokens.Counter // an estimate
	Reserve     int            // tokens reserved for the answer if the request has no limit; 4096
	MaxTools    int            // largest number of tools; no limit
	CompactAt   int            // percent of the window from which old results are shortened; 70
	KeepResults int            // number of latest results that are not shortened; 4
}

// withDefaults returns the settings with an estimating counter, 4096 tokens reserved,
// compaction at 70 % and 4 kept results, unless they are set.
func (c Config) withDefaults() Config {
	if c.Counter == nil {
		c.Counter = tokens.Estimator{}
	}
	c.Reserve, c.CompactAt, c.KeepResults = cmp.Or(c.Reserve, 4096), cmp.Or(c.CompactAt, 70), cmp.Or(c.KeepResults, 4)
	return c
}

// A Tool is a tool that the request may offer, with its rank.
type Tool struct {
	llm.Tool
	Tokens   int  // size of the definition in the model's format; 0: it is counted
	Priority int  // tools with a higher priority are kept longer
	Pinned   bool // never left out
}

// An Input is a request before it is fitted to a model.
type Input struct {
	Request llm.Request // without Tools
	Tools   []Tool

	// Relevance returns the relevance of each tool for a text. nil: it is computed for
	// each request.
	Relevance func(text string) []float64
}

// A Usage divides the tokens of a window by their purpose.
type Usage struct {
	Window, Tools, System, Messages, Reserved int
}

// Available returns the remaining tokens; negative: the request is too large.
func (s Usage) Available() int { return s.Window - s.Tools - s.System - s.Messages - s.Reserved }

// A Plan is a request that fits.
type Plan struct {
	Model     Model
	Messages  []llm.Message
	Tools     []llm.Tool // in the original order
	LeftOut   []string   // names of the tools that were left out
	Compacted int        // number of shortened results
	Usage     Usage
}

// A TooLargeError means that a request does not fit any model, even shortened.
type TooLargeError struct {
	Model string
	Usage Usage // with only the tools that may not be left out
}

// Error says which part takes how many tokens, and what to do.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the request exceeds the %d tokens of %s: messages %d, system prompt %d, required tools %d, and %d reserved for the answer; start a new session, shorten the last message, or configure a model with a larger window",
		e.Usage.Window, e.Model, e.Usage.Messages, e.Usage.System, e.Usage.Tools, e.Usage.Reserved)
}

// Unwrap returns an error with the code LIMIT_REACHED.
func (e *TooLargeError) Unwrap() error {
	return toolerr.New(toolerr.LimitReached, "the context is full")
}

// assumedDefinitionTokens is the assumed number of tokens of a definition of unknown size.
const assumedDefinitionTokens = 100

// Fit makes a request fit the model, or a larger configured one, by the steps of the
// package comment. It returns a *TooLargeError if that is not possible.
func Fit(cfg Config, model Model, ask Input) (Plan, error) {
	cfg = cfg.withDefaults()
	f := fitting{cfg: cfg, input: ask, costs: make([]int, len(ask.Tools))}
	for i, t := range ask.Tools {
		f.costs[i] = t.Tokens
		if t.Tokens == 0 {
			f.costs[i] = definitionTokens(cfg.Counter, t.Tool)
		}
	}
	messages, compacted := ask.Request.Messages, 0
	if spent := f.usage(model, messages, f.allTools()); spent.Window-spent.Available() > spent.Window*cfg.CompactAt/100 {
		messages, compacted = Compact(cfg.Counter, messages, cfg.KeepResults)
	}
	larger := f.largerModels(model)
	whole := f.isAllowedCount(f.allTools())
	for _, m := range slices.Concat([]Model{model}, larger) {
		if whole && f.usage(m, messages, f.allTools()).Available() >= 0 {
			return f.newPlan(m, messages, f.allTools(), compacted), nil
		}
	}
	var first *TooLargeError
	for _, m := range slices.Concat([]Model{model}, larger) {
		kept := f.selectTools(f.usage(m, messages, nil))
		if spent := f.usage(m, messages, kept); spent.Available() < 0 {
			if first == nil {
				first = &TooLargeError{m.Name, spent}
			}
			continue
		}
		return f.newPlan(m, messages, kept, compacted), nil
	}
	return Plan{}, first
}

// A fitting is the state of one call of Fit. Tools are given by their index in
// input.Tools.
type fitting struct {
	cfg   Config
	input Input
	costs []int // tokens of each tool
	ranks []int // tools in the order in which they are kept; nil: not computed yet
}

// allTools returns the indexes of all tools.
func (f *fitting) allTools() []int {
	all := make([]int, len(f.costs))
	for i := range all {
		all[i] = i
	}
	return all
}

// isAllowedCount reports whether the number of tools is within Config.MaxTools.
func (f *fitting) isAllowedCount(tools []int) bool {
	return f.cfg.MaxTools == 0 || len(tools) <= f.cfg.MaxTools
}

// usage counts the tokens of a request with some of the tools.
func (f *fitting) usage(model Model, messages []llm.Message, tools []int) Usage {
	s := Usage{Window: model.Window, Reserved: cmp.Or(f.input.Request.MaxTokens, f.cfg.Reserve)}
	if model.MaxOutput > 0 {
		s.Reserved = min(s.Reserved, model.MaxOutput)
	}
	s.System, s.Messages = messageTokens(f.cfg.Counter, messages)
	for _, i := range tools {
		s.Tools += f.costs[i]
	}
	return s
}

// largerModels returns the configured models with a larger window, the smallest first.
func (f *fitting) largerModels(model Model) []Model {
	larger := slices.DeleteFunc(slices.Clone(f.cfg.Models), func(m Model) bool { return m.Window <= model.Window })
	slices.SortStableFunc(larger, func(a, b Model) int { return cmp.Compare(a.Window, b.Window) })
	return larger
}

// newPlan returns the plan to send messages with these tools, given by index, to a
// model. Other tools are listed as left out. compacted is the number of shortened
// results in messages.
func (f *fitting) newPlan(model Model, messages []llm.Message, tools []int, compacted int) Plan {
	p := Plan{Model: model, Messages: messages, Compacted: compacted, Usage: f.usage(model, messages, tools)}
	for i, t := range f.input.Tools {
		if slices.Contains(tools, i) {
			p.Tools = append(p.Tools, t.Tool)
		} else {
			p.LeftOut = append(p.LeftOut, t.Name)
		}
	}
	return p
}
