package schemacheck

import (
	"encoding/json"
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// What a check may take is bounded by a budget. The library has no place for one: its
// extensions come last, and not where a subschema has failed before. So each subschema
// gets a format, which is looked at first but for type, const and enum. It pays for all
// that the subschema has to do with the value, and for the entry of those that it is to
// apply, which are not reached if there is not enough.

// budget counts the steps of a check.
type budget struct{ left int }

var errBudget = errors.New("checking takes too many steps")

// spend panics when there is nothing left; Check recovers.
func (b *budget) spend(steps int) {
	if b.left -= steps; b.left < 0 {
		panic(errBudget)
	}
}

// errDynamic is of references that lead to subschemas that cannot be found beforehand.
var errDynamic = errors.New("it has a $dynamicRef, or $recursiveRef, which are not followed")

// watch has every subschema of a schema pay.
func (b *budget) watch(root *jsonschema.Schema) error {
	seen := map[*jsonschema.Schema]bool{root: true}
	for queue := []*jsonschema.Schema{root}; len(queue) > 0; queue = queue[1:] {
		s := queue[0]
		if s.DynamicRef != nil || s.RecursiveRef != nil {
			return errDynamic
		}
		p := priceOf(s)
		for _, group := range [][]*jsonschema.Schema{p.same, p.members, p.items, p.places} {
			for _, sub := range group {
				if !seen[sub] {
					seen[sub] = true
					queue = append(queue, sub)
				}
			}
		}
		for _, sub := range s.Properties {
			if !seen[sub] {
				seen[sub] = true
				queue = append(queue, sub)
			}
		}
		asserted := s.Format
		format := &jsonschema.Format{Validate: func(v any) error {
			b.spend(p.of(v))
			if asserted != nil {
				return asserted.Validate(v)
			}
			return nil
		}}
		if asserted != nil {
			format.Name = asserted.Name
		}
		s.Format = format
	}
	return nil
}

// price is what a subschema costs.
type price struct {
	same    []*jsonschema.Schema // applied to the value itself
	members []*jsonschema.Schema // to each member of an object
	items   []*jsonschema.Schema // to each item of an array
	places  []*jsonschema.Schema // to an item of an array each

	properties map[string]*jsonschema.Schema
	names      int // that are looked for in an object
	patterns   int // that each name of an object is matched with

	perSame, perMember, perItem, perPlace int // the entries of these
}

func priceOf(s *jsonschema.Schema) *price {
	p := &price{properties: s.Properties, names: len(s.Required) + len(s.Dependencies), patterns: len(s.PatternProperties)}
	add := func(to *[]*jsonschema.Schema, subs ...*jsonschema.Schema) {
		for _, sub := range subs {
			if sub != nil {
				*to = append(*to, sub)
			}
		}
	}
	either := func(to *[]*jsonschema.Schema, value any) {
		if sub, ok := value.(*jsonschema.Schema); ok {
			add(to, sub)
		}
	}
	add(&p.same, s.Ref, s.Not, s.If, s.Then, s.Else, s.ContentSchema)
	add(&p.same, s.AllOf...)
	add(&p.same, s.AnyOf...)
	add(&p.same, s.OneOf...)
	for _, sub := range s.DependentSchemas {
		add(&p.same, sub)
	}
	for _, dependency := range s.Dependencies {
		either(&p.same, dependency)
		if names, ok := dependency.([]string); ok {
			p.names += len(names)
		}
	}
	for _, names := range s.DependentRequired {
		p.names += 1 + len(names)
	}
	add(&p.members, s.PropertyNames, s.UnevaluatedProperties)
	either(&p.members, s.AdditionalProperties)
	for _, sub := range s.PatternProperties {
		add(&p.members, sub)
	}
	add(&p.items, s.Items2020, s.Contains, s.UnevaluatedItems)
	either(&p.items, s.Items)
	either(&p.items, s.AdditionalItems)
	add(&p.places, s.PrefixItems...)
	if places, ok := s.Items.([]*jsonschema.Schema); ok {
		add(&p.places, places...)
	}
	for _, sum := range []struct {
		subs []*jsonschema.Schema
		into *int
	}{{p.same, &p.perSame}, {p.members, &p.perMember}, {p.items, &p.perItem}, {p.places, &p.perPlace}} {
		for _, sub := range sum.subs {
			*sum.into += entry(sub)
		}
	}
	return p
}

// entry is what a subschema takes before its format is looked at.
func entry(s *jsonschema.Schema) int {
	n := 1
	if s.Const != nil {
		n += parts(*s.Const)
	}
	if s.Enum != nil {
		for _, value := range s.Enum.Values {
			n += parts(value)
		}
	}
	return n
}

// parts counts the values that a value is made of.
func parts(v any) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			n += parts(member)
		}
	case []any:
		for _, item := range v {
			n += parts(item)
		}
	}
	return n
}

// How much of a text, or of the names of an object that are kept for unevaluated…,
// is a step.
const (
	perText  = 512
	perNames = 16
)

// of is what it costs to apply the subschema to a value.
func (p *price) of(v any) int {
	n := 1 + p.perSame
	switch v := v.(type) {
	case map[string]any:
		n += p.names + len(v)*(1+p.patterns+p.perMember) + len(p.same)*len(v)/perNames
		if len(p.properties) > 0 {
			for name := range v {
				if sub := p.properties[name]; sub != nil {
					n += entry(sub)
				}
			}
		}
	case []any:
		n += len(v)*(1+p.perItem) + p.perPlace + len(p.same)*len(v)/perNames
	case string:
		n += len(v) / perText
	}
	return n
}

// maxDigits bounds numbers: their values are compared whole, and 1e999999 has a million
// digits.
const maxDigits = 64

// tame reports whether all numbers of a value have few digits.
func tame(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			if !tame(member) {
				return false
			}
		}
	case []any:
		for _, item := range v {
			if !tame(item) {
				return false
			}
		}
	case json.Number:
		digits, exponent, _ := strings.Cut(strings.ToLower(string(v)), "e")
		return len(digits) <= maxDigits && len(strings.TrimLeft(exponent, "+-0")) <= 3
	}
	return true
}

// maxProgram bounds a pattern, by what it is when repetitions are written out.
const maxProgram = 10_000

// regexp compiles patterns of JavaScript as far as Go has them; others, and those that
// are too large, match anything.
func (b *budget) regexp(pattern string) (jsonschema.Regexp, error) {
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil || written(tree) > maxProgram {
		return anything(pattern), nil //nolint:nilerr // see above
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return anything(pattern), nil //nolint:nilerr // see above
	}
	return &paid{re, b, written(tree)}, nil
}

// written is about how many instructions a pattern is.
func written(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		n += written(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(1, re.Min, re.Max)
	}
	return min(n, maxProgram+1)
}

// paid is a pattern whose matches are steps.
type paid struct {
	*regexp.Regexp
	budget *budget
	size   int // in instructions
}

// perMatch is how many instructions, each for one byte, are a step.
const perMatch = 16

func (p *paid) MatchString(text string) bool {
	p.budget.spend(1 + p.size*len(text)/perMatch)
	return p.Regexp.MatchString(text)
}

type anything string

func (anything) MatchString(string) bool { return true }
func (a anything) String() string        { return string(a) }
