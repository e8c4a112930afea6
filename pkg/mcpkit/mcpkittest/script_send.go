package mcpkittest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// sendLines sends the lines of section in up to "eof", and waits for the answers that
// they ask to wait for; these stay untaken for checkWire. An error means a malformed
// line; a missing answer fails the test.
func (s *script) sendLines(c *Client) error {
	taken := map[string][]Answer{}
	number, closed := 0, false
	for _, line := range joinLines(s.expandVars.Replace(s.sections["in"])) {
		await := true
		if rest, ok := strings.CutPrefix(line, "&"); ok {
			line, await = strings.TrimSpace(rest), false
		}
		head, rest, _ := strings.Cut(line, " ")
		switch {
		case head == "eof" && rest == "":
			c.CloseInput()
			closed = true
		case head == "wait":
			id := strings.TrimSpace(rest)
			taken[id] = append(taken[id], c.Answer(idToWire(id)))
		case isCallLine(line):
			number++
			method, params, err := parseCallLine(head, strings.TrimSpace(rest))
			if err != nil {
				return err
			}
			id := c.Go(method, params)
			if await {
				taken[id] = append(taken[id], c.Answer(id))
			}
		default:
			c.Send([]byte(line))
		}
		if closed {
			break
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, answers := range taken { // put back, for the check
		c.untaken[idToWire(id)] = append(answers, c.untaken[idToWire(id)]...)
	}
	return nil
}

// isCallLine reports whether a line is NAME {…} or METHOD/NAME {…}; other lines
// are sent unchanged.
func isCallLine(line string) bool {
	head, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	if strings.ContainsAny(head, "{}[]\",:") || rest != "" && rest[0] != '{' && rest != "null" {
		return false
	}
	return rest != "" || strings.Contains(head, "/")
}

// parseCallLine returns the request for a line of a name and JSON arguments: a
// tool call, or for a name with a slash the method itself.
func parseCallLine(name, args string) (method string, params any, err error) {
	if strings.Contains(name, "/") {
		if args == "" {
			return name, nil, nil
		}
		return name, rawJSON(args), validJSON(args)
	}
	return "tools/call", CallParams(name, rawJSON(args)), validJSON(args)
}

// idToWire returns a script's id as JSON: valid JSON, such as a number or null,
// unchanged, and other text as a string.
func idToWire(id string) string {
	if validJSON(id) == nil {
		return id
	}
	return fmt.Sprintf("%q", id)
}

// joinLines returns the lines of text without comments and blank lines, and
// with continuation lines joined.
func joinLines(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.TrimSpace(line) == "" || line[0] == '#':
		case (line[0] == ' ' || line[0] == '\t') && len(lines) > 0:
			lines[len(lines)-1] += strings.TrimLeft(line, " \t")
		default:
			lines = append(lines, line)
		}
	}
	return lines
}

// idFromWire is the inverse of idToWire.
func idFromWire(id string) string {
	var name string
	if json.Unmarshal([]byte(id), &name) == nil && name != "" && idToWire(name) == id {
		return name
	}
	return id
}
