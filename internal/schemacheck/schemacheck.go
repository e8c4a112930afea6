// Package schemacheck checks JSON values against JSON Schemas (draft 2020-12).
// Neither needs to be trusted: a schema cannot read other documents, and the
// work of a check is bounded. Faults are reported as sentences with JSON
// pointers.
package schemacheck

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// maxSchemaBytes bounds a schema in bytes: compiling takes far longer than
// reading its text.
const maxSchemaBytes = 256 << 10

// maxSteps returns the number of steps allowed for checking a value of so many
// bytes.
func maxSteps(bytes int) int { return min(20_000+20*bytes, 400_000) }

// smallValueBytes is the largest size of a value for which the schema is the
// cause if checking takes too many steps. A larger value has many parts, and a
// schema may have several rules for each part, so then the value counts as the
// cause.
const smallValueBytes = 256

// A Schema is a compiled schema whose checks have bounded cost. It is safe for
// concurrent use; concurrent checks wait for each other.
type Schema struct {
	mu       sync.Mutex
	compiled *jsonschema.Schema
	budget   *budget
	disabled bool // checking a small value took too many steps: every value is accepted
}

// Faults describes how a value violates a schema.
type Faults struct {
	Path        string // JSON pointer to the first fault
	Text        string // description of all faults
	OnlyMissing bool   // all faults are missing members
}

// schemaURL is the address under which the schema is registered with the
// library; nothing is loaded from it.
const schemaURL = "mem:///schema"

// Compile compiles a schema. It returns an error if the schema is not valid,
// refers to another document, has a dynamic reference or a number of many
// digits, or has more than maxSchemaBytes.
func Compile(text json.RawMessage) (*Schema, error) {
	if len(text) > maxSchemaBytes {
		return nil, fmt.Errorf("it has %d bytes, more than the limit of %d", len(text), maxSchemaBytes)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if !hasShortNumbers(doc) {
		return nil, errors.New("it has numbers with more digits than can be compared")
	}
	s := &Schema{budget: &budget{left: math.MaxInt}}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(s.budget.compilePattern)
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, err
	}
	if s.compiled, err = c.Compile(schemaURL); err != nil {
		return nil, err
	}
	return s, s.budget.chargeSubschemas(s.compiled)
}

// noLoader refuses to load documents, so that a schema cannot read files and
// URLs.
type noLoader struct{}

// Load returns an error for every URL.
func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%q refers to another document; a schema must contain all of its definitions", url)
}

// Check returns the faults of a JSON value. f is nil if the value is valid, and
// also if that cannot be found out: for numbers of many digits, for a large
// value whose check takes too many steps, and if the library panics. If the
// check of a small value takes too many steps, Check returns an error once;
// from then on the schema accepts every value.
func (s *Schema) Check(raw json.RawMessage) (f *Faults, err error) {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return &Faults{Text: err.Error()}, nil //nolint:nilerr // the value's fault
	}
	if !hasShortNumbers(value) {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.disabled {
		return nil, nil
	}
	defer func() {
		if r := recover(); r != nil { // a panic of the library, on input that it did not expect
			if f = nil; len(raw) <= smallValueBytes && r == any(errOverBudget) {
				s.disabled = true
				err = fmt.Errorf("the schema is no longer used: %v", r)
			}
		}
	}()
	s.budget.left = maxSteps(len(raw))
	s.budget.spend(entryCost(s.compiled))
	var invalid *jsonschema.ValidationError
	if err := s.compiled.Validate(value); errors.As(err, &invalid) {
		return faultsOf(invalid), nil
	}
	return nil, nil
}

const (
	// maxFaults and maxFaultBytes bound an answer: the number of faults, and
	// the bytes of one fault's text.
	maxFaults     = 8   // number of faults in one answer
	maxFaultBytes = 300 // bytes of one fault's text
)

// faultsOf converts the library's error to sentences, at most maxFaults of
// them.
func faultsOf(e *jsonschema.ValidationError) *Faults {
	f := &Faults{OnlyMissing: true}
	p := message.NewPrinter(language.English)
	var told []string
	more := 0
	var walk func(e *jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		if len(e.Causes) > 0 {
			for _, cause := range e.Causes {
				walk(cause)
			}
			return
		}
		if _, ok := e.ErrorKind.(*kind.Required); !ok {
			f.OnlyMissing = false
		}
		if len(told) == maxFaults {
			more++
			return
		}
		at := jsonPointer(e.InstanceLocation)
		text := e.ErrorKind.LocalizedString(p)
		if len(text) > maxFaultBytes {
			text = strings.ToValidUTF8(text[:maxFaultBytes], "") + "…"
		}
		if len(told) == 0 {
			f.Path = at
		}
		if at != "" {
			text = at + ": " + text
		}
		told = append(told, text)
	}
	walk(e)
	f.Text = strings.Join(told, "; ")
	if more > 0 {
		f.Text += fmt.Sprintf("; and %d more", more)
	}
	return f
}

// jsonPointer returns the JSON pointer (RFC 6901) of the value reached by
// tokens, member names and item numbers.
func jsonPointer(tokens []string) string {
	var b strings.Builder
	for _, token := range tokens {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(token))
	}
	return b.String()
}
