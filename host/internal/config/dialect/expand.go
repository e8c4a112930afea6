package dialect

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
)

// Variables holds the values of variables.
type Variables struct {
	Env    func(name string) (string, bool)
	File   func(path string) (string, error) // the value of {file:path}; nil: {file:path} stays
	Folder string                            // ${workspaceFolder}
	Home   string                            // ${userHome}, and ~/ in paths
	Inputs map[string]Input
}

// InputVariable returns the name of the environment variable with the value of an input,
// which VS Code would ask the user for.
func InputVariable(id string) string {
	return "TOOLROOM_INPUT_" + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, id)
}

// Expand returns a text with its variables replaced, as Server.Expand does. It returns an
// error for a variable that is not set and has no default, an unreadable file or a
// malformed reference.
func (v Variables) Expand(text string) (string, error) { return v.expand(text, 0) }

// Expand returns the server with its variables replaced: in the command, the
// environment, cwd, env_file, url, headers and api_key.
//
//	${X} $X ${env:X} ${env://X} {env:X}    the variable X of the host's environment
//	${X:-d} ${env:X:-d} ${env://X:-d}      the same, or d if it is not set or empty
//	{file:path}                            the content of the file, without white space around it
//	${input:ID}                            an input of VS Code's, from TOOLROOM_INPUT_ID or its default
//	${workspaceFolder} ${workspaceFolderBasename} ${userHome} ${pathSeparator} ${/}
//	$$                                     a dollar sign
//
// A variable that is not set and has no default is a problem. Expanded text
// is not expanded again. Contents gets the contents of the files.
func (s Server) Expand(v Variables) (Server, Problems) {
	var problems Problems
	s.Contents = nil
	if !s.Files {
		v.File = nil
	}
	if read := v.File; read != nil {
		v.File = func(path string) (string, error) {
			text, err := read(path)
			if text = strings.TrimSpace(text); text != "" {
				s.Contents = append(s.Contents, secret.Text(text))
			}
			return text, err
		}
	}
	fill := func(field, text string) string {
		out, err := v.expand(text, 0)
		if err != nil {
			problems = append(problems, s.Problem(field, "%v", err))
			return ""
		}
		return out
	}
	command := slices.Clone(s.Command)
	for i, text := range command {
		field := "command"
		if i > 0 && s.lines["args"] > 0 {
			field = "args"
		}
		command[i] = fill(field, text)
	}
	s.Command = command
	all := func(field string, set map[string]secret.Text) map[string]secret.Text {
		if set == nil {
			return nil
		}
		out := map[string]secret.Text{}
		for _, name := range slices.Sorted(maps.Keys(set)) {
			text, err := v.expand(set[name].Reveal(), 0)
			if err != nil {
				problems = append(problems, s.Problem(field, "%s: %v", shownName(name), err))
			}
			out[name] = secret.Text(text)
		}
		return out
	}
	s.Env, s.Headers = all("env", s.Env), all("headers", s.Headers)
	s.APIKey = secret.Text(fill("api_key", s.APIKey.Reveal()))
	s.OAuth = s.OAuth.expand(fill)
	s.TokenExchange.Audience = fill("token_exchange", s.TokenExchange.Audience)
	s.TokenExchange.Resource = fill("token_exchange", s.TokenExchange.Resource)
	s.HeadersHelper = slices.Clone(s.HeadersHelper)
	for i, text := range s.HeadersHelper {
		if i != 2 || s.HeadersHelper[1] != "-c" && s.HeadersHelper[1] != "/c" { // the shell has variables of its own
			s.HeadersHelper[i] = fill("headers_helper", text)
		}
	}
	s.Sandbox = s.Sandbox.expand(fill, v.expandHome)
	s.URL = fill("url", s.URL)
	s.Dir = v.expandHome(fill("cwd", s.Dir))
	s.EnvFile = v.expandHome(fill("env_file", s.EnvFile))
	if len(s.Command) > 0 {
		s.Command[0] = v.expandHome(s.Command[0])
	}
	return s, problems
}

// expandHome replaces ~ or ~/ at the beginning of a path by the home directory, if it is known.
func (v Variables) expandHome(path string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok && v.Home != "" && (rest == "" || rest[0] == '/' || rest[0] == '\\') {
		return filepath.Join(v.Home, rest)
	}
	return path
}

// expand does the same as Expand. depth is the number of defaults around the text.
func (v Variables) expand(text string, depth int) (string, error) {
	if depth > 8 {
		return "", fmt.Errorf("defaults are nested too deep")
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		var name string
		bare := false
		rest := text[i:]
		switch {
		case strings.HasPrefix(rest, "$$"):
			b.WriteByte('$')
			i += 2
			continue
		case strings.HasPrefix(rest, "${"):
			end := closingBrace(rest)
			if end < 0 {
				return "", fmt.Errorf("unclosed ${; write $$ for a dollar sign")
			}
			name, i = rest[2:end], i+end+1
		case strings.HasPrefix(rest, "{env:"):
			end := strings.IndexByte(rest, '}')
			if end < 0 {
				return "", fmt.Errorf("{env: without a closing brace")
			}
			name, i = rest[1:end], i+end+1
		case v.File != nil && strings.HasPrefix(rest, "{file:"):
			end := strings.IndexByte(rest, '}')
			if end < 0 {
				return "", fmt.Errorf("{file: without a closing brace")
			}
			held, err := v.fileContent(rest[len("{file:"):end])
			if err != nil {
				return "", err
			}
			b.WriteString(held)
			i += end + 1
			continue
		case rest[0] == '$' && identifierLength(rest[1:]) > 0:
			end := 1 + identifierLength(rest[1:])
			name, i, bare = rest[1:end], i+end, true
		default:
			b.WriteByte(rest[0])
			i++
			continue
		}
		// What follows a bare dollar sign may be a part of a password.
		if _, set := v.Env(name); bare && !set && name != strings.ToUpper(name) {
			return "", fmt.Errorf("a variable ($ and a name, not shown) is not set; write $$ for a dollar sign")
		}
		value, err := v.lookup(name, depth)
		if err != nil {
			return "", err
		}
		b.WriteString(value)
	}
	return b.String(), nil
}

// fileContent returns the content of the file in {file:path}, without white space around
// it. It returns an error if v.File does.
func (v Variables) fileContent(path string) (string, error) {
	if strings.TrimSpace(path) == "" {
		return "", fmt.Errorf("{file:} without a file name")
	}
	text, err := v.File(v.expandHome(path))
	if err != nil {
		return "", fmt.Errorf("{file:%s}: %w", shownName(path), err)
	}
	return strings.TrimSpace(text), nil
}

// closingBrace returns the index of the brace that closes the ${ at the start; -1 without a closing brace.
func closingBrace(text string) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch {
		case strings.HasPrefix(text[i:], "${"), strings.HasPrefix(text[i:], "{env:"), strings.HasPrefix(text[i:], "{file:"):
			depth++
			i++
		case text[i] == '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// identifierLength returns the length of the variable's name at the start; 0 without a name.
func identifierLength(text string) int {
	for i, r := range text {
		if !(r == '_' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || i > 0 && r >= '0' && r <= '9') {
			return i
		}
	}
	return len(text)
}

// lookup returns the value of a ${…}, given the text between the braces. It returns an
// error if the variable is not set and there is no default, or for an invalid name.
func (v Variables) lookup(inside string, depth int) (string, error) {
	switch inside {
	case "workspaceFolder", "workspaceRoot", "cwd":
		return v.Folder, nil
	case "workspaceFolderBasename":
		return filepath.Base(v.Folder), nil
	case "userHome":
		return v.Home, nil
	case "pathSeparator", "/":
		return string(filepath.Separator), nil
	}
	if id, ok := strings.CutPrefix(inside, "input:"); ok {
		return v.inputValue(id)
	}
	inside = strings.TrimPrefix(strings.TrimPrefix(inside, "env:"), "//")
	name, fallback, has := strings.Cut(inside, ":-")
	if n := identifierLength(name); n == 0 || n < len(name) {
		return "", fmt.Errorf("invalid variable name; use ${NAME} or ${NAME:-default}, and $$ for a dollar sign")
	}
	value, set := v.Env(name)
	switch {
	case has && value == "":
		return v.expand(fallback, depth+1)
	case !set:
		return "", fmt.Errorf("variable %s is not set; set it, give a default with ${%s:-default}, or write $$ for a dollar sign", shownName(name), shownName(name))
	}
	return value, nil
}

// inputValue returns the value of an input: from the environment, or its default. It returns
// an error if there is neither.
func (v Variables) inputValue(id string) (string, error) {
	in, declared := v.Inputs[id]
	if value, ok := v.Env(InputVariable(id)); ok {
		return value, nil
	}
	switch {
	case in.Default != nil:
		return *in.Default, nil
	case !declared:
		return "", fmt.Errorf("input %s is not declared under inputs", shownName(id))
	}
	about := ""
	if in.Description != "" {
		about = " (" + shownName(in.Description) + ")"
	}
	return "", fmt.Errorf("input %s%s: set the environment variable %s", shownName(id), about, InputVariable(id))
}
