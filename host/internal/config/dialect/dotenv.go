package dialect

import (
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
)

// ParseEnvFile parses lines of the form NAME=value, with or without export, and comments
// with #. A value in single quotes is taken unchanged; in double quotes, \n, \t, \" and \\
// are replaced. Variables are not expanded. badLine is the number of the first line of
// another form, or 0.
func ParseEnvFile(text string) (set map[string]secret.Text, badLine int) {
	set = map[string]secret.Text{}
	text = strings.TrimPrefix(text, "\ufeff")
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		line = strings.TrimSpace(strings.TrimPrefix(line, "export "))
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || name == "" || strings.ContainsAny(name, " \t\"'") {
			return nil, i + 1
		}
		switch {
		case len(value) >= 2 && value[0] == '\'':
			end := strings.IndexByte(value[1:], '\'')
			if end < 0 {
				return nil, i + 1
			}
			value = value[1 : 1+end]
		case len(value) >= 2 && value[0] == '"':
			end := strings.LastIndexByte(value, '"')
			if end == 0 {
				return nil, i + 1
			}
			value = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`, `\\`, `\`).Replace(value[1:end])
		default:
			if comment := strings.Index(value, " #"); comment >= 0 {
				value = strings.TrimSpace(value[:comment])
			}
		}
		set[name] = secret.Text(value)
	}
	return set, 0
}
