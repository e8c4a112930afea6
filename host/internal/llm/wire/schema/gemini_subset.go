package schema

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// Subset converts a schema into Gemini's Schema object: a part of OpenAPI 3.0 with
// types in capitals, without references, and with enums of strings only. at is the
// position of the schema in the definition.
func Subset(raw json.RawMessage, at string, losses *llm.Losses) *tree.Value {
	w := newConverter(raw, at, losses)
	if at != "/inputSchema" {
		return w.convertSubset(w.root, at)
	}
	s := w.topObject("Gemini")
	return w.convertSubset(s, at)
}

// subsetKeywords returns the keywords of the subset for a type.
func subsetKeywords(typ string) []string {
	switch typ {
	case "object":
		return []string{"minProperties", "maxProperties"}
	case "array":
		return []string{"minItems", "maxItems"}
	case "string":
		return []string{"pattern", "minLength", "maxLength"}
	case "number", "integer":
		return []string{"minimum", "maximum"}
	}
	return nil
}

// convertSubset returns the schema s, whose pointer is at, in Gemini's form. What that form does
// not have is added to the losses.
func (w *converter) convertSubset(s *tree.Value, at string) *tree.Value {
	if w.size++; w.size > maxInlinedValues {
		w.losses.AddChanged(at, "the schema is too large once references are replaced", tree.Obj())
		return tree.Obj()
	}
	if !s.Is(tree.Object) {
		if s == nil || s.True() {
			w.losses.AddEquivalent(at, "the schema true became an empty schema", tree.Obj())
		} else {
			w.losses.AddChanged(at, "the schema false, which allows no value, became any value", tree.Obj())
		}
		return tree.Obj()
	}
	if s.Get("$ref").Is(tree.String) {
		return w.subsetReference(s, at)
	}
	s = w.joinAllOf(s, at)
	branches, rest, where := w.distributeChoice(s, at)
	if branches != nil {
		return w.subsetChoice(s, branches, rest, at, where)
	}
	s = rest
	names := possibleTypes(s)
	values := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "null" })
	if slices.Contains(values, "number") && slices.Contains(values, "integer") {
		values = slices.DeleteFunc(values, func(name string) bool { return name == "integer" })
	}
	if len(values) > 1 {
		return w.subsetTypes(s, values, slices.Contains(names, "null") || s.Get("nullable").True(), at)
	}
	return w.subsetType(s, names, values, at)
}

// subsetReference converts the target of the reference s. Inside its own definition, it
// returns a schema with only the type.
func (w *converter) subsetReference(s *tree.Value, at string) *tree.Value {
	found, where := w.lookupRef(s.Get("$ref").Text)
	switch {
	case found == nil:
		rest := s.Clone()
		rest.Delete("$ref")
		w.losses.AddLost(at+"/$ref", "the reference has no target in this schema")
		return w.convertSubset(rest, at)
	case slices.Contains(w.open, found) || found == w.root:
		out := tree.Obj()
		if names := possibleTypes(found); len(names) == 1 {
			out.Set("type", tree.Str(strings.ToUpper(names[0])))
		}
		w.losses.AddChanged(at, "recursion was cut here, because the vendor has no references", FromSubset(out))
		return out
	}
	w.open = append(w.open, found)
	out := w.convertSubset(found, where)
	w.open = w.open[:len(w.open)-1]
	for _, m := range s.Members {
		switch m.Name {
		case "$ref":
		case "description", "title", "default":
			out.Set(m.Name, m.Value.Clone())
		default:
			w.losses.AddLost(llm.AppendKey(at, m.Name), "keywords next to a reference are not supported")
		}
	}
	w.losses.AddEquivalent(at, "the reference was replaced by its definition", FromSubset(out))
	return out
}

// subsetChoice converts what distributeChoice returned for s into an anyOf. A branch of the
// type null becomes nullable of the first other branch.
func (w *converter) subsetChoice(s *tree.Value, branches []*tree.Value, rest *tree.Value, at, where string) *tree.Value {
	null := rest.Get("nullable").True()
	list := tree.List()
	for i, b := range branches {
		if slices.Equal(declaredTypes(b), []string{"null"}) {
			null = true
			continue
		}
		list.Items = append(list.Items, w.convertSubset(b, llm.AppendIndex(where, i)))
	}
	if len(list.Items) == 0 {
		list.Items = append(list.Items, tree.Obj("type", tree.Str("NULL")))
	} else if null {
		list.Items[0].Set("nullable", tree.Boolean(true))
	}
	out := tree.Obj("anyOf", list)
	if len(list.Items) == 1 {
		out = list.Items[0]
	}
	for _, m := range rest.Members {
		switch m.Name {
		case "title", "description", "default":
			out.Set(m.Name, m.Value.Clone())
		case "nullable":
		default:
			w.reportSubsetDropped(m.Name, at)
		}
	}
	if strings.HasSuffix(where, "/oneOf") {
		w.losses.AddChanged(at, "oneOf became anyOf", FromSubset(out))
	} else if !Equal(FromSubset(out), s) {
		w.losses.AddEquivalent(at, "the choice was rewritten for Gemini", FromSubset(out))
	}
	return out
}

// subsetTypes converts a schema of the types names into an anyOf with one branch for each.
// null says that null is accepted too.
func (w *converter) subsetTypes(s *tree.Value, names []string, null bool, at string) *tree.Value {
	list := tree.List()
	for _, b := range splitTypes(s, names) {
		list.Items = append(list.Items, w.convertSubset(b, at))
	}
	out := tree.Obj("anyOf", list)
	if len(list.Items) == 0 {
		out = tree.Obj()
	} else if null {
		list.Items[0].Set("nullable", tree.Boolean(true))
	}
	for _, m := range s.Members {
		switch m.Name {
		case "title", "description", "default":
			out.Set(m.Name, m.Value.Clone())
		}
	}
	w.losses.AddEquivalent(at, "several types became anyOf", FromSubset(out))
	return out
}

// subsetType converts a schema of at most one type besides null. names are its types,
// values those without null.
func (w *converter) subsetType(s *tree.Value, names, values []string, at string) *tree.Value {
	out := tree.Obj()
	typ := ""
	switch {
	case len(values) == 1:
		typ = values[0]
		out.Set("type", tree.Str(strings.ToUpper(typ)))
		if slices.Contains(names, "null") || s.Get("nullable").True() {
			out.Set("nullable", tree.Boolean(true))
		}
	case len(names) == 1: // only null
		out.Set("type", tree.Str("NULL"))
	}
	if said := declaredTypes(s); !sameSet(said, declaredTypes(FromSubset(out))) {
		w.losses.AddEquivalent(at+"/type", "the type was added", FromSubset(out).Get("type"))
	}
	if s.Get("nullable") != nil {
		w.losses.AddEquivalent(at+"/nullable", "moved into type", nil)
	}
	for _, m := range s.Members {
		switch m.Name {
		case "type", "nullable":
		case "title", "description", "default":
			out.Set(m.Name, m.Value.Clone())
		case "enum", "const":
			w.subsetEnum(s, out, m, typ, at)
		case "properties", "required":
			w.subsetMembers(s, out, m.Name, typ, at)
		case "items", "prefixItems":
			w.subsetItems(s, out, m.Name, typ, at)
		case "format":
			w.subsetFormat(out, m.Value, typ, at)
		case "exclusiveMinimum", "exclusiveMaximum":
			w.subsetExclusive(s, out, m, typ, at)
		default:
			if !slices.Contains(subsetKeywords(typ), m.Name) || !m.Value.Is(tree.Number) && m.Name != "pattern" {
				w.reportSubsetDropped(m.Name, at)
				continue
			}
			if out.Get(m.Name) == nil {
				out.Set(m.Name, m.Value.Clone())
			}
		}
	}
	if typ == "array" && out.Get("items") == nil {
		out.Set("items", tree.Obj())
		w.losses.AddEquivalent(at+"/items", "an items schema that allows any value was added", tree.Obj())
	}
	return out
}

// sameSet reports whether two lists have the same elements in any order.
func sameSet(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}

// reportSubsetDropped adds a loss for a keyword that Gemini's form does not have.
func (w *converter) reportSubsetDropped(word, at string) {
	switch word {
	case "$defs", "definitions":
		w.losses.AddEquivalent(llm.AppendKey(at, word), "each reference was replaced by its definition", nil)
	case "$schema", "$comment", "$id", "$anchor":
		w.losses.AddEquivalent(llm.AppendKey(at, word), "the keyword does not restrict values", nil)
	default:
		w.losses.AddLost(llm.AppendKey(at, word), "Gemini's schemas do not support this keyword")
	}
}

// subsetEnum converts the keyword m, enum or const, of s with the type typ into enum of
// out. Other values than non-empty strings are lost.
func (w *converter) subsetEnum(s, out *tree.Value, m tree.Member, typ, at string) {
	values := m.Value.PeekItems()
	if m.Name == "const" {
		values = []*tree.Value{m.Value}
		if s.Get("enum") != nil {
			w.reportSubsetDropped("const", at)
			return
		}
	}
	if typ == "" && len(values) == 1 && values[0].Is(tree.Null) { // the type already expresses it
		w.losses.AddEquivalent(llm.AppendKey(at, m.Name), "moved into type", nil)
		return
	}
	list := tree.List()
	for _, v := range values {
		if v.Is(tree.Null) && out.Get("nullable").True() {
			continue
		}
		if typ != "string" || !v.Is(tree.String) || v.Text == "" {
			w.losses.AddLost(llm.AppendKey(at, m.Name), "Gemini supports only enums of non-empty strings")
			return
		}
		list.Items = append(list.Items, v.Clone())
	}
	if len(list.Items) == 0 {
		w.reportSubsetDropped(m.Name, at)
		return
	}
	out.Set("enum", list)
	now := FromSubset(out).Get("enum")
	if m.Name == "const" {
		w.losses.AddEquivalent(at+"/const", "const became an enum with one value", nil)
		w.losses.AddEquivalent(at+"/enum", "replaces const", now)
	} else if !Equal(now, m.Value) {
		w.losses.AddEquivalent(at+"/enum", "null was replaced by nullable", now)
	}
}

// subsetMembers converts word, properties or required, into out. Required names without
// a property are left out.
func (w *converter) subsetMembers(s, out *tree.Value, word, typ, at string) {
	properties := s.Get("properties")
	if typ != "object" || word == "properties" && !properties.Is(tree.Object) {
		w.reportSubsetDropped(word, at)
		return
	}
	if word == "properties" {
		made := tree.Obj()
		for _, p := range properties.Members {
			made.Set(p.Name, w.convertSubset(p.Value, llm.AppendKey(at+"/properties", p.Name)))
		}
		out.Set("properties", made)
		return
	}
	required, list := s.Get("required"), tree.List()
	for _, name := range required.PeekItems() {
		if name.Is(tree.String) && properties.Get(name.Text) != nil {
			list.Items = append(list.Items, name.Clone())
		}
	}
	switch {
	case len(list.Items) == 0 && len(required.PeekItems()) == 0:
		w.losses.AddEquivalent(at+"/required", "the list is empty", nil)
	case len(list.Items) == 0:
		w.losses.AddLost(at+"/required", "Gemini accepts only described properties in required")
	default:
		out.Set("required", list)
		if !Equal(list, required) {
			w.losses.AddChanged(at+"/required", "Gemini accepts only described properties in required", list)
		}
	}
}

// subsetItems converts word, items or prefixItems of s, into items of out. A tuple becomes
// a list of any of its items.
func (w *converter) subsetItems(s, out *tree.Value, word, typ, at string) {
	prefix := s.Get("prefixItems")
	switch {
	case typ != "array":
		w.reportSubsetDropped(word, at)
	case prefix != nil && word == "items": // reported with the tuple
	case prefix != nil:
		items := w.convertSubset(tupleItems(s), at+"/items")
		out.Set("items", items)
		w.losses.AddLost(at+"/prefixItems", "Gemini has no tuples; each item can match any schema of the tuple")
		w.losses.AddEquivalent(at+"/items", "each item can match any schema of the tuple", FromSubset(items))
	case s.Get("items").Is(tree.Array):
		items := w.convertSubset(tree.Obj("anyOf", s.Get("items").Clone()), at+"/items")
		out.Set("items", items)
		w.losses.AddChanged(at+"/items", "Gemini has no tuples; each item can match any schema of the tuple", FromSubset(items))
	default:
		out.Set("items", w.convertSubset(s.Get("items"), at+"/items"))
	}
}

// subsetFormat sets the format of out if Gemini accepts it for the type, and reports it as
// lost if not.
func (w *converter) subsetFormat(out, format *tree.Value, typ, at string) {
	known := map[string][]string{"string": {"date-time"}, "number": {"float", "double"}, "integer": {"int32", "int64"}}
	if format.Is(tree.String) && slices.Contains(known[typ], format.Text) {
		out.Set("format", format.Clone())
		return
	}
	w.reportSubsetDropped("format", at)
}

// subsetExclusive converts exclusiveMinimum or exclusiveMaximum of integers into minimum or
// maximum of out. Other limits are lost.
func (w *converter) subsetExclusive(s, out *tree.Value, m tree.Member, typ, at string) {
	n, err := strconv.Atoi(m.Value.Text)
	word, step := "minimum", 1
	if m.Name == "exclusiveMaximum" {
		word, step = "maximum", -1
	}
	if typ != "integer" || err != nil || s.Get(word) != nil || n+step > 1<<53 || n+step < -1<<53 {
		w.reportSubsetDropped(m.Name, at)
		return
	}
	out.Set(word, tree.Int(n+step))
	w.losses.AddEquivalent(at+"/"+m.Name, "replaced by "+word, nil)
	w.losses.AddEquivalent(at+"/"+word, "the limit became inclusive", tree.Int(n+step))
}

// FromSubset converts Gemini's Schema object into JSON Schema. It does not mark members
// that it does not know as read, so that the caller can report them.
func FromSubset(v *tree.Value) *tree.Value {
	out := tree.Obj()
	v.MarkRead()
	typ := strings.ToLower(v.Take("type").Str())
	if typ == "type_unspecified" {
		typ = ""
	}
	null := v.Take("nullable").Flag()
	nullable := null != nil && *null
	switch {
	case typ != "" && nullable && typ != "null":
		out.Set("type", tree.Strs(typ, "null"))
	case typ != "":
		out.Set("type", tree.Str(typ))
	}
	for _, word := range []string{"title", "description", "default", "format", "pattern", "minimum", "maximum"} {
		if value := v.Take(word); value != nil {
			value.MarkAllRead()
			if word != "format" || value.Text != "enum" { // it repeats that there is an enum
				out.Set(word, value.Clone())
			}
		}
	}
	for _, word := range []string{"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"} {
		if value := v.Take(word); value != nil {
			value.MarkAllRead()
			out.Set(word, &tree.Value{Kind: tree.Number, Text: value.Text})
		}
	}
	if example := v.Take("example"); example != nil {
		example.MarkAllRead()
		out.Set("examples", tree.List(example.Clone()))
	}
	if enum := v.Take("enum"); enum != nil {
		list := tree.List()
		for _, value := range enum.TakeItems() {
			value.MarkAllRead()
			list.Items = append(list.Items, value.Clone())
		}
		if nullable {
			list.Items = append(list.Items, &tree.Value{})
		}
		out.Set("enum", list)
	}
	fromSubsetNested(v, out, typ == "" && nullable)
	return out
}

// fromSubsetNested takes items, properties, anyOf and required from v and adds them to out,
// with the schemas in them converted. The properties get the order of propertyOrdering. If
// null is true, anyOf also permits null.
func fromSubsetNested(v, out *tree.Value, null bool) {
	if items := v.Take("items"); items != nil {
		out.Set("items", FromSubset(items))
	}
	if properties := v.Take("properties"); properties != nil {
		made := tree.Obj()
		for _, name := range v.Take("propertyOrdering").TakeItems() {
			if p := properties.Get(name.Str()); p != nil {
				made.Set(name.Text, nil)
			}
		}
		for _, p := range properties.TakeMembers() {
			made.Set(p.Name, FromSubset(p.Value))
		}
		out.Set("properties", made)
	}
	if required := v.Take("required"); required != nil {
		required.MarkAllRead()
		out.Set("required", required.Clone())
	}
	if branches := v.Take("anyOf"); branches != nil {
		list := tree.List()
		for _, b := range branches.TakeItems() {
			list.Items = append(list.Items, FromSubset(b))
		}
		if null {
			list.Items = append(list.Items, tree.Obj("type", tree.Str("null")))
		}
		out.Set("anyOf", list)
	}
}
