package chat

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/approve"
	"github.com/toolroom-mcp/toolroom/internal/textdiff"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// The arguments of a call are shown above the question whether it may be made. Arguments
// that replace text in a file are shown as diffs. The diffs are made from the arguments
// alone, since the file may change before the call is made, and the arguments cannot.

// The limits of a proposal. A longer one shows its beginning first, and can be
// approved only after the user has seen the rest.
const (
	maxProposal         = 200 // lines
	maxProposalBytes    = 32 << 10
	shownBeginningLines = 60 // shown lines of a longer proposal
)

// oldTextParameters lists the names of the parameter of edit tools with the text to replace.
func oldTextParameters() []string {
	return []string{"old_string", "old_str", "old_text", "oldText", "oldString"}
}

// newTextParameters lists the names of the parameter with the new text.
func newTextParameters() []string {
	return []string{"new_string", "new_str", "new_text", "newText", "newString"}
}

// contentParameters lists the names of the parameter with the whole text of a file.
func contentParameters() []string { return []string{"content", "contents", "file_text"} }

// replacement is the change of one text to another.
type replacement struct{ was, will string }

// formatProposal formats the arguments of a call for a user to approve, with replacements of text
// as diffs.
func formatProposal(args json.RawMessage) string {
	members, err := jsonrpc.Members(args)
	if err != nil {
		return formattedArgs(args)
	}
	rest, all := replacements(members)
	if len(all) == 0 {
		return formattedArgs(args)
	}
	var b strings.Builder
	b.WriteString(formattedArgs(rest) + "\n")
	for i, r := range all {
		if len(all) > 1 {
			fmt.Fprintf(&b, "  edit %d of %d:\n", i+1, len(all))
		}
		b.WriteString(r.diff())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// replacements returns the replacements in a call's arguments: old and new text, a list
// named edits, or the whole text of a named file. rest is the object of the other members.
func replacements(members []jsonrpc.Member) (rest json.RawMessage, all []replacement) {
	if left, one, ok := replacementOf(members); ok {
		members, all = left, append(all, one)
	}
	var left []jsonrpc.Member
	for _, m := range members {
		several, ok := editsOf(m)
		text, whole := textOf(m, contentParameters()), hasPath(members)
		switch {
		case ok:
			all = append(all, several...)
		case text != nil && whole && len(all) == 0:
			all = append(all, replacement{will: *text})
		default:
			left = append(left, m)
		}
	}
	return objectOf(left), all
}

// editsOf parses a member edits: a list of replacements. ok is false for another member, for
// an empty list, and if an object in it has other members, too.
func editsOf(m jsonrpc.Member) (all []replacement, ok bool) {
	var items []json.RawMessage
	if m.Name != "edits" || json.Unmarshal(m.Value, &items) != nil || len(items) == 0 {
		return nil, false
	}
	for _, item := range items {
		members, err := jsonrpc.Members(item)
		if err != nil {
			return nil, false
		}
		rest, one, ok := replacementOf(members)
		if !ok || len(rest) > 0 {
			return nil, false
		}
		all = append(all, one)
	}
	return all, true
}

// replacementOf returns the old and the new text among members. rest holds the others. ok is
// false if one of the two is missing.
func replacementOf(members []jsonrpc.Member) (rest []jsonrpc.Member, r replacement, ok bool) {
	was, will := false, false
	for _, m := range members {
		before, after := textOf(m, oldTextParameters()), textOf(m, newTextParameters())
		switch {
		case before != nil && !was:
			r.was, was = *before, true
		case after != nil && !will:
			r.will, will = *after, true
		default:
			rest = append(rest, m)
		}
	}
	return rest, r, was && will
}

// textOf returns the value of a string member with one of these names; nil: it has another
// name, is no string, or contains invalid characters.
func textOf(m jsonrpc.Member, names []string) *string {
	var text *string
	if !slices.Contains(names, m.Name) || json.Unmarshal(m.Value, &text) != nil || text == nil || strings.ContainsRune(*text, utf8.RuneError) {
		return nil // for example half of a surrogate pair, which would be shown as another character
	}
	return text
}

// hasPath reports whether a member has the name of a path parameter.
func hasPath(members []jsonrpc.Member) bool {
	return slices.ContainsFunc(members, func(m jsonrpc.Member) bool { return textOf(m, []string{"file_path", "path", "filePath"}) != nil })
}

// objectOf returns the JSON object with these members.
func objectOf(members []jsonrpc.Member) json.RawMessage {
	out := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(jsonrpc.AppendString(out, m.Name), ':'), m.Value...)
	}
	return append(out, '}')
}

// diff returns the replacement as a diff with context, without line numbers: those of the
// file are not known. Blanks and tabs at the end of changed lines are visible.
func (r replacement) diff() string {
	was, will := r.was, r.will
	if was != "" && will != "" && !strings.HasSuffix(was, "\n") && !strings.HasSuffix(will, "\n") {
		was, will = was+"\n", will+"\n"
	}
	var b strings.Builder
	text := textdiff.Unified([]byte(was), textdiff.Between([]byte(was), will), textdiff.Options{}).Text
	hunks := 0
	for line := range strings.Lines(text) {
		line = approve.EscapeInvisible(strings.TrimSuffix(line, "\n"))
		switch {
		case strings.HasPrefix(line, "@@"): // the line numbers are not those of the file
			if hunks++; hunks > 1 {
				b.WriteString("    …\n")
			}
			continue
		case strings.HasPrefix(line, "\\"):
			line = `\ without a line feed`
		case strings.HasPrefix(line, "+"), strings.HasPrefix(line, "-"):
			line = showTrailingBlanks(line)
		}
		b.WriteString("  " + line + "\n")
	}
	if hunks == 0 {
		b.WriteString("  the text stays as it is\n")
	}
	return b.String()
}

// showTrailingBlanks makes the blanks and tabs at the end of a line visible.
func showTrailingBlanks(line string) string {
	body := strings.TrimRight(line[1:], " \t")
	return line[:1] + body + strings.NewReplacer(" ", "·", "\t", "→").Replace(line[1+len(body):])
}

// firstShown returns the part of a proposal that is shown first: all of it, or its beginning
// and how much is missing. all reports whether it is complete.
func firstShown(text string) (shown string, all bool) {
	lines := strings.SplitAfter(text, "\n")
	if len(lines) <= maxProposal && len(text) <= maxProposalBytes {
		return text, true
	}
	shown = textfmt.Head(strings.Join(lines[:min(shownBeginningLines, len(lines))], ""), maxProposalBytes/4)
	left := strings.Count(text[len(shown):], "\n") + 1
	return fmt.Sprintf("%s\n  … %s (%s) not shown; press v to see all before you can allow it", strings.TrimRight(shown, "\n"),
		textfmt.Count(left, "more line"), textfmt.Count(len(text)-len(shown), "byte")), false
}
