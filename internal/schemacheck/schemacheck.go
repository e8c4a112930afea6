// Package schemacheck checks JSON values against JSON Schemas (draft 2020-12),
// whoever wrote either: a schema reads no other document, what a check may take
// is bounded, and what is wrong is said in sentences with JSON pointers.
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

// maxSchema bounds a schema: reading one takes far longer than its text.
const maxSchema = 256 << 10

// steps bounds the work for a value of so many bytes; see cost.
func steps(bytes int) int { return min(20_000+20*bytes, 400_000) }

// small is up to how many bytes a value that takes too many steps is the
// schema's fault and not its own. A longer one has many parts, each of which a
// schema may well have several things to say of.
const small = 256

// A Schema is a compiled schema with a bound on its work. One value is checked
// at a time; it is safe for concurrent use.
type Schema struct {
	mu       sync.Mutex
	compiled *jsonschema.Schema
	budget   *budget
	broken   bool
}

// Faults is what is wrong with a value.
type Faults struct {
	Path    string // JSON pointer to the first
	Text    string // of all of them
	Missing bool   // all there is is something missing
}

const location = "mem:///schema"

// Compile reads a schema.
func Compile(text json.RawMessage) (*Schema, error) {
	if len(text) > maxSchema {
		return nil, fmt.Errorf("it has %d bytes, of %d that are read", len(text), maxSchema)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if !tame(doc) {
		return nil, errors.New("it has numbers of more digits than are compared")
	}
	s := &Schema{budget: &budget{left: math.MaxInt}}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(s.budget.regexp)
	if err := c.AddResource(location, doc); err != nil {
		return nil, err
	}
	if s.compiled, err = c.Compile(location); err != nil {
		return nil, err
	}
	return s, s.budget.watch(s.compiled)
}

// noLoader keeps schemas from reading files and addresses.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%q is another document; schemas must be whole", url)
}

// Check returns what is wrong with a value, nil when nothing is known to be, or
// why that cannot be told.
func (s *Schema) Check(raw json.RawMessage) (f *Faults, err error) {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return &Faults{Text: err.Error()}, nil //nolint:nilerr // the value's fault
	}
	if !tame(value) {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken {
		return nil, nil
	}
	defer func() {
		if r := recover(); r != nil { // of the library's, what it did not expect
			if f = nil; len(raw) <= small && r == any(errBudget) {
				s.broken = true
				err = fmt.Errorf("the schema is not used any more: %v", r)
			}
		}
	}()
	s.budget.left = steps(len(raw))
	s.budget.spend(entry(s.compiled))
	var invalid *jsonschema.ValidationError
	if err := s.compiled.Validate(value); errors.As(err, &invalid) {
		return explain(invalid), nil
	}
	return nil, nil
}

const (
	maxFaults = 8   // told in one answer
	maxFault  = 300 // bytes of one
)

// explain makes sentences of what the library found.
func explain(e *jsonschema.ValidationError) *Faults {
	f := &Faults{Missing: true}
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
			f.Missing = false
		}
		if len(told) == maxFaults {
			more++
			return
		}
		at := pointer(e.InstanceLocation)
		text := e.ErrorKind.LocalizedString(p)
		if len(text) > maxFault {
			text = strings.ToValidUTF8(text[:maxFault], "") + "…"
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

func pointer(tokens []string) string {
	var b strings.Builder
	for _, token := range tokens {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(token))
	}
	return b.String()
}
