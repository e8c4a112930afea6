package main

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// lineRange has arguments of other tools that select lines. They are converted
// to offset and limit. The schema does not show them.
type lineRange struct {
	ViewRange json.RawMessage `json:"view_range,omitempty" alias:"line_range,range" hidden:"true"`
	StartLine *int64          `json:"start_line,omitempty" alias:"line_start,start_line_one_indexed,start_line_number,start,from_line,first_line" hidden:"true"`
	EndLine   *int64          `json:"end_line,omitempty" alias:"line_end,end_line_one_indexed_inclusive,end_line_one_indexed,end_line_number,end,to_line,last_line" hidden:"true"`
	StartZero *int64          `json:"start_line_number_base_zero,omitempty" hidden:"true"`
	EndZero   *int64          `json:"end_line_number_base_zero,omitempty" hidden:"true"`
	Entire    bool            `json:"should_read_entire_file,omitempty" alias:"read_entire_file" hidden:"true"`
}

// noEnd is the last line of a range without an end.
const noEnd = 1 << 53

// spanPattern matches a range as text: 3-7, 3:7, 3,7, 3..7, or 3.
var spanPattern = lazyregexp.New(`^\s*(\d{1,18})\s*(?:(?:-|–|:|,|\.\.)\s*(-1|\d{1,18})?)?\s*$`)

// span is a range of lines or pages, from 1, both ends included. The zero value
// means not given.
type span struct {
	first, last int64 // last may be noEnd
	open        bool  // no end was given
}

// hasValue reports whether an argument of any type has a value: not null, an
// empty string or an empty list.
func hasValue(raw json.RawMessage) bool {
	text := strings.TrimSpace(string(raw))
	return text != "" && text != "null" && text != `""` && text != "[]"
}

// parseSpan parses [3,7], [3,-1], "3-7", "3-", 3 or "3". It returns false for
// anything else.
func parseSpan(raw json.RawMessage) (s span, ok bool) {
	text := strings.TrimSpace(string(raw))
	var quoted string
	if json.Unmarshal(raw, &quoted) == nil {
		text = strings.TrimSpace(quoted)
	}
	text = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
	parts := spanPattern().FindStringSubmatch(text)
	if parts == nil {
		return s, false
	}
	s.first, _ = strconv.ParseInt(parts[1], 10, 64)
	s.last, s.open = noEnd, parts[2] == ""
	if last, err := strconv.ParseInt(parts[2], 10, 64); err == nil && last >= 0 {
		s.last = last
	}
	s.first = max(s.first, 1)
	return s, true
}

// toSpan combines the arguments to a span. named is the first argument that was given;
// "" means none, and the span is the whole file. It returns INVALID_PARAMS for
// arguments that are malformed or contradict each other.
func (r lineRange) toSpan() (s span, named string, err error) {
	s = span{first: 1, last: noEnd}
	if hasValue(r.ViewRange) {
		ok := false
		if s, ok = parseSpan(r.ViewRange); !ok {
			return s, "", toolerr.New(toolerr.InvalidParams, "view_range must be [first line, last line], with -1 for the end of the file; or use offset and limit")
		}
		named = "view_range"
	}
	for _, end := range []struct {
		name  string
		value *int64
		base  int64
		to    *int64
	}{
		{"start_line", r.StartLine, 1, &s.first}, {"start_line_number_base_zero", r.StartZero, 0, &s.first},
		{"end_line", r.EndLine, 1, &s.last}, {"end_line_number_base_zero", r.EndZero, 0, &s.last},
	} {
		if end.value == nil {
			continue
		}
		if named == "view_range" {
			return s, "", toolerr.New(toolerr.InvalidParams, "view_range and %s both select lines: give only offset and limit", end.name)
		}
		*end.to = *end.value + 1 - end.base
		switch {
		case *end.value == -1 && end.to == &s.last:
			s.last = noEnd
		case *end.value < 0:
			return s, "", toolerr.New(toolerr.InvalidParams, "%s is %d: lines count from 1; tail shows the last lines", end.name, *end.value)
		}
		if named == "" {
			named = end.name
		}
	}
	s.first = max(s.first, 1)
	if named != "" && s.last < s.first {
		return s, "", s.backwardsError()
	}
	return s, named, nil
}

// setOffsetLimit sets offset and limit from the range, and adds a note about
// it. It returns INVALID_PARAMS if arguments contradict each other.
func (r lineRange) setOffsetLimit(ctx context.Context, offset, limit *int64) error {
	s, named, err := r.toSpan()
	if err != nil {
		return err
	}
	if r.Entire {
		if named != "" || *offset > 0 || *limit > 0 {
			mcpkit.NoteFirstf(ctx, "should_read_entire_file is true: the range is ignored")
		}
		*offset, *limit = 0, 0
		return nil
	}
	if named == "" {
		return nil
	}
	if r.hasNoStart() && *offset > 0 {
		s.first = *offset
	}
	if s.last == noEnd && *limit > 0 && *limit < noEnd-s.first {
		s.last = s.first + *limit - 1
	}
	if s.last < s.first {
		return s.backwardsError()
	}
	count := s.count()
	if *offset > 0 && *offset != s.first || *limit > 0 && *limit != count {
		return toolerr.New(toolerr.InvalidParams, "%s and offset or limit select different lines: give only offset and limit", named)
	}
	*offset, *limit = s.first, count
	if count == noEnd {
		mcpkit.NoteFirstf(ctx, "%s taken as offset=%d, to the end", named, s.first)
	} else {
		mcpkit.NoteFirstf(ctx, "%s taken as offset=%d limit=%d", named, s.first, count)
	}
	return nil
}

// hasNoStart reports whether the range has no first line.
func (r lineRange) hasNoStart() bool {
	return !hasValue(r.ViewRange) && r.StartLine == nil && r.StartZero == nil
}

// backwardsError returns the error for a span that ends before it begins.
func (s span) backwardsError() error {
	return toolerr.New(toolerr.InvalidParams, "the range ends at line %d, before its start at line %d", s.last, s.first)
}

// count returns the number of lines or pages in the span; noEnd if the span has
// no end.
func (s span) count() int64 {
	if s.last == noEnd {
		return noEnd
	}
	return s.last - s.first + 1
}

// parsePages parses the pages of a PDF: a span, or several as "1-3,7" or [1,2,7]. The
// result spans all of them, from the first to the last. Its errors are INVALID_PARAMS.
func parsePages(raw json.RawMessage) (s span, err error) {
	text := strings.Trim(strings.TrimSpace(string(raw)), `[]`)
	text = strings.ReplaceAll(text, `"`, "")
	s = span{first: noEnd}
	for part := range strings.SplitSeq(text, ",") {
		one, ok := parseSpan(jsonString(part))
		if !ok {
			return s, toolerr.New(toolerr.InvalidParams, `pages must be like "3" or "1-5"; or use offset and limit`)
		}
		if one.open && !strings.HasSuffix(strings.TrimSpace(part), "-") {
			one.last = one.first
		}
		s.first, s.last = min(s.first, one.first), max(s.last, one.last)
	}
	if s.last < s.first {
		return s, toolerr.New(toolerr.InvalidParams, "pages ends at %d, before its first page %d", s.last, s.first)
	}
	return s, nil
}

// jsonString encodes text as a JSON string.
func jsonString(text string) json.RawMessage {
	raw, err := json.Marshal(text)
	if err != nil { // cannot happen, since every string can be encoded
		return nil
	}
	return raw
}

// applyPages sets offset and limit from the argument pages. For a file that is not a PDF
// it only adds a note. It returns INVALID_PARAMS if offset or limit is given, too.
func (f *viewedFile) applyPages(ctx context.Context) error {
	if f.pages.first == 0 {
		return nil
	}
	if f.hex || f.metadata || !isPDF(f.head) {
		mcpkit.NoteFirstf(ctx, "pages is for PDF files: ignored")
		return nil
	}
	if f.offset > 0 || f.limit > 0 {
		return toolerr.New(toolerr.InvalidParams, "pages and offset or limit both select pages: give only offset and limit")
	}
	f.offset, f.limit = f.pages.first, f.pages.count()
	return nil
}
