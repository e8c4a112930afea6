// Package chain implements tools that consist of calls of other tools.
//
//	chain:
//	  steps:
//	    - {id: found, tool: search, args: {q: "${args.topic}", limit: 3}}
//	    - parallel:
//	        - {id: a, tool: fetch, args: {url: "${steps.found.result.items[0].url}"}}
//	        - {id: b, tool: fetch, args: {url: "${steps.found.result.items[1].url}"}, on_error: continue}
//	    - if: {value: "${steps.b.is_error}", equals: true}
//	      then: [{id: note, tool: log, args: {text: "only one of ${args.topic}"}}]
//	      else: []
//	  result: {first: "${steps.a.result}", second: "${steps.b.result}"}
//
// A text that consists of one reference is replaced by the value itself, of any type; inside a
// text the value is inserted as text. The references are ${args.NAME}, ${steps.ID.result} (the
// structured result, else the text, decoded if it is JSON), ${steps.ID.text},
// ${steps.ID.details} (_meta["toolroom/result"]: counts, exit code and so on) and
// ${steps.ID.is_error}, each followed by members and [indexes]; ${…:-text} has a default. A
// step that was not made gives null. $${ is a literal ${.
//
// A condition is a reference, which holds unless it is null, false, 0 or empty, or a map with
// value and comparisons: equals, not_equals, in, contains, above, below, exists.
//
// Steps pass all stages like the caller's own calls: what policy denies the caller is denied
// here. A failed step ends the chain with its error, unless it has on_error: continue. Without
// result, the chain returns the unchanged result of its last step.
package chain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// Config is the declaration of one tool.
type Config struct {
	Steps  []Step
	Result json.RawMessage // with references; nil: the result of the last step
}

// Step is a call (Tool), concurrent branches of steps (Parallel), or a condition (If).
type Step struct {
	ID       string
	Tool     string          // served name
	Args     json.RawMessage // an object with references; nil: {}
	Continue bool            // continue the chain after a failure of this step

	Parallel [][]Step // branches that run concurrently; the steps of a branch run in order

	If         *Condition
	Then, Else []Step
}

// Call makes a call of a served tool as a part of the call parent.
type Call func(ctx context.Context, parent *call.Request, tool string, arguments json.RawMessage) (*call.Result, error)

// The limits of a chain.
const (
	maxSteps = 100
	maxDepth = 8
)

// Validate returns an error that names the wrong field.
func (c Config) Validate() error {
	if len(c.Steps) == 0 {
		return errors.New("chain.steps: is empty")
	}
	v := validator{known: map[string]bool{}}
	if err := v.checkSteps("chain.steps", c.Steps, 0); err != nil {
		return err
	}
	if c.Result != nil {
		return v.checkValue("chain.result", c.Result)
	}
	return nil
}

// Tools returns the served names of the tools that the chain calls.
func (c Config) Tools() []string { return toolsOf(c.Steps) }

// toolsOf returns the tools that steps call, including nested steps.
func toolsOf(steps []Step) (names []string) {
	for _, s := range steps {
		if s.Tool != "" {
			names = append(names, s.Tool)
		}
		for _, branch := range append([][]Step{s.Then, s.Else}, s.Parallel...) {
			names = append(names, toolsOf(branch)...)
		}
	}
	return names
}

// Uses returns the arguments that the chain refers to without a default.
func (c Config) Uses() (names []string) {
	visit := func(raw json.RawMessage) {
		for _, r := range refsIn(raw) {
			if r.root == "args" && len(r.path) > 0 && !r.hasDefault {
				names = append(names, r.path[0])
			}
		}
	}
	var walk func(steps []Step)
	walk = func(steps []Step) {
		for _, s := range steps {
			visit(s.Args)
			if s.If != nil {
				visit(s.If.Value)
			}
			for _, branch := range append([][]Step{s.Then, s.Else}, s.Parallel...) {
				walk(branch)
			}
		}
	}
	walk(c.Steps)
	visit(c.Result)
	return names
}

// validator checks steps; it knows the earlier steps.
type validator struct {
	known map[string]bool
	count int
}

// checkSteps checks a list of steps, their number and depth. path names it in errors.
func (v *validator) checkSteps(path string, steps []Step, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%s: steps are nested more than %d deep", path, maxDepth)
	}
	for i, s := range steps {
		at := fmt.Sprintf("%s[%d]", path, i)
		if v.count++; v.count > maxSteps {
			return fmt.Errorf("%s: there are more than %d steps", path, maxSteps)
		}
		if err := v.checkStep(at, s, depth); err != nil {
			return err
		}
	}
	return nil
}

// checkStep checks one step and those in it. at names it in errors.
func (v *validator) checkStep(at string, s Step, depth int) error {
	kinds := 0
	for _, is := range []bool{s.Tool != "", s.Parallel != nil, s.If != nil} {
		if is {
			kinds++
		}
	}
	if kinds != 1 {
		return fmt.Errorf("%s: want one of tool, parallel and if", at)
	}
	switch {
	case s.Parallel != nil:
		return v.checkBranches(at, s.Parallel, depth)
	case s.If != nil:
		if err := s.If.validate(at + ".if"); err != nil {
			return err
		}
		if err := v.checkValue(at+".if.value", s.If.Value); err != nil {
			return err
		}
		if err := v.checkSteps(at+".then", s.Then, depth+1); err != nil {
			return err
		}
		return v.checkSteps(at+".else", s.Else, depth+1)
	}
	if s.Args != nil {
		if s.Args[0] != '{' {
			return fmt.Errorf("%s.args: want a map", at)
		}
		if err := v.checkValue(at+".args", s.Args); err != nil {
			return err
		}
	}
	if s.ID == "" {
		return nil
	}
	if !identifierPattern().MatchString(s.ID) {
		return fmt.Errorf("%s.id: %q must have only letters, digits, _ and -", at, s.ID)
	}
	if v.known[s.ID] {
		return fmt.Errorf("%s.id: two steps have the id %s", at, s.ID)
	}
	v.known[s.ID] = true
	return nil
}

// checkBranches checks the branches of the parallel step at a path, such as steps[1]. They
// cannot refer to each other; later steps can refer to all. It returns an error for an id
// that appears twice and those of checkSteps.
func (v *validator) checkBranches(at string, branches [][]Step, depth int) error {
	before := v.known
	after := maps.Clone(before)
	for i, branch := range branches {
		v.known = maps.Clone(before)
		if err := v.checkSteps(fmt.Sprintf("%s.parallel[%d]", at, i), branch, depth+1); err != nil {
			return err
		}
		for id := range v.known {
			if !before[id] && after[id] {
				return fmt.Errorf("%s: two steps have the id %s", at, id)
			}
			after[id] = true
		}
	}
	v.known = after
	return nil
}

// checkValue returns an error for a malformed reference in a value, or one to a step that
// is not an earlier one.
func (v *validator) checkValue(path string, raw json.RawMessage) error {
	if err := checkRefs(raw); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, r := range refsIn(raw) {
		if r.root == "steps" && !v.known[r.step] {
			return fmt.Errorf("%s: %s is not an earlier step", path, r.text)
		}
	}
	return nil
}
