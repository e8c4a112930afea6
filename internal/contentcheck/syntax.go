package contentcheck

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/scanner"
	"go/token"
	"io"
	"path"
	"strings"

	"github.com/BurntSushi/toml"
	"go.yaml.in/yaml/v3"
)

// maxParsedBytes bounds the text that is parsed, in bytes.
const maxParsedBytes = 1 << 20

// SyntaxWarning returns a warning if a Go, JSON, YAML or TOML file no longer
// parses but did before. The extension of name selects the parser. before is
// nil for a new file, which is always parsed. Both texts are UTF-8. It returns
// "" if the file parses, if the old content did not parse either, for other
// kinds of files, and for texts of more than maxParsedBytes.
func SyntaxWarning(name string, before, after []byte) string {
	language, parse := parserFor(name)
	if parse == nil || len(after) > maxParsedBytes || len(before) > maxParsedBytes || bytes.Equal(before, after) {
		return ""
	}
	fault := parseRecovering(parse, after)
	if fault == nil || before != nil && parseRecovering(parse, before) != nil {
		return ""
	}
	return fmt.Sprintf("%s no longer parses as %s: %s", name, language, firstLine(fault.Error()))
}

// parserFor returns the parser for a file by the extension of its name, and the
// language's name. parse is nil if no parser is known.
func parserFor(name string) (language string, parse func([]byte) error) {
	switch strings.ToLower(path.Ext(strings.ReplaceAll(name, `\`, "/"))) {
	case ".go":
		return "Go", parseGo
	case ".json", ".ipynb", ".geojson", ".webmanifest":
		return "JSON", parseJSON
	case ".yaml", ".yml":
		return "YAML", parseYAML
	case ".toml":
		return "TOML", parseTOML
	}
	return "", nil
}

// parseRecovering parses text without its UTF-8 byte order mark and returns the
// parser's error. If the parser panics, it returns nil.
func parseRecovering(parse func([]byte) error, text []byte) (fault error) {
	defer func() {
		if recover() != nil {
			fault = nil
		}
	}()
	return parse(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")))
}

// parseGo returns the first syntax error of Go source, with its line; nil for
// valid source.
func parseGo(text []byte) error {
	_, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	var list scanner.ErrorList
	if errors.As(err, &list) && len(list) > 0 {
		return fmt.Errorf("line %d: %s", list[0].Pos.Line, list[0].Msg)
	}
	return err
}

// parseJSON returns the first syntax error of a JSON text, with its line; nil
// for valid JSON.
func parseJSON(text []byte) error {
	var value json.RawMessage
	err := json.Unmarshal(text, &value)
	var fault *json.SyntaxError
	if errors.As(err, &fault) {
		return fmt.Errorf("line %d: %w", bytes.Count(text[:min(int(fault.Offset), len(text))], []byte{'\n'})+1, err)
	}
	return err
}

// parseYAML returns the first syntax error of a YAML text, nil for valid YAML.
// It uses yaml/v3 because it bounds nesting; the other YAML library takes
// seconds for a megabyte.
func parseYAML(text []byte) error {
	for d := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var node yaml.Node
		if err := d.Decode(&node); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
		}
	}
}

// parseTOML returns the first syntax error of a TOML text, with its line; nil
// for valid TOML.
func parseTOML(text []byte) error {
	var value map[string]any
	_, err := toml.Decode(string(text), &value)
	var fault toml.ParseError
	if errors.As(err, &fault) {
		return fmt.Errorf("line %d: %s", fault.Position.Line, fault.Message)
	}
	return err
}

// firstLine returns the first line of text that is not blank, without
// surrounding blanks.
func firstLine(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	return text
}
