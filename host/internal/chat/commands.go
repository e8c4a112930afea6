package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/toolroom-mcp/toolroom/host/internal/chat/screen"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A command is a command of the chat, written after a slash.
type command struct {
	name, args, help string
}

// commands returns the commands of the chat, in the order of help.
func commands() []command {
	return []command{
		{"tools", "[TEXT]", "list tools; with TEXT only those whose name or description contains it"},
		{"servers", "", "list servers and their states"},
		{"model", "[NAME]", "list models; with NAME: switch to that model"},
		{"session", "[list | new | ID | name NAME | fork [NAME] | delete ID]", "show this session, or manage sessions"},
		{"save", "FILE", "write the conversation to a new file, as Markdown, or as JSON if the name ends in .json"},
		{"clear", "", "start a new session"},
		{"undo", "", "undo the file changes of the last turn, after confirmation"},
		{"cost", "", "show token usage"},
		{"help", "", "this"},
		{"quit", "", "end the chat"},
	}
}

// splitCommand splits the first line of a command into its name and arguments. ok is false
// for a text that does not begin with a slash and a word: a path (/etc/hosts) is no command,
// nor is a text that begins with a blank. The name exit becomes quit.
func splitCommand(text string) (name string, args []string, ok bool) {
	rest, ok := strings.CutPrefix(text, "/")
	first, _, _ := strings.Cut(rest, "\n")
	fields := strings.Fields(first)
	if !ok || len(fields) == 0 || !strings.HasPrefix(rest, fields[0]) {
		return "", nil, false
	}
	word := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '-' }
	if strings.ContainsFunc(fields[0], func(r rune) bool { return !word(r) }) {
		return "", nil, false
	}
	if fields[0] == "exit" {
		fields[0] = "quit"
	}
	return fields[0], fields[1:], true
}

// whyNoCommand returns the reason why a text is no valid command; "": it is one. It is
// invalid if the name is unknown, or if the text has several lines.
func whyNoCommand(name, text string) string {
	var names []string
	for _, c := range commands() {
		names = append(names, "/"+c.name)
	}
	switch {
	case !slices.Contains(names, "/"+name):
		return fmt.Sprintf("/%s is not a command%s Commands: %s. To send text that begins with a slash, type a space before it",
			name, suggestion("/"+name, names), strings.Join(names, " "))
	case strings.Contains(strings.TrimSpace(text), "\n"):
		return "/" + name + " takes one line; nothing was done"
	}
	return ""
}

// suggestion returns "; did you mean /NAME?", or "." if no command has a similar name.
func suggestion(name string, names []string) string {
	for _, known := range names {
		if strings.HasPrefix(known, name) {
			return "; did you mean " + known + "?"
		}
	}
	if near := dialect.Nearest(name, names); near != "" {
		return near
	}
	return "."
}

// completions returns the commands that begin with a text.
func completions(text string) []string {
	var found []string
	for _, c := range commands() {
		if strings.HasPrefix("/"+c.name, text) && text != "" {
			found = append(found, "/"+c.name)
		}
	}
	return found
}

// runCommand runs a command. It shows errors of the command, and always returns nil.
func (c *Chat) runCommand(ctx context.Context, name string, args []string) error {
	if name == "undo" { // it handles interrupts itself
		if err := c.undo(ctx); err != nil {
			c.view.showNote("/undo: %s", errorText(err))
		}
		return nil
	}
	ctx, done := c.interruptible(ctx)
	defer done()
	var err error
	switch name {
	case "tools":
		err = c.listTools(ctx, strings.Join(args, " "))
	case "servers":
		c.listServers()
	case "model":
		err = c.switchModel(ctx, args)
	case "session":
		err = c.sessionCommand(ctx, args)
	case "save":
		err = c.save(strings.Join(args, " "))
	case "clear":
		c.startNewSession()
	case "cost":
		c.showCosts()
	case "help":
		c.showHelp()
	case "quit":
		c.quitting = true
	}
	if err != nil {
		c.view.showNote("/%s: %s", name, errorText(err))
	}
	return nil
}

// formatColumns formats rows with aligned cells.
func formatColumns(rows [][]string) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i := range row {
			row[i] = screen.Clean(row[i])
		}
		fmt.Fprintln(w, strings.Join(row, "\t")) //nolint:errcheck // a builder takes everything
	}
	w.Flush() //nolint:errcheck // likewise
	return b.String()
}

// showHelp shows the commands.
func (c *Chat) showHelp() {
	var rows [][]string
	for _, cmd := range commands() {
		rows = append(rows, []string{"/" + cmd.name + " " + cmd.args, cmd.help})
	}
	text := formatColumns(rows)
	if c.editor != nil {
		text += "\nAlt-Enter, Ctrl-J, or a backslash before Enter start a new line; pasted text keeps its lines.\n" +
			"Ctrl-C stops the current turn; pressed twice on an empty line it ends the chat, as Ctrl-D does.\n"
	}
	c.view.print(text)
}

// listTools shows the tools whose name, title or description contains text, in any case. It
// returns NOT_FOUND without tools, and the error of ctx.
func (c *Chat) listTools(ctx context.Context, text string) error {
	if c.cfg.Host.Tools == nil {
		return toolerr.New(toolerr.NotFound, "no tools")
	}
	var rows [][]string
	for _, t := range c.cfg.Host.Tools(ctx) {
		var d struct {
			Title       string `json:"title"`
			Description string `json:"description"`
		}
		json.Unmarshal(t.Definition, &d) //nolint:errcheck // without a description if it is invalid
		if text != "" && !strings.Contains(strings.ToLower(t.Name+" "+d.Title+" "+d.Description), strings.ToLower(text)) {
			continue
		}
		if d.Description == "" {
			d.Description = d.Title
		}
		rows = append(rows, []string{t.Name, screen.OneLine(d.Description, 70)})
	}
	if len(rows) == 0 {
		c.view.print("no such tool")
		return ctx.Err()
	}
	c.view.print(formatColumns(rows))
	return ctx.Err()
}

// listServers shows the servers with their state, and their last error or number of tools.
func (c *Chat) listServers() {
	var rows [][]string
	if c.cfg.Host.Servers != nil {
		for _, s := range c.cfg.Host.Servers() {
			detail := ""
			if s.Tools > 0 {
				detail = textfmt.Count(s.Tools, "tool")
			}
			if s.Last != nil {
				detail = s.Last.Stage + ": " + screen.OneLine(s.Last.Message, 100)
			}
			rows = append(rows, []string{s.Name, s.State, detail})
		}
	}
	if len(rows) == 0 {
		c.view.print("no servers")
		return
	}
	c.view.print(formatColumns(rows))
}

// switchModel lists the models, or with args switches to the one named by them. It returns
// NO_MODEL if none exists.
func (c *Chat) switchModel(ctx context.Context, args []string) error {
	if len(args) > 0 {
		m, err := c.cfg.Host.Models.Get(ctx, strings.Join(args, " "))
		if err != nil {
			return err
		}
		c.model = m
		c.view.print("the model is " + m.Info().Name)
		return nil
	}
	var rows [][]string
	for _, m := range c.cfg.Host.Models.List(ctx) {
		mark := ""
		if m.Name == c.model.Info().Name {
			mark = "*"
		}
		rows = append(rows, []string{mark, m.Name, m.Provider, windowText(m)})
	}
	c.view.print(formatColumns(rows))
	return ctx.Err()
}

// windowText returns the size of a model's context; "": unknown.
func windowText(m provider.Info) string {
	if m.Window == 0 {
		return ""
	}
	return fmt.Sprintf("%d tokens", m.Window)
}

// showCosts shows the turns, tokens and costs of each model, and all costs together.
func (c *Chat) showCosts() {
	rows := [][]string{}
	total := 0.0
	for _, name := range c.order {
		s := c.spent[name]
		cost := "price unknown"
		if s.price != (provider.Price{}) {
			cost = fmt.Sprintf("%.4f", s.cost)
			total += s.cost
		}
		in := textfmt.Count(s.usage.Input, "token") + " in"
		if s.usage.CacheRead > 0 {
			in += fmt.Sprintf(" (%d from a cache)", s.usage.CacheRead)
		}
		rows = append(rows, []string{name, textfmt.Count(s.turns, "turn"), in, fmt.Sprintf("%d out", s.usage.Output), cost})
	}
	switch {
	case len(rows) == 0:
		c.view.print("nothing yet")
		return
	case len(rows) > 1 && total > 0:
		rows = append(rows, []string{"together", "", "", "", fmt.Sprintf("%.4f", total)})
	}
	c.view.print(formatColumns(rows))
}

// save writes the conversation to a new file: as JSON if its name ends in .json, else as
// Markdown. It returns an error if the file exists.
func (c *Chat) save(name string) error {
	switch {
	case name == "":
		return toolerr.New(toolerr.InvalidInput, "give a file name: /save FILE")
	case len(c.history) == 0:
		return toolerr.New(toolerr.InvalidInput, "the conversation is empty")
	}
	text := []byte(transcript(c.history))
	if strings.HasSuffix(name, ".json") {
		var err error
		if text, err = json.MarshalIndent(c.history, "", "  "); err != nil {
			return err
		}
		text = append(text, '\n')
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if failed := f.Close(); err == nil {
		err = failed
	}
	if err == nil {
		c.view.print("written to " + name)
	}
	return err
}

// transcript formats a conversation as Markdown: quoted questions, answers, and calls and
// results as code. It leaves out other parts, such as thinking.
func transcript(messages []llm.Message) string {
	var b strings.Builder
	for _, m := range messages {
		for _, p := range m.Parts {
			switch {
			case p.Type == llm.TextPart && m.Role == llm.UserRole:
				fmt.Fprintf(&b, "> %s\n\n", strings.ReplaceAll(p.Text, "\n", "\n> "))
			case p.Type == llm.TextPart, p.Type == llm.RefusalPart:
				fmt.Fprintf(&b, "%s\n\n", p.Text)
			case p.ToolCall != nil:
				fmt.Fprintf(&b, "%s\n\n", quoted(p.ToolCall.Name+" "+string(p.ToolCall.Args)+p.ToolCall.Malformed))
			case p.ToolResult != nil:
				fmt.Fprintf(&b, "%s\n\n", quoted(resultText(p.ToolResult)))
			}
		}
	}
	return b.String()
}

// quoted returns text in a code block whose fence does not occur in the text.
func quoted(text string) string {
	longest, run := 0, 0
	for _, r := range text {
		if run++; r != '`' {
			run = 0
		}
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", max(3, longest+1))
	return fence + "\n" + strings.TrimRight(text, "\n") + "\n" + fence
}
