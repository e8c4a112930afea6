package schemacheck

import (
	"errors"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A budget bounds the cost of a check. The library has no hook for this: its
// extensions run last, and not at all if a subschema has failed before.
// Therefore each subschema gets a format, which the library checks before
// everything except type, const and enum. The format charges for all work of
// the subschema on the value, and for entering the subschemas that it applies,
// which are not reached if the budget is too small.

// budget counts the steps that a check may still take.
type budget struct{ left int }

// errOverBudget is the panic value of budget.spend when no steps are left.
var errOverBudget = errors.New("checking takes too many steps")

// spend subtracts steps. It panics with errOverBudget if none are left; Check
// recovers.
func (b *budget) spend(steps int) {
	if b.left -= steps; b.left < 0 {
		panic(errOverBudget)
	}
}

// errDynamic reports references whose target is known only during the check.
var errDynamic = errors.New("it has a $dynamicRef, or $recursiveRef, which are not followed")

// chargeSubschemas makes root and every subschema reachable from it charge the
// budget when applied. It returns errDynamic if a subschema has a dynamic
// reference.
func (b *budget) chargeSubschemas(root *jsonschema.Schema) error {
	seen := map[*jsonschema.Schema]bool{root: true}
	for queue := []*jsonschema.Schema{root}; len(queue) > 0; queue = queue[1:] {
		s := queue[0]
		if s.DynamicRef != nil || s.RecursiveRef != nil {
			return errDynamic
		}
		p := costOf(s)
		for _, group := range [][]*jsonschema.Schema{p.onValue, p.onMembers, p.onItems, p.onPositions} {
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
			b.spend(p.costFor(v))
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

// subschemaCost holds what determines the cost of applying a subschema to a
// value.
type subschemaCost struct {
	onValue     []*jsonschema.Schema // subschemas applied to the value itself
	onMembers   []*jsonschema.Schema // to each member of an object
	onItems     []*jsonschema.Schema // to each item of an array
	onPositions []*jsonschema.Schema // to one item of an array each

	properties map[string]*jsonschema.Schema
	lookups    int // number of names looked up in each object
	patterns   int // number of patterns matched with each name of an object

	enterValue, enterMember, enterItem, enterPositions int // cost of entering the subschemas of one of these lists
}

// costOf determines the cost of a subschema. Subschemas are sorted by what they apply
// to: the value itself, its members, its items, or single positions.
func costOf(s *jsonschema.Schema) *subschemaCost {
	p := &subschemaCost{properties: s.Properties, lookups: len(s.Required) + len(s.Dependencies), patterns: len(s.PatternProperties)}
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
	add(&p.onValue, s.Ref, s.Not, s.If, s.Then, s.Else, s.ContentSchema)
	add(&p.onValue, s.AllOf...)
	add(&p.onValue, s.AnyOf...)
	add(&p.onValue, s.OneOf...)
	for _, sub := range s.DependentSchemas {
		add(&p.onValue, sub)
	}
	for _, dependency := range s.Dependencies {
		either(&p.onValue, dependency)
		if names, ok := dependency.([]string); ok {
			p.lookups += len(names)
		}
	}
	for _, names := range s.DependentRequired {
		p.lookups += 1 + len(names)
	}
	add(&p.onMembers, s.PropertyNames, s.UnevaluatedProperties)
	either(&p.onMembers, s.AdditionalProperties)
	for _, sub := range s.PatternProperties {
		add(&p.onMembers, sub)
	}
	add(&p.onItems, s.Items2020, s.Contains, s.UnevaluatedItems)
	either(&p.onItems, s.Items)
	either(&p.onItems, s.AdditionalItems)
	add(&p.onPositions, s.PrefixItems...)
	if places, ok := s.Items.([]*jsonschema.Schema); ok {
		add(&p.onPositions, places...)
	}
	for _, sum := range []struct {
		subs []*jsonschema.Schema
		into *int
	}{{p.onValue, &p.enterValue}, {p.onMembers, &p.enterMember}, {p.onItems, &p.enterItem}, {p.onPositions, &p.enterPositions}} {
		for _, sub := range sum.subs {
			*sum.into += entryCost(sub)
		}
	}
	return p
}

// entryCost returns the cost, in steps, of a subschema before its format is
// checked: comparing the value with const and enum.
func entryCost(s *jsonschema.Schema) int {
	n := 1
	if s.Const != nil {
		n += countValues(*s.Const)
	}
	if s.Enum != nil {
		for _, value := range s.Enum.Values {
			n += countValues(value)
		}
	}
	return n
}

// countValues returns the number of values that a value contains, including
// itself.
func countValues(v any) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for _, member := range v {
			n += countValues(member)
		}
	case []any:
		for _, item := range v {
			n += countValues(item)
		}
	}
	return n
}

// Number of bytes of text, and of names of an object kept for
// unevaluatedProperties, that cost one step.
const (
	bytesPerStep = 512
	namesPerStep = 16
)

// costFor returns the cost, in steps, of applying the subschema to a value,
// without the work of other subschemas.
func (p *subschemaCost) costFor(v any) int {
	n := 1 + p.enterValue
	switch v := v.(type) {
	case map[string]any:
		n += p.lookups + len(v)*(1+p.patterns+p.enterMember) + len(p.onValue)*len(v)/namesPerStep
		if len(p.properties) > 0 {
			for name := range v {
				if sub := p.properties[name]; sub != nil {
					n += entryCost(sub)
				}
			}
		}
	case []any:
		n += len(v)*(1+p.enterItem) + p.enterPositions + len(p.onValue)*len(v)/namesPerStep
	case string:
		n += len(v) / bytesPerStep
	}
	return n
}
