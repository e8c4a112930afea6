package chat

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/agent"
	"github.com/toolroom-mcp/toolroom/host/internal/chat/screen"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// callLine returns a call on one line: its tool, and the values of at most two arguments that
// usually say most, or its first argument.
func callLine(c *llm.ToolCall) string {
	if c == nil {
		return ""
	}
	if c.Malformed != "" {
		return c.Name + " " + c.Malformed
	}
	members, err := jsonrpc.Members(c.Args)
	if err != nil || len(members) == 0 {
		return c.Name
	}
	var shown []string
	for _, name := range []string{"command", "pattern", "file_path", "path", "url", "query", "prompt", "task", "name"} {
		for _, m := range members {
			if m.Name == name && len(shown) < 2 {
				shown = append(shown, shortValue(m.Value))
			}
		}
	}
	if len(shown) == 0 {
		shown = append(shown, members[0].Name+"="+shortValue(members[0].Value))
	}
	return c.Name + " " + strings.Join(shown, " ")
}

// shortValue returns an argument's value in one line of at most 60 columns; a string is not
// quoted.
func shortValue(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return screen.OneLine(s, 60)
	}
	return screen.OneLine(string(raw), 60)
}

// resultLine returns the first line of a call's result, or its error if the agent has
// added more lines.
func resultLine(r *llm.ToolResult) string {
	if r == nil {
		return ""
	}
	first, next := "", false
	for line := range strings.Lines(resultText(r)) {
		line = strings.TrimSpace(line)
		if first == "" {
			first = line
		}
		failure, ok := strings.CutPrefix(line, "error: ")
		switch {
		case first != "" && !(r.IsError && strings.HasPrefix(first, "tool: ")):
			return first
		case ok:
			return failure
		case next && line != "":
			return line
		case line == "output:":
			next = true
		}
	}
	return first
}

// resultText returns the texts of a result, with a description for each image, one per
// line.
func resultText(r *llm.ToolResult) string {
	var all []string
	for _, p := range r.Content {
		switch {
		case p.Text != "":
			all = append(all, p.Text)
		case p.Media != nil:
			all = append(all, imageText(p.Media))
		}
	}
	return strings.Join(all, "\n")
}

// imageText returns the description of an image: its URL, or its type and size.
func imageText(m *llm.Media) string {
	if m.Data == "" {
		return "[image " + m.URL + "]"
	}
	return fmt.Sprintf("[image %s, %d bytes]", m.MIME, len(m.Data)*3/4)
}

// truncate returns the first most bytes of a text, with "…" if it is longer.
func truncate(text string, most int) string {
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// duration returns a duration as people read it: 12 ms, 1.5 s, 2m3s.
func duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// errorText returns the text of an error, with its code first unless that is INTERNAL.
func errorText(err error) string {
	code := toolerr.CodeOf(err)
	if code == "" || code == toolerr.Internal || strings.HasPrefix(err.Error(), string(code)) {
		return err.Error()
	}
	return string(code) + ": " + err.Error()
}

// endReason returns the reason why a turn ended, "" if it reached its goal. told is the
// error that was already shown.
func endReason(out *agent.Outcome, told string) string {
	var b bytes.Buffer
	switch {
	case out.Ending == agent.EndGoal && out.Err == nil:
		return ""
	case out.Ending == agent.EndCancelled:
		return "cancelled"
	case out.Ending == agent.EndPending:
		for _, p := range out.Pending {
			if p.ID == "" { // the tool itself waits, and says for what
				fmt.Fprintf(&b, "%s: %s\n", p.Tool, p.Message)
				continue
			}
			fmt.Fprintf(&b, "%s needs approval (%s): run mcp-host approvals approve %s, then tell the model\n", p.Tool, p.ID, p.ID)
		}
		return strings.TrimSpace(cmp.Or(b.String(), string(out.Ending)))
	}
	fmt.Fprintf(&b, "ended: %s", out.Ending)
	if out.Err != nil && errorText(out.Err) != told {
		fmt.Fprintf(&b, ": %s", errorText(out.Err))
	}
	return b.String()
}

// turnSummary describes the time, tokens and cost of a turn.
func turnSummary(out *agent.Outcome, cost float64) string {
	calls := 0
	for _, n := range out.Calls {
		calls += n
	}
	text := fmt.Sprintf("%s, %s, %s, %s in, %d out", duration(out.Took), textfmt.Count(out.Turns, "turn"), textfmt.Count(calls, "call"), textfmt.Count(out.Usage.Input, "token"), out.Usage.Output)
	if cost > 0 {
		text += fmt.Sprintf(", cost %.4f", cost)
	}
	return text
}
