package httpapi

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// eventsHeader requests events from clients that cannot change the body.
const eventsHeader = "X-Toolroom-Events"

// maxModel bounds the name of a model with the chosen tools, in bytes.
const maxModel = 4096

// takeExtensions reads the host's own members of a request and its events header, and
// removes these members. It returns the patterns of the chosen tools; nil: all tools. It
// returns an error with status 400 for one of the wrong type.
func (q *requestOptions) takeExtensions(v *tree.Value, r *http.Request) (tools []string, err error) {
	if header := r.Header.Get(eventsHeader); header != "" {
		if q.events, err = strconv.ParseBool(header); err != nil {
			return nil, invalid(eventsHeader, "%s must be true or false, not %.20q", eventsHeader, header)
		}
	}
	if e := v.Get("x_events"); !isAbsent(e) {
		if e.Flag() == nil {
			return nil, invalid("x_events", "x_events must be true or false")
		}
		q.events = e.True()
	}
	if s := v.Get("x_session"); !isAbsent(s) {
		if q.session = s.Str(); q.session == "" {
			return nil, invalid("x_session", "x_session must be the id of a session")
		}
	}
	if list := v.Get("x_tools"); !isAbsent(list) {
		if !list.Is(tree.Array) {
			return nil, invalid("x_tools", "x_tools must be a list of names")
		}
		tools = []string{}
		for _, item := range list.Items {
			if !item.Is(tree.String) || item.Text == "" {
				return nil, invalid("x_tools", "x_tools must be a list of names")
			}
			tools = append(tools, item.Text)
		}
	}
	for _, name := range []string{"x_events", "x_session", "x_tools"} {
		v.Delete(name)
	}
	if m := v.Get("model"); m.Is(tree.String) && len(m.Text) > maxModel {
		return nil, invalid("model", "model must be a string of at most %d bytes", maxModel)
	}
	return tools, nil
}

// setRequest stores the decoded request. Of the members that were not read (losses), it returns
// an error for one that could not be read, and ignores the others, which are hints: options
// that would change the answer were refused before.
func (q *requestOptions) setRequest(r *llm.Request, losses llm.Losses) error {
	q.Request = *r
	for _, l := range losses {
		if l.Kind != llm.Lost {
			continue
		}
		name, rest, _ := strings.Cut(strings.TrimPrefix(l.Path, "/"), "/")
		name = tree.Unescape(name)
		switch {
		case slices.Contains([]string{"messages", "system"}, name): // clients send parts of answers back
		case rest == "" && slices.Contains([]string{"temperature", "top_p", "max_tokens", "max_completion_tokens", "tool_choice", "function_call", "stop", "stop_sequences"}, name):
			return invalid(name, "%s cannot be read", name)
		default:
			q.ignore(name)
		}
	}
	return q.checkToolNamesUnique()
}

// checkToolNamesUnique returns an error for two client tools with the same name.
func (q *requestOptions) checkToolNamesUnique() error {
	seen := map[string]bool{}
	for _, t := range q.Tools {
		if seen[t.Name] {
			return invalid("tools", "two tools have the name %.80s", t.Name)
		}
		seen[t.Name] = true
	}
	return nil
}

// ignore records that a member of the request is ignored, for the header that tells the
// client. It keeps at most 30 names.
func (q *requestOptions) ignore(name string) {
	clean := strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' || c == ',' {
			return '?'
		}
		return c
	}, truncate(name, 60))
	if !slices.Contains(q.ignored, clean) && len(q.ignored) < 30 {
		q.ignored = append(q.ignored, clean)
	}
}

// isAbsent reports whether a member is missing or null.
func isAbsent(v *tree.Value) bool { return v == nil || v.Kind == tree.Null }

// isString reports whether a value is the string text.
func isString(v *tree.Value, text string) bool { return v.Is(tree.String) && v.Text == text }

// hasName reports whether v has a name that is not empty.
func hasName(v *tree.Value) bool { return v.Get("name").Is(tree.String) && v.Get("name").Text != "" }

// checkRange returns an error if the member name is there and no number from 0 to most.
func checkRange(v *tree.Value, name string, most float64) error {
	n := v.Get(name)
	if isAbsent(n) {
		return nil
	}
	if f := n.Float(); f == nil || *f < 0 || *f > most {
		return invalid(name, "%s must be a number from 0 to %g", name, most)
	}
	return nil
}

// checkPositive returns an error if the member name is there and no positive integer.
func checkPositive(v *tree.Value, name string) error {
	n := v.Get(name)
	if isAbsent(n) {
		return nil
	}
	if !n.Is(tree.Number) || n.Int() <= 0 {
		return invalid(name, "%s must be a whole number above 0", name)
	}
	return nil
}
