package cli

import (
	"fmt"
	"text/tabwriter"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/tokens"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
)

// The values of --tokens.
const (
	tokensEstimated = "estimate"
	tokensExact     = "exact"
)

// toolCost is the number of tokens of one definition.
type toolCost struct {
	Name   string `json:"name"`
	Tokens int    `json:"tokens"`
}

// printTokens prints the size of each definition in the requested format, and the
// total.
func (p *program) printTokens(tools []*call.Tool, flags definitionFlags) error {
	var counter tokens.Counter = tokens.Estimator{}
	by := "estimate"
	if flags.tokens == tokensExact {
		vocabulary, err := tokens.LoadVocabulary()
		if err != nil {
			return withStatus(exitFailed, err)
		}
		counter, by = vocabulary, "o200k_base"
	}
	costs, total := make([]toolCost, 0, len(tools)), 0
	for _, t := range tools {
		text, err := flags.definitionText(t)
		if err != nil {
			return withStatus(exitFailed, fmt.Errorf("tool %s: %w", t.Name, err))
		}
		n := counter.Count(text)
		costs, total = append(costs, toolCost{t.Name, n}), total+n
	}
	format := flags.format
	if format == "" {
		format = string(llm.MCP)
	}
	if flags.json {
		return p.printJSON(struct {
			Format  string     `json:"format"`
			Counter string     `json:"counter"`
			Tools   []toolCost `json:"tools"`
			Total   int        `json:"total"`
		}{format, by, costs, total})
	}
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, c := range costs {
		fmt.Fprintf(w, "%d\t  %s\n", c.Tokens, c.Name) //nolint:errcheck // Flush tells
	}
	fmt.Fprintf(w, "%d\t  total of %s as %s (%s)\n", total, textfmt.Count(len(costs), "tool"), format, by) //nolint:errcheck // likewise
	if err := w.Flush(); err != nil {
		return withStatus(exitFailed, err)
	}
	return nil
}

// definitionText returns a definition as a request in the chosen format contains it. It returns an
// error for a malformed definition.
func (a definitionFlags) definitionText(t *call.Tool) (string, error) {
	if !a.isVendorFormat() {
		return string(t.Definition), nil
	}
	d, err := llm.ParseTool(t.Definition)
	if err != nil {
		return "", err
	}
	list, _ := encodeTools([]llm.Tool{d}, a)
	return string(firstDefinition(list).JSON()), nil
}
