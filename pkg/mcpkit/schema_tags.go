package mcpkit

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// isOtherDialect reports whether the value of a jsonschema tag has the syntax
// of another library ("description=…", "required,minimum=1"), which here would
// become the description.
func isOtherDialect(text string) bool {
	word := text
	if end := strings.IndexAny(text, " \t\n"); end >= 0 {
		word = text[:end]
	}
	if strings.Contains(word, "=") {
		return true
	}
	for _, keyword := range []string{"required", "optional"} {
		if rest, ok := strings.CutPrefix(text, keyword); ok && (rest == "" || rest[0] == ',') {
			return true
		}
	}
	return false
}

// knownTags are the tag keys that this package reads.
var knownTags = []string{"json", "jsonschema", "desc", "description", "enum", "default", "min", "max", "alias", "hidden", "verbatim", "bare", "argv"}

// parseTags parses a struct tag into its keys and values. It fails on errors of
// syntax, which reflect.StructTag ignores: a mistyped tag would lose an
// argument's description.
func parseTags(tag reflect.StructTag) (map[string]string, error) {
	tags := map[string]string{}
	for rest := strings.TrimLeft(string(tag), " "); rest != ""; rest = strings.TrimLeft(rest, " ") {
		key, after, ok := strings.Cut(rest, ":")
		if !ok || key == "" || strings.ContainsAny(key, " \"\t") {
			return nil, fmt.Errorf("malformed struct tag at %q", rest)
		}
		quoted, err := strconv.QuotedPrefix(after)
		if err != nil || quoted[0] != '"' {
			return nil, fmt.Errorf("malformed struct tag: %s has no quoted value", key)
		}
		value, err := strconv.Unquote(quoted)
		if err != nil {
			return nil, fmt.Errorf("malformed struct tag: %s: %w", key, err)
		}
		if _, twice := tags[key]; twice {
			return nil, fmt.Errorf("struct tag has %s twice", key)
		}
		tags[key], rest = value, after[len(quoted):]
	}
	for _, key := range knownTags {
		for other := range tags {
			if other != key && strings.EqualFold(other, key) {
				return nil, fmt.Errorf("struct tag %s is spelled %s", other, key)
			}
		}
	}
	return tags, nil
}

// parseJSONTag parses the json tag as encoding/json does. name is "" only for an
// embedded field without a name; skip says that the field is left out. optional says
// that the tag has omitempty or omitzero.
func parseJSONTag(field reflect.StructField, tags map[string]string) (name string, optional, skip bool, err error) {
	tag, ok := tags["json"]
	if tag == "-" {
		return "", false, true, nil
	}
	name, options, _ := strings.Cut(tag, ",")
	for _, option := range strings.Split(options, ",") {
		switch option {
		case "omitempty", "omitzero":
			optional = true
		case "":
		default:
			return "", false, false, fmt.Errorf("json option %q is not supported", option)
		}
	}
	if name == "" && !(ok && field.Anonymous) {
		name = field.Name
	}
	return name, optional, false, nil
}

// applyTags sets the members of a field's schema by the field's tags.
func (s *schema) applyTags(tags map[string]string) error {
	description, err := descriptionTag(tags)
	if err != nil {
		return err
	}
	if description != "" {
		s.description = description
	}
	valued := s // enum describes the items of a list
	if s.kind == kindList {
		valued = s.items
	}
	if text, ok := tags["enum"]; ok {
		if err := valued.setEnum(text); err != nil {
			return err
		}
	}
	for _, side := range []struct {
		key string
		to  *bound
	}{{"min", &s.min}, {"max", &s.max}} {
		if text, ok := tags[side.key]; ok {
			if *side.to, err = s.parseBound(text); err != nil {
				return fmt.Errorf("%s:%q: %w", side.key, text, err)
			}
		}
	}
	if s.min.isSet && s.max.isSet && s.max.less(s.min) {
		return fmt.Errorf("min %s is above max %s", s.min.text, s.max.text)
	}
	if s.acceptsBare, err = s.parseBoolTag(tags, "bare", kindList, "lists"); err != nil {
		return err
	}
	if s.verbatim, err = s.parseBoolTag(tags, "verbatim", kindString, "strings"); err != nil {
		return err
	}
	if s.acceptsWords, err = s.parseBoolTag(tags, "argv", kindString, "strings"); err != nil {
		return err
	}
	if text, ok := tags["default"]; ok {
		return s.setDefault(text)
	}
	return nil
}

// parseBoolTag reports whether a tag is present. It fails unless the value is
// "true" and the schema of kind onlyKind; kinds is the plural of that, for the
// error.
func (s *schema) parseBoolTag(tags map[string]string, key string, onlyKind kind, kinds string) (isSet bool, err error) {
	switch {
	case tags[key] == "":
		return false, nil
	case tags[key] != "true":
		return false, fmt.Errorf("%s:%q: the value is \"true\"", key, tags[key])
	case s.kind != onlyKind:
		return false, fmt.Errorf("%s is for %s only", key, kinds)
	}
	return true, nil
}

// descriptionTag returns the description in the tags jsonschema, desc or
// description; "" without such a tag.
func descriptionTag(tags map[string]string) (string, error) {
	text := ""
	for _, key := range []string{"jsonschema", "desc", "description"} {
		value, ok := tags[key]
		if !ok {
			continue
		}
		if strings.TrimSpace(value) == "" {
			return "", fmt.Errorf("%s is empty", key)
		}
		if key == "jsonschema" && isOtherDialect(value) {
			return "", fmt.Errorf("jsonschema:%q is another library's syntax: write the description itself, and use enum, default, min and max for the rest", value)
		}
		if text != "" && text != value {
			return "", fmt.Errorf("two different descriptions")
		}
		text = value
	}
	return text, nil
}

// setEnum sets the enum by a comma-separated list of values.
func (s *schema) setEnum(text string) error {
	switch s.kind {
	case kindString, kindInteger, kindNumber:
	default:
		return fmt.Errorf("enum is for strings and numbers, not for %s", plural(s.typeName()))
	}
	seen := map[string]bool{}
	for value := range strings.SplitSeq(text, ",") {
		value = strings.TrimSpace(value)
		if value == "" || seen[value] {
			return fmt.Errorf("enum:%q: empty or repeated value", text)
		}
		seen[value] = true
		n, err := s.parseTagValue(value)
		if err != nil {
			return fmt.Errorf("enum:%q: %w", text, err)
		}
		s.enum = append(s.enum, n)
	}
	return nil
}

// setDefault sets the default by a text in the form of the field's type: plain
// text for a string, a comma-separated list or a JSON array for a list, JSON
// for other types.
func (s *schema) setDefault(text string) error {
	if s.kind == kindRef {
		return fmt.Errorf("default:%q: a recursive type has no default", text)
	}
	n, err := s.parseTagValue(text)
	if err != nil {
		return fmt.Errorf("default:%q: %w", text, err)
	}
	c := checker{}
	n = c.check(s, n, nil)
	if len(c.faults) > 0 {
		return fmt.Errorf("default:%q %s", text, c.faults[0].text)
	}
	s.defaultValue = n
	return nil
}

// parseTagValue parses a default or an enum value of type s: plain text for a
// string, a comma-separated list or a JSON array for a list, and JSON
// otherwise. It does not check the value against s.
func (s *schema) parseTagValue(text string) (*jsonNode, error) {
	switch s.resolveRef().kind {
	case kindString, kindText, kindBytes, kindDuration:
		return parseJSON(mustMarshal(text))
	case kindList:
		if strings.HasPrefix(strings.TrimSpace(text), "[") {
			break
		}
		list := []json.RawMessage{}
		for item := range strings.SplitSeq(text, ",") {
			if item = strings.TrimSpace(item); item == "" {
				continue
			}
			n, err := s.resolveRef().items.parseTagValue(item)
			if err != nil {
				return nil, err
			}
			list = append(list, n.raw)
		}
		return parseJSON(mustMarshal(list))
	}
	n, err := parseJSON([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("not a valid %s", s.typeName())
	}
	return n, nil
}

// parseBound parses the value of the tag min or max for s.
func (s *schema) parseBound(text string) (bound, error) {
	switch s.kind {
	case kindInteger:
		if i, err := strconv.ParseInt(text, 10, 64); err == nil {
			return bound{isSet: true, text: text, integer: i, float: float64(i), isExact: true}, nil
		}
	case kindNumber:
		if n, err := parseJSON([]byte(text)); err == nil && n.kind == '0' {
			f, err := strconv.ParseFloat(text, 64)
			return bound{isSet: true, text: text, float: f}, err
		}
	case kindDuration:
		if d, err := time.ParseDuration(text); err == nil {
			return bound{isSet: true, text: text, integer: int64(d), float: float64(d), isExact: true}, nil
		}
	case kindString, kindText, kindList, kindMap:
		if i, err := strconv.ParseInt(text, 10, 32); err == nil && i >= 0 {
			return bound{isSet: true, text: text, integer: i, float: float64(i), isExact: true}, nil
		}
	default:
		return bound{}, fmt.Errorf("%s has no bounds", s.typeName())
	}
	return bound{}, fmt.Errorf("not a valid bound of a %s", s.typeName())
}
