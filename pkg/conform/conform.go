// Package conform checks JSON values against JSON Schemas (draft 2020-12),
// whoever wrote either: a schema reads no other document, what a check may take
// is bounded, and what is wrong is said in sentences with JSON pointers.
package conform

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// steps bounds the subschemas that are applied for a value of so many bytes.
func steps(bytes int) int { return min(5_000+2*bytes, 100_000) }

// ordinary is up to how many bytes a value that takes too many steps is the
// schema's fault and not its own.
const ordinary = 64 << 10

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
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	s := &Schema{budget: &budget{}}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(lenientRegexp)
	c.RegisterVocabulary(&jsonschema.Vocabulary{
		URL: "mem:///steps",
		Compile: func(*jsonschema.CompilerContext, map[string]any) (jsonschema.SchemaExt, error) {
			return s.budget, nil
		},
	})
	c.AssertVocabs()
	if err := c.AddResource(location, doc); err != nil {
		return nil, err
	}
	s.compiled, err = c.Compile(location)
	return s, err
}

// noLoader keeps schemas from reading files and addresses.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%q is another document; schemas must be whole", url)
}

// lenientRegexp compiles patterns of JavaScript as far as Go has them; others
// match anything.
func lenientRegexp(pattern string) (jsonschema.Regexp, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return anything(pattern), nil //nolint:nilerr // see above
	}
	return re, nil
}

type anything string

func (anything) MatchString(string) bool { return true }
func (a anything) String() string        { return string(a) }

// budget counts the steps of a check. It stands among the extensions of every
// subschema, which are applied with it.
type budget struct{ left int }

var errBudget = errors.New("checking takes too many steps")

func (b *budget) Validate(*jsonschema.ValidatorContext, any) {
	if b.left--; b.left < 0 {
		panic(errBudget)
	}
}

// Check returns what is wrong with a value, nil when nothing is known to be, or
// why that cannot be told.
func (s *Schema) Check(raw json.RawMessage) (f *Faults, err error) {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return &Faults{Text: err.Error()}, nil //nolint:nilerr // the value's fault
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken {
		return nil, nil
	}
	defer func() {
		if r := recover(); r != nil {
			if f = nil; len(raw) <= ordinary {
				s.broken = true
				err = fmt.Errorf("the schema is not used any more: %v", r)
			}
		}
	}()
	s.budget.left = steps(len(raw))
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
