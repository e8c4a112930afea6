package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/anthropic"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/gemini"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/openai"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// definitionFlags holds the flags of tools for the format of definitions.
type definitionFlags struct {
	json   bool
	format string // "": mcp
	strict bool
	tokens string // how tokens are counted; "": not counted
	quiet  bool
}

// check returns a usage error if the flags contradict each other.
func (a definitionFlags) check() error {
	switch {
	case a.tokens != "" && a.tokens != tokensEstimated && a.tokens != tokensExact:
		return usageError("--tokens=%s: use estimate or exact", a.tokens)
	case !slices.Contains([]string{"", "mcp", "openai", "anthropic", "gemini"}, a.format):
		return usageError("no format %q; use mcp, openai, anthropic or gemini", a.format)
	case a.strict && a.format != "openai" && a.format != "anthropic":
		return usageError("--strict needs --format openai or anthropic: the other formats have no strict definitions")
	}
	return nil
}

// isVendorFormat reports whether the format is another one than MCP's.
func (a definitionFlags) isVendorFormat() bool { return a.format != "" && a.format != "mcp" }

// printDefinitions prints MCP's definitions, as clients get them: indented, or with --json
// on one line.
func (p *program) printDefinitions(defs []json.RawMessage, flags definitionFlags) error {
	raw, err := jsonrpc.Marshal(defs)
	switch {
	case err != nil:
		return withStatus(exitFailed, err)
	case flags.json:
		return p.printf("%s\n", raw)
	}
	return p.printIndented(raw)
}

// printIndented prints a JSON value with indentation.
func (p *program) printIndented(raw json.RawMessage) error {
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, raw, "", "  "); err != nil {
		return withStatus(exitFailed, err)
	}
	return p.printf("%s\n", pretty.String())
}

// printFormat prints definitions in a vendor's format, and the losses on standard error. With
// --json it prints both as one object. one means a single definition instead of a list.
func (p *program) printFormat(tools []*call.Tool, one bool, flags definitionFlags) error {
	var defs []llm.Tool
	for _, t := range tools {
		d, err := llm.ParseTool(t.Definition)
		if err != nil {
			return withStatus(exitFailed, fmt.Errorf("tool %s: %w", t.Name, err))
		}
		defs = append(defs, d)
	}
	list, losses := encodeTools(defs, flags)
	printed := list
	if one {
		printed = firstDefinition(list)
	}
	if flags.json {
		all := []llm.Loss{}
		return p.printJSON(struct {
			Format string      `json:"format"`
			Tools  *tree.Value `json:"tools"`
			Losses []llm.Loss  `json:"losses"`
		}{flags.format, printed, append(all, losses...)})
	}
	if err := p.printIndented(printed.JSON()); err != nil {
		return err
	}
	p.printLosses(losses)
	return nil
}

// firstDefinition returns the first definition of a list, or nil if it is empty. Gemini
// groups definitions in one item.
func firstDefinition(list *tree.Value) *tree.Value {
	if inner := list.At("/0/functionDeclarations/0"); inner != nil {
		return inner
	}
	return list.At("/0")
}

// encodeTools returns definitions in a vendor's format, OpenAI's by default, and what
// the format cannot express.
func encodeTools(defs []llm.Tool, flags definitionFlags) (*tree.Value, llm.Losses) {
	switch flags.format {
	case "gemini":
		return gemini.EncodeTools(defs, gemini.Options{Names: llm.NewNameMap(gemini.NameRule(), defs)})
	case "anthropic":
		return anthropic.EncodeTools(defs, anthropic.Options{Strict: flags.strict, Names: llm.NewNameMap(anthropic.NameRule(), defs)})
	}
	return openai.EncodeTools(defs, openai.Options{Strict: flags.strict, Names: llm.NewNameMap(openai.NameRule(), defs)})
}

// printLosses prints the losses of definitions, equal losses of several tools once.
// Losses without a change of meaning are only counted.
func (p *program) printLosses(losses llm.Losses) {
	var order []string
	tools := map[string][]string{}
	carried := 0
	for _, loss := range losses {
		if loss.Kind == llm.Equivalent {
			carried++
			continue
		}
		tool := loss.Tool
		loss.Tool = ""
		text := loss.String()
		if tools[text] == nil {
			order = append(order, text)
		}
		tools[text] = append(tools[text], tool)
	}
	for _, text := range order {
		names := tools[text]
		if len(names) > 4 {
			names = append(names[:3:3], fmt.Sprintf("%d more", len(names)-3))
		}
		p.logf("%s: %s", printable(strings.Join(names, ", ")), printable(text))
	}
	if carried > 0 {
		p.logf("equivalent rewrites: %d; --json lists them", carried)
	}
}
