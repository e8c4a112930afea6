package main

import (
	"fmt"
	"strconv"
	"strings"
)

// report is the text of bench/RESULTS.md.
type report string

// section returns the text below the heading title, up to the next heading.
func (r report) section(title string) (string, error) {
	_, after, found := strings.Cut("\n"+string(r), "\n## "+title+"\n")
	if !found {
		return "", fmt.Errorf("no section %q", title)
	}
	body, _, _ := strings.Cut(after, "\n## ")
	return body, nil
}

// cell returns a figure of the first table in the section title that follows a
// line containing about: the one in the row that begins with name and in the
// column whose heading begins with column.
func (r report) cell(title, about, name, column string) (float64, error) {
	body, err := r.section(title)
	if err != nil {
		return 0, err
	}
	lines := strings.Split(body, "\n")
	at := -1
	for i := 0; i < len(lines); i++ {
		if at < 0 && !strings.HasPrefix(lines[i], "|") && strings.Contains(lines[i], about) {
			for at = i + 1; at < len(lines) && !strings.HasPrefix(lines[at], "|"); at++ {
			}
			break
		}
	}
	if at < 0 || at == len(lines) {
		return 0, fmt.Errorf("%s: no table about %q", title, about)
	}
	index := -1
	for i, heading := range cells(lines[at]) {
		if i > 0 && strings.HasPrefix(heading, column) {
			index = i
			break
		}
	}
	if index < 0 {
		return 0, fmt.Errorf("%s, %q: no column %q", title, about, column)
	}
	for _, line := range lines[at+1:] {
		if !strings.HasPrefix(line, "|") {
			break
		}
		row := cells(line)
		if len(row) > index && strings.HasPrefix(row[0], name) {
			value, err := strconv.ParseFloat(row[index], 64)
			if err != nil {
				return 0, fmt.Errorf("%s, %q, %q: %w", title, about, name, err)
			}
			return value, nil
		}
	}
	return 0, fmt.Errorf("%s, %q: no row %q", title, about, name)
}

// median returns the median of a program in a table of programs.
func (r report) median(title, about, program string) (float64, error) {
	return r.cell(title, about, program, "median")
}

// machine returns the line of a section that says on what it was measured.
func (r report) machine(title string) (string, error) {
	body, err := r.section(title)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(body) {
		if text, ok := strings.CutPrefix(line, "Machine: "); ok {
			return strings.TrimSpace(text), nil
		}
	}
	return "", fmt.Errorf("%s: no line about the machine", title)
}

// cells returns the cells of a table's line, without the marks of bold text.
func cells(line string) []string {
	all := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
	for i := range all {
		all[i] = strings.Trim(strings.TrimSpace(all[i]), "*")
	}
	return all
}

// figure writes a number as people read it: 17.5, 2,796.
func figure(v float64) string {
	text := strconv.FormatFloat(v, 'f', -1, 64)
	whole, rest, _ := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if rest != "" {
		rest = "." + rest
	}
	return whole + rest
}
