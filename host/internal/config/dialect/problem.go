package dialect

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/toolroom-mcp/toolroom/internal/editdistance"
)

// Problem is an error in a configuration, with its place. Its text can contain names from
// the file, never values, which could be credentials.
type Problem struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"` // 0: unknown
	Server  string `json:"server,omitempty"`
	Tool    string `json:"tool,omitempty"` // name of the declared tool
	Field   string `json:"field,omitempty"`
	Text    string `json:"text"`
	Warning bool   `json:"warning,omitempty"` // the configuration can be used nevertheless
}

// String returns FILE:LINE: server NAME: tool NAME: FIELD: TEXT, without the parts that
// are not known.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d", p.Line)
		}
		b.WriteString(": ")
	}
	if p.Server != "" {
		fmt.Fprintf(&b, "server %s: ", shownName(p.Server))
	}
	if p.Tool != "" {
		fmt.Fprintf(&b, "tool %s: ", shownName(p.Tool))
	}
	if p.Field != "" {
		b.WriteString(p.Field + ": ")
	}
	return b.String() + p.Text
}

// Problems is an error that consists of several problems.
type Problems []Problem

// Error lists the first 20 problems, one per line.
func (p Problems) Error() string {
	const most = 20
	var lines []string
	for i, problem := range p {
		if i == most {
			lines = append(lines, fmt.Sprintf("and %d more", len(p)-most))
			break
		}
		lines = append(lines, problem.String())
	}
	return strings.Join(lines, "\n")
}

// Err returns the problems that are no warnings as an error of type Problems; nil: there are none.
func (p Problems) Err() error {
	errs := slices.DeleteFunc(slices.Clone(p), func(one Problem) bool { return one.Warning })
	if len(errs) == 0 {
		return nil
	}
	return errs
}

// Warnings returns the problems that are warnings.
func (p Problems) Warnings() Problems {
	return slices.DeleteFunc(slices.Clone(p), func(one Problem) bool { return !one.Warning })
}

// normalizeName makes spellings of one name equal: api_key, apiKey, API-KEY.
func normalizeName(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("_-.", r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// nearestName returns the candidate most similar to name; "": none differs in less than 3 letters,
// or 2 for a short name.
func nearestName(name string, candidates []string) string {
	best, least := "", 3
	if len(normalizeName(name)) <= 4 {
		least = 2
	}
	for _, c := range candidates {
		if d := editdistance.Between(normalizeName(name), normalizeName(c), least); d < least {
			best, least = c, d
		}
	}
	return best
}

// didYouMean returns "; did you mean NAME?" with the candidate nearest to a misspelt name,
// "" if no candidate is near.
func didYouMean(name string, candidates []string) string {
	if near := nearestName(name, candidates); near != "" {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	return ""
}
