// Package contextbudget makes what a model is asked fit into its context:
//
//	available = window − tools − system prompt − messages − reserved for the answer
//
// all counted by the same counter. Fit goes on until that is not negative:
//
//  1. Beyond CompactAt percent of the window, old results of tools are cut to
//     their beginnings; the last KeepResults are left. What Fit returns is to
//     be the conversation from then on, so that the next turns find it short,
//     and the model's provider finds the beginning it has cached.
//  2. Of the models that are configured with a larger window, the smallest
//     takes over into which everything fits.
//  3. Tools are left out: first those of the least priority, of equal ones
//     those that were not called in the conversation, or longest ago, then
//     those that have the least to do with the last message of the user. What
//     is pinned, or named by the choice of tools, stays. Those that stay keep
//     their order.
//  4. Else it is an error, which says what takes how much.
//
// The same input has the same outcome.
package contextbudget

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/tokens"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A Model is a model that can get a request.
type Model struct {
	Name      string
	Window    int // tokens of the request and the answer together
	MaxOutput int // tokens of an answer; 0: not said
}

// Config says how. What is zero is the default.
type Config struct {
	Models      []Model        // those that are configured
	Counter     tokens.Counter // estimates
	Reserve     int            // tokens for an answer of a request that does not say; 4096
	MaxTools    int            // any number
	CompactAt   int            // percent of the window; 70
	KeepResults int            // 4
}

func (c Config) filled() Config {
	if c.Counter == nil {
		c.Counter = tokens.Estimator{}
	}
	c.Reserve, c.CompactAt, c.KeepResults = cmp.Or(c.Reserve, 4096), cmp.Or(c.CompactAt, 70), cmp.Or(c.KeepResults, 4)
	return c
}

// A Tool is one that the request may offer.
type Tool struct {
	llm.Tool
	Tokens   int // of the definition as the model is sent it; 0: it is counted
	Priority int // the higher, the longer it stays
	Pinned   bool
}

// An Ask is a request to a model, before it is fitted.
type Ask struct {
	Request llm.Request // but for Tools
	Tools   []Tool

	// Relevance returns the relevance of each tool for a text. nil: it is computed at
	// each use.
	Relevance func(text string) []float64
}

// Spent holds the tokens of a window by purpose.
type Spent struct {
	Window, Tools, System, Messages, Reserved int
}

// Available returns the remaining tokens.
func (s Spent) Available() int { return s.Window - s.Tools - s.System - s.Messages - s.Reserved }

// A Plan is a request that fits.
type Plan struct {
	Model     Model
	Messages  []llm.Message
	Tools     []llm.Tool // in the order they came in
	Left      []string   // the names of those that were left out
	Compacted int        // results that were cut
	Spent     Spent
}

// A TooLargeError is a request that does not fit, however it is cut.
type TooLargeError struct {
	Model string
	Spent Spent // with the tools that had to stay alone
}

// Error says what takes how much, and what to do.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the request exceeds the %d tokens of %s: messages %d, system prompt %d, required tools %d, and %d reserved for the answer; start a new session, shorten the last message, or configure a model with a larger window",
		e.Spent.Window, e.Model, e.Spent.Messages, e.Spent.System, e.Spent.Tools, e.Spent.Reserved)
}

// Unwrap makes toolerr.CodeOf say LIMIT_REACHED.
func (e *TooLargeError) Unwrap() error {
	return toolerr.New(toolerr.LimitReached, "the context is full")
}

// fallback is the assumed number of tokens of a definition of unknown size.
const fallback = 100

// Fit makes a request for a model fit, or says why it cannot.
func Fit(cfg Config, model Model, ask Ask) (Plan, error) {
	cfg = cfg.filled()
	f := fitting{cfg: cfg, ask: ask, costs: make([]int, len(ask.Tools))}
	for i, t := range ask.Tools {
		f.costs[i] = t.Tokens
		if t.Tokens == 0 {
			f.costs[i] = definitionTokens(cfg.Counter, t.Tool)
		}
	}
	messages, compacted := ask.Request.Messages, 0
	if spent := f.spent(model, messages, f.all()); spent.Window-spent.Available() > spent.Window*cfg.CompactAt/100 {
		messages, compacted = Compact(cfg.Counter, messages, cfg.KeepResults)
	}
	larger := f.larger(model)
	whole := f.within(f.all())
	for _, m := range slices.Concat([]Model{model}, larger) {
		if whole && f.spent(m, messages, f.all()).Available() >= 0 {
			return f.plan(m, messages, f.all(), compacted), nil
		}
	}
	var first *TooLargeError
	for _, m := range slices.Concat([]Model{model}, larger) {
		kept := f.prune(f.spent(m, messages, nil))
		if spent := f.spent(m, messages, kept); spent.Available() < 0 {
			if first == nil {
				first = &TooLargeError{m.Name, spent}
			}
			continue
		}
		return f.plan(m, messages, kept, compacted), nil
	}
	return Plan{}, first
}

// fitting is one request on its way to a plan.
type fitting struct {
	cfg   Config
	ask   Ask
	costs []int // of the tools
	ranks []int // the tools in the order in which they are kept; nil: not known yet
}

func (f *fitting) all() []int {
	all := make([]int, len(f.costs))
	for i := range all {
		all[i] = i
	}
	return all
}

// within reports whether there are no more tools than there may be.
func (f *fitting) within(tools []int) bool {
	return f.cfg.MaxTools == 0 || len(tools) <= f.cfg.MaxTools
}

// spent counts a request with some of the tools.
func (f *fitting) spent(model Model, messages []llm.Message, tools []int) Spent {
	s := Spent{Window: model.Window, Reserved: cmp.Or(f.ask.Request.MaxTokens, f.cfg.Reserve)}
	if model.MaxOutput > 0 {
		s.Reserved = min(s.Reserved, model.MaxOutput)
	}
	s.System, s.Messages = messageTokens(f.cfg.Counter, messages)
	for _, i := range tools {
		s.Tools += f.costs[i]
	}
	return s
}

// larger are the configured models with a larger window, the smallest first.
func (f *fitting) larger(model Model) []Model {
	larger := slices.DeleteFunc(slices.Clone(f.cfg.Models), func(m Model) bool { return m.Window <= model.Window })
	slices.SortStableFunc(larger, func(a, b Model) int { return cmp.Compare(a.Window, b.Window) })
	return larger
}

func (f *fitting) plan(model Model, messages []llm.Message, tools []int, compacted int) Plan {
	p := Plan{Model: model, Messages: messages, Compacted: compacted, Spent: f.spent(model, messages, tools)}
	for i, t := range f.ask.Tools {
		if slices.Contains(tools, i) {
			p.Tools = append(p.Tools, t.Tool)
		} else {
			p.Left = append(p.Left, t.Name)
		}
	}
	return p
}
