package mcpkit

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// Main is the main function of a program that serves tools and needs no own
// flags. It makes a Command with that name, the first tool's title and a manual
// with the tools' descriptions, runs it, and exits the process with its exit
// code. Use NewCommand for flags, roots or instructions.
func Main(name string, tools ...*Tool) {
	title := name
	if len(tools) > 0 && tools[0] != nil && tools[0].def.Title != "" {
		title = tools[0].def.Title
	}
	c := NewCommand(name, title, manualSource(name, tools))
	c.Tools = func() ([]*Tool, error) {
		for _, t := range tools {
			if t == nil {
				return nil, errors.New("a tool is nil: check the error of its constructor")
			}
		}
		return tools, nil
	}
	os.Exit(c.Main())
}

// manualSource returns the text of a main.go whose package comment lists the
// tools, for Command.Source.
func manualSource(name string, tools []*Tool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "// Mcp-%s is an MCP server on standard input and output. Its tools:\n//\n", name)
	for _, t := range tools {
		if t != nil {
			fmt.Fprintf(&b, "//\t%s: %s\n", t.Name(), strings.Join(strings.Fields(t.def.Description), " "))
		}
	}
	return b.String() + "package main\n"
}

// Must returns t, and panics if err is not nil. Use it for NewTool in the
// arguments of Main:
//
//	mcpkit.Main("count", mcpkit.Must(mcpkit.NewTool(def, count)))
func Must(t *Tool, err error) *Tool {
	if err != nil {
		panic(err)
	}
	return t
}
