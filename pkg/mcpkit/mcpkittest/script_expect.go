package mcpkittest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// expectation holds a script's expectations of one answer, notification or
// exit.
type expectation struct {
	id         string // as in the script; "" in one-shot mode
	kind       string // ok, error, rpc, notify or exit
	detail     string // code, number, method or status
	comment    []string
	text       []string // | lines; nil: not compared
	conditions []condition
}

// condition is one further condition on an answer, given on a line of its own:
// "~", "!~", meta, json or image.
type condition struct{ kind, arg string }

// actualAnswer is one answer in the form with which expectations are compared.
// kind and detail are as in expectation.
type actualAnswer struct {
	kind, detail string
	text         string
	meta         any             // decoded _meta["toolroom/result"]
	whole        json.RawMessage // the whole result, error or params
	images       []string        // MIME types
}

// parseExpectations parses section out or out.oneshot; withID says whether
// expectations begin with an id.
func parseExpectations(text string, withID bool) ([]*expectation, error) {
	var blocks []*expectation
	var comment []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		verb, arg, _ := strings.Cut(line, " ")
		switch {
		case strings.TrimSpace(line) == "":
			continue
		case line[0] == '#':
			comment = append(comment, line)
			continue
		case slices.Contains([]string{"|", "~", "!~", "meta", "json", "image"}, verb):
			if len(blocks) == 0 {
				return nil, fmt.Errorf("%q belongs to no answer", line)
			}
			b := blocks[len(blocks)-1]
			if verb == "|" {
				b.text = append(b.text, arg)
				continue
			}
			if (verb == "meta" || verb == "json") && validJSON(arg) != nil {
				return nil, fmt.Errorf("%q: not valid JSON", line)
			}
			b.conditions = append(b.conditions, condition{verb, arg})
			continue
		}
		b, err := parseFirstLine(strings.Fields(line), withID)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		b.comment, comment = comment, nil
		blocks = append(blocks, b)
	}
	return blocks, nil
}

// parseFirstLine parses the first line of an expectation, such as "1 error NOT_FOUND".
// withID says whether it begins with the id of an answer.
func parseFirstLine(words []string, withID bool) (*expectation, error) {
	b := &expectation{}
	special := words[0] == "notify" || words[0] == "exit"
	if withID && !special {
		b.id, words = words[0], words[1:]
	}
	if len(words) == 0 {
		return nil, fmt.Errorf("ID is followed by ok, error CODE or rpc NUMBER")
	}
	b.kind = words[0]
	arity := map[string]int{"ok": 1, "error": 2, "rpc": 2, "notify": 2, "exit": 2}[b.kind]
	if arity != len(words) {
		return nil, fmt.Errorf("not ok, error CODE, rpc NUMBER, notify METHOD or exit N")
	}
	if arity == 2 {
		b.detail = words[1]
	}
	return b, nil
}

// firstLine returns the first line of the expectation in a script.
func (b *expectation) firstLine() string {
	head := b.kind
	if b.id != "" {
		head = b.id + " " + head
	}
	if b.detail != "" {
		head += " " + b.detail
	}
	return head
}

// String returns the expectation as in a script.
func (b *expectation) String() string {
	var out strings.Builder
	for _, line := range b.comment {
		out.WriteString(line + "\n")
	}
	out.WriteString(b.firstLine() + "\n")
	for _, line := range b.text {
		out.WriteString(strings.TrimRight("| "+line, " ") + "\n")
	}
	for _, c := range b.conditions {
		out.WriteString(c.kind + " " + c.arg + "\n")
	}
	return out.String()
}

// mismatch returns a text with the expectations that got does not meet, "" if
// it meets all.
func (b *expectation) mismatch(got actualAnswer, expandVars, restoreVars *strings.Replacer) string {
	var faults []string
	if b.kind != got.kind || b.detail != got.detail {
		faults = append(faults, fmt.Sprintf("want %s %s, got %s %s:\n%s", b.kind, b.detail, got.kind, got.detail, restoreVars.Replace(got.text)))
	}
	if b.text != nil && !matchLines(b.text, strings.Split(restoreVars.Replace(got.text), "\n")) {
		faults = append(faults, "text (-want +got):\n"+diffLines(strings.Join(b.text, "\n"), restoreVars.Replace(got.text)))
	}
	for _, c := range b.conditions {
		if fault := c.mismatch(got, expandVars); fault != "" {
			faults = append(faults, fault)
		}
	}
	return strings.Join(faults, "\n")
}

// mismatch returns a text that says how got fails the condition, "" if got
// meets it.
func (c condition) mismatch(got actualAnswer, expandVars *strings.Replacer) string {
	arg := expandVars.Replace(c.arg)
	switch c.kind {
	case "~":
		if !strings.Contains(got.text, arg) {
			return fmt.Sprintf("the text lacks %q:\n%s", arg, got.text)
		}
	case "!~":
		if strings.Contains(got.text, arg) {
			return fmt.Sprintf("the text must not have %q:\n%s", arg, got.text)
		}
	case "meta":
		if fault := subsetMismatch(decodeJSON([]byte(arg)), got.meta, "toolroom/result"); fault != "" {
			return fault
		}
	case "json":
		if fault := subsetMismatch(decodeJSON([]byte(arg)), decodeJSON(got.whole), ""); fault != "" {
			return fault
		}
	case "image":
		if !slices.Contains(got.images, arg) {
			return fmt.Sprintf("no image %s among %v", arg, got.images)
		}
	}
	return ""
}

// matchLines reports whether lines match patterns: ... matches any number of
// lines, [..] any text within a line. Trailing spaces are ignored.
func matchLines(patterns, lines []string) bool {
	// before[j]: the patterns so far match the first j lines.
	before := make([]bool, len(lines)+1)
	before[0] = true
	for _, pattern := range patterns {
		after := make([]bool, len(lines)+1)
		if pattern == "..." {
			reached := false
			for j := range after {
				reached = reached || before[j]
				after[j] = reached
			}
		} else {
			match := lineMatcher(pattern)
			for j, line := range lines {
				after[j+1] = before[j] && match(strings.TrimRight(line, " \r"))
			}
		}
		before = after
	}
	// A final newline gives an empty last line, which a script may omit.
	return before[len(lines)] || len(lines) > 0 && lines[len(lines)-1] == "" && before[len(lines)-1]
}

// lineMatcher returns a function that reports whether a line matches a pattern.
func lineMatcher(pattern string) func(string) bool {
	pattern = strings.TrimRight(pattern, " \r")
	if !strings.Contains(pattern, "[..]") {
		return func(line string) bool { return line == pattern }
	}
	parts := strings.Split(pattern, "[..]")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile("(?s)^" + strings.Join(parts, ".*") + "$").MatchString
}

// subsetMismatch returns where got lacks something that want has, or "". at is
// the position of both. The string "*" matches any value; lists are compared
// item by item.
func subsetMismatch(want, got any, at string) string {
	if want == "*" && got != nil {
		return ""
	}
	switch want := want.(type) {
	case map[string]any:
		object, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s: want an object, got %s", at, showJSON(got))
		}
		for name, value := range want {
			member, there := object[name]
			if !there && value != nil {
				return fmt.Sprintf("%s/%s: missing in %s", at, name, showJSON(got))
			}
			if fault := subsetMismatch(value, member, at+"/"+name); fault != "" {
				return fault
			}
		}
		return ""
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return fmt.Sprintf("%s: want %s, got %s", at, showJSON(want), showJSON(got))
		}
		for i := range want {
			if fault := subsetMismatch(want[i], list[i], at+"/"+strconv.Itoa(i)); fault != "" {
				return fault
			}
		}
		return ""
	}
	if want != got {
		return fmt.Sprintf("%s: want %s, got %s", at, showJSON(want), showJSON(got))
	}
	return ""
}

// showJSON returns v as JSON for a message of a test, cut if it is long.
func showJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return fmt.Sprintf("%.400s", text)
}

// decodeJSON returns the decoded value, or nil if raw is not JSON.
func decodeJSON(raw []byte) any {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return nil
	}
	return v
}

// rawJSON returns text as JSON, unchanged.
func rawJSON(text string) json.RawMessage { return json.RawMessage(text) }

// validJSON returns an error if text is not JSON.
func validJSON(text string) error {
	if !json.Valid([]byte(text)) {
		return fmt.Errorf("not valid JSON: %s", text)
	}
	return nil
}
