package schema

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// StrictLimits holds a vendor's limits for schemas in strict mode, which constrain the
// model's output.
type StrictLimits struct {
	vendor      string
	keywords    []string // supported keywords, besides those of structure
	formats     []string
	requiresAll bool // every member is required; an optional one may be null instead
	recursive   bool // definitions may refer to themselves
	maxMinItems int  // largest supported minItems; -1: any
	// Largest number of members, levels, enum values, and bytes of names and values;
	// 0: no limit.
	members, depth, values, bytes int
}

// OpenAILimits returns the limits of OpenAI's structured outputs, according to its
// documentation.
func OpenAILimits() StrictLimits {
	return StrictLimits{
		vendor:      "OpenAI",
		keywords:    []string{"title", "description", "enum", "const", "pattern", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems"},
		formats:     []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"},
		requiresAll: true, recursive: true, maxMinItems: -1,
		members: 5000, depth: 10, values: 1000, bytes: 120_000,
	}
}

// AnthropicLimits returns the limits of Anthropic's structured outputs, according to
// its documentation.
func AnthropicLimits() StrictLimits {
	return StrictLimits{
		vendor:      "Anthropic",
		keywords:    []string{"title", "description", "enum", "const", "default", "pattern", "minItems"},
		formats:     []string{"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"},
		maxMinItems: 1,
	}
}

// StrictOrPlain converts a tool's input schema with Strict if that is wanted and possible,
// otherwise with Plain. strict says whether it was Strict. vendor is a name for the losses.
func StrictOrPlain(raw json.RawMessage, wanted bool, h StrictLimits, vendor string, losses *llm.Losses) (converted *tree.Value, strict bool) {
	if wanted {
		if converted = Strict(raw, h, losses); converted != nil {
			return converted, true
		}
	}
	return Plain(raw, vendor, losses), false
}

// Strict converts a tool's input schema into the form for strict mode, which constrains
// the model; Restore reverts it in the arguments. If that is not possible, for example
// because the schema is too large, it returns nil and adds a loss with the reason
// (Refused); then use Plain.
func Strict(raw json.RawMessage, h StrictLimits, losses *llm.Losses) *tree.Value {
	var mine llm.Losses
	w := &strictConverter{converter: newConverter(raw, "/inputSchema", &mine), limits: h, defs: map[string]*tree.Value{}}
	top := w.topObject(h.vendor)
	if w.root != nil && !w.root.Get("$ref").Is(tree.String) {
		w.rootTop = top
	}
	if top.Get("properties") == nil || len(top.Get("properties").Members) == 0 {
		if more := top.Get("additionalProperties"); !more.False() {
			top.Set("additionalProperties", tree.Boolean(false))
			mine.AddChanged("/inputSchema/additionalProperties", h.vendor+", in strict mode, allows only named properties", tree.Boolean(false))
		}
	}
	out := w.convert(top, w.at)
	w.writeDefinitions(out)
	if w.failed == "" {
		w.failed = h.exceededLimit(out)
	}
	if w.failed != "" {
		*losses = append(*losses, llm.Loss{Kind: llm.Refused, Path: "/inputSchema", Why: "it cannot be strict: " + w.failed})
		return nil
	}
	*losses = append(*losses, mine...)
	return out
}

// strictConverter holds the state of the conversion of one schema for a vendor's strict
// mode. The parameter at of its methods is the JSON pointer of a schema, for losses.
type strictConverter struct {
	*converter
	limits  StrictLimits
	rootTop *tree.Value            // the root as an object schema, the target of "#"; nil: it is a reference
	defs    map[string]*tree.Value // converted definitions by name; nil: not converted yet
	order   []string               // names of defs in the order of their first use
	failed  string                 // reason why the schema cannot be strict; "": none so far
}

// anyValueAsText returns the schema of a string that contains any value as JSON, with the
// description of s. It reports that what, at the pointer, was replaced.
func (w *strictConverter) anyValueAsText(s *tree.Value, at, what string) *tree.Value {
	text := "as JSON text"
	if d := s.Get("description"); d.Is(tree.String) {
		text = d.Text + " (" + text + ")"
	}
	out := tree.Obj("type", tree.Str("string"), "description", tree.Str(text))
	w.losses.AddChanged(at, what+" became a string that contains JSON", out)
	return out
}

// convert returns the schema s, whose pointer is at, converted for strict mode. It sets
// w.failed if that is impossible.
func (w *strictConverter) convert(s *tree.Value, at string) *tree.Value {
	if w.size++; w.size > maxInlinedValues {
		w.failed = "it is too large with its references in place"
		return tree.Obj()
	}
	if !s.Is(tree.Object) || acceptsAnything(s) {
		if s == nil || s.True() || s.Is(tree.Object) {
			return w.anyValueAsText(s, at, "a value of any kind")
		}
		out := tree.Obj("type", tree.Str("null"))
		w.losses.AddChanged(at, "the schema false, which allows no value, became null", out)
		return out
	}
	if ref := s.Get("$ref"); ref.Is(tree.String) {
		return w.convertReference(s, ref.Text, at)
	}
	s = w.joinAllOf(s, at)
	branches, rest, where := w.distributeChoice(s, at)
	if branches != nil {
		return w.convertChoice(branches, rest, at, where)
	}
	s = rest
	names := possibleTypes(s)
	if len(names) == 0 {
		return w.anyValueAsText(s, at, "a value of any kind")
	}
	values := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "null" })
	if len(values) > 1 && (slices.Contains(values, "object") || slices.Contains(values, "array")) {
		list := tree.List()
		for _, b := range splitTypes(s, names) {
			list.Items = append(list.Items, w.convert(b, at))
		}
		out := tree.Obj("anyOf", list)
		if d := s.Get("description"); d != nil {
			out.Set("description", d)
		}
		w.losses.AddEquivalent(at, "several types became anyOf", out)
		return out
	}
	if slices.Contains(values, "object") && isFreeForm(s) {
		return w.orNull(w.anyValueAsText(s, at, "an object whose members have no names"), slices.Contains(names, "null"), at)
	}
	return w.convertUncomposed(s, names, at)
}

// orNull returns out, to whose types it adds null if null is true.
func (w *strictConverter) orNull(out *tree.Value, null bool, at string) *tree.Value {
	if null {
		out.Set("type", tree.Strs(out.Get("type").Text, "null"))
		w.losses.AddEquivalent(at, "null was added to the allowed values", out)
	}
	return out
}

// convertReference keeps a reference to a definition, and replaces any other reference by its
// target.
func (w *strictConverter) convertReference(s *tree.Value, ref, at string) *tree.Value {
	found, where := w.lookupRef(ref)
	name, isDef := strings.CutPrefix(ref, "#/$defs/")
	if !isDef {
		name, isDef = strings.CutPrefix(ref, "#/definitions/")
	}
	isRoot := ref == "#" && w.rootTop != nil
	switch {
	case found == nil:
		rest := s.Clone()
		rest.Delete("$ref")
		w.losses.AddLost(at+"/$ref", "the reference has no target in this schema")
		return w.convert(rest, at)
	case isDef && !strings.Contains(name, "/") || isRoot:
		for _, m := range s.Members {
			if m.Name != "$ref" {
				w.losses.AddLost(llm.AppendKey(at, m.Name), "keywords next to a reference are not allowed")
			}
		}
		if isRoot {
			w.refuseRecursion()
			return tree.Obj("$ref", tree.Str(ref))
		}
		if _, known := w.defs[name]; !known {
			w.defs[name] = nil
			w.order = append(w.order, name)
		}
		out := tree.Obj("$ref", tree.Str("#/$defs/"+name))
		if "#/$defs/"+name != ref {
			w.losses.AddEquivalent(at+"/$ref", "definitions were moved to $defs", out.Get("$ref"))
		}
		return out
	case slices.Contains(w.open, found) || found == w.root:
		w.failed = "it refers to itself at " + at
		return tree.Obj()
	}
	w.open = append(w.open, found)
	out := w.convert(found, where)
	w.open = w.open[:len(w.open)-1]
	w.losses.AddEquivalent(at, "the reference was replaced by its definition", out)
	return out
}

// refuseRecursion sets w.failed if the vendor allows no recursion.
func (w *strictConverter) refuseRecursion() {
	if !w.limits.recursive && w.failed == "" {
		w.failed = w.limits.vendor + " takes no recursion"
	}
}

// writeDefinitions converts the definitions that are used and sets them as $defs of out.
func (w *strictConverter) writeDefinitions(out *tree.Value) {
	defs := tree.Obj()
	for i := 0; i < len(w.order); i++ { // grows while definitions use others
		name := w.order[i]
		found, where := w.lookupRef("#/$defs/" + name)
		if found == nil {
			found, where = w.lookupRef("#/definitions/" + name)
		}
		w.defs[name] = w.convert(found, where)
		defs.Set(tree.Unescape(name), w.defs[name])
	}
	if !w.limits.recursive && isCyclic(defs) {
		w.refuseRecursion()
	}
	if len(defs.Members) > 0 {
		out.Set("$defs", defs)
	}
	for _, word := range []string{"definitions", "$defs"} {
		if w.root.Get(word) == nil {
			continue
		}
		if word == "$defs" && len(defs.Members) > 0 && w.root.Get("definitions") == nil {
			for _, d := range w.root.Get(word).PeekMembers() {
				if defs.Get(d.Name) == nil {
					w.losses.AddEquivalent(llm.AppendKey(w.at+"/$defs", d.Name), "unused definition", nil)
				}
			}
			continue
		}
		w.losses.AddEquivalent(llm.AppendKey(w.at, word), "referenced definitions were moved to $defs", nil)
		if len(defs.Members) > 0 {
			w.losses.AddEquivalent(w.at+"/$defs", "referenced definitions", defs)
		}
	}
}

// convertChoice returns an anyOf of the converted branches, with the title and description
// of rest. where is the pointer of the choice.
func (w *strictConverter) convertChoice(branches []*tree.Value, rest *tree.Value, at, where string) *tree.Value {
	list := tree.List()
	for i, b := range branches {
		list.Items = append(list.Items, w.convert(b, llm.AppendIndex(where, i)))
	}
	out := tree.Obj("anyOf", list)
	for _, m := range rest.Members {
		switch m.Name {
		case "title", "description":
			out.Set(m.Name, m.Value)
		default:
			w.reportDropped(m.Name, at)
		}
	}
	if rest.Get("nullable").True() {
		list.Items = append(list.Items, tree.Obj("type", tree.Str("null")))
	}
	if strings.HasSuffix(where, "/oneOf") {
		w.losses.AddChanged(at, "oneOf became anyOf", out)
	} else {
		w.losses.AddEquivalent(at, "the choice was rewritten for strict mode", out)
	}
	return out
}

// reportDropped reports a keyword that the strict form does not have.
func (w *strictConverter) reportDropped(word, at string) {
	switch word {
	case "$defs", "definitions": // those of the root are reported at the end
		if at == w.at {
			return
		}
		w.losses.AddEquivalent(llm.AppendKey(at, word), "definitions were moved to $defs or replaced their references", nil)
	case "$schema", "$comment", "$id", "$anchor", "nullable":
		w.losses.AddEquivalent(llm.AppendKey(at, word), "the keyword does not restrict values", nil)
	default:
		w.losses.AddLost(llm.AppendKey(at, word), w.limits.vendor+"'s strict schemas do not support this keyword")
	}
}

// convertUncomposed converts a schema without $ref, allOf, anyOf and oneOf that has the
// types names.
func (w *strictConverter) convertUncomposed(s *tree.Value, names []string, at string) *tree.Value {
	if s.Get("nullable").True() && !slices.Contains(names, "null") {
		names = append(slices.Clone(names), "null")
	}
	out := tree.Obj("type", typeValue(names))
	if said := declaredTypes(s); len(said) != len(names) {
		w.losses.AddEquivalent(at+"/type", "the type was added", typeValue(names))
	}
	for _, m := range s.Members {
		switch m.Name {
		case "type":
		case "properties":
			if slices.Contains(names, "object") {
				w.convertMembers(s, out, at)
				continue
			}
			w.reportDropped(m.Name, at)
		case "required", "additionalProperties": // reported with the properties
			if !slices.Contains(names, "object") {
				w.reportDropped(m.Name, at)
			}
		case "items", "prefixItems":
			w.convertItems(s, out, m.Name, names, at)
		case "format":
			if !slices.Contains(w.limits.formats, m.Value.Text) {
				w.reportDropped(m.Name, at)
				continue
			}
			out.Set(m.Name, m.Value)
		default:
			if w.isSupported(m) {
				out.Set(m.Name, m.Value)
				continue
			}
			w.reportDropped(m.Name, at)
		}
	}
	if slices.Contains(names, "object") && s.Get("properties") == nil {
		w.convertMembers(s, out, at)
	}
	if slices.Contains(names, "array") && out.Get("items") == nil {
		out.Set("items", w.anyValueAsText(nil, at+"/items", "a value of any kind"))
	}
	return out
}

// isSupported reports whether the strict mode allows the keyword m.Name with its value.
func (w *strictConverter) isSupported(m tree.Member) bool {
	switch {
	case !slices.Contains(w.limits.keywords, m.Name):
		return false
	case m.Name == "minItems" && w.limits.maxMinItems >= 0:
		return m.Value.Text == "0" || m.Value.Text == "1"
	case m.Name == "pattern":
		return m.Value.Is(tree.String) && !strings.Contains(m.Value.Text, "(?") && !strings.ContainsAny(backreferences.Replace(m.Value.Text), "\x00")
	case m.Name == "enum":
		return !slices.ContainsFunc(m.Value.PeekItems(), func(v *tree.Value) bool { return v.Is(tree.Object) || v.Is(tree.Array) })
	}
	return true
}

// backreferences replaces the backreferences and word boundaries in a pattern, which strict
// mode does not support, by NUL.
var backreferences = strings.NewReplacer(`\\`, "", `\1`, "\x00", `\2`, "\x00", `\3`, "\x00", `\k`, "\x00", `\b`, "\x00", `\B`, "\x00")

// convertMembers converts the properties of s into out, and forbids others. If the vendor
// requires all, all become required, and optional ones can be null; otherwise the required
// ones stay.
func (w *strictConverter) convertMembers(s, out *tree.Value, at string) {
	made, all := tree.Obj(), tree.List()
	required := s.Get("required")
	for _, p := range s.Get("properties").PeekMembers() {
		here := llm.AppendKey(at+"/properties", p.Name)
		member := w.convert(p.Value, here)
		isRequired := slices.ContainsFunc(required.PeekItems(), func(v *tree.Value) bool { return v.Text == p.Name })
		if !isRequired && w.limits.requiresAll {
			if !acceptsNull(member, tree.Obj(), 0) || member.Get("$ref") != nil {
				member = withNull(member)
				w.losses.AddEquivalent(here, "an optional property can be null, which means not given", member)
			}
		}
		if isRequired || w.limits.requiresAll {
			all.Items = append(all.Items, tree.Str(p.Name))
		}
		made.Set(p.Name, member)
	}
	out.Set("properties", made)
	if s.Get("properties") == nil {
		w.losses.AddEquivalent(at+"/properties", "an empty properties object was added", made)
	}
	out.Set("required", all)
	if !Equal(required, all) {
		switch {
		case w.limits.requiresAll:
			w.losses.AddEquivalent(at+"/required", "all properties are required; optional ones can be null", all)
		case required == nil:
			w.losses.AddEquivalent(at+"/required", "an empty required list was added", all)
		default:
			w.losses.AddChanged(at+"/required", "only described properties can be required", all)
		}
	}
	out.Set("additionalProperties", tree.Boolean(false))
	switch more := s.Get("additionalProperties"); {
	case more == nil:
		w.losses.AddEquivalent(at+"/additionalProperties", "other properties are not allowed", tree.Boolean(false))
	case !more.False():
		w.losses.AddChanged(at+"/additionalProperties", "other properties are not allowed", tree.Boolean(false))
	}
}

// withNull returns the converted schema s with null added to its accepted values.
func withNull(s *tree.Value) *tree.Value {
	t := s.Get("type")
	if s.Get("properties") != nil || s.Get("items") != nil || s.Get("const") != nil || t == nil {
		if list := s.Get("anyOf"); list != nil {
			out := s.Clone()
			out.Get("anyOf").Items = append(out.Get("anyOf").Items, tree.Obj("type", tree.Str("null")))
			return out
		}
		return tree.Obj("anyOf", tree.List(s, tree.Obj("type", tree.Str("null"))))
	}
	out := s.Clone()
	out.Set("type", typeValue(append(declaredTypes(s), "null")))
	if enum := out.Get("enum"); enum != nil {
		enum.Items = append(enum.Items, &tree.Value{})
	}
	return out
}

// convertItems converts word, items or prefixItems of s, which has the types names, into
// items of out. A tuple becomes a list of any of its items.
func (w *strictConverter) convertItems(s, out *tree.Value, word string, names []string, at string) {
	prefix := s.Get("prefixItems")
	switch {
	case !slices.Contains(names, "array"):
		w.reportDropped(word, at)
	case prefix != nil && word == "items": // reported with the tuple
	case prefix != nil:
		w.losses.AddLost(at+"/prefixItems", w.limits.vendor+" has no tuples; each item can match any schema of the tuple")
		out.Set("items", w.convert(tupleItems(s), at+"/items"))
		w.losses.AddEquivalent(at+"/items", "each item can match any schema of the tuple", out.Get("items"))
	case s.Get("items").Is(tree.Array):
		out.Set("items", w.convert(tree.Obj("anyOf", s.Get("items")), at+"/items"))
		w.losses.AddChanged(at+"/items", w.limits.vendor+" has no tuples; each item can match any schema of the tuple", out.Get("items"))
	default:
		out.Set("items", w.convert(s.Get("items"), at+"/items"))
	}
}
