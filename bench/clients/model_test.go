//go:build oracle

package clients

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// definition is a tool as a server lists it or as a model receives it.
type definition struct {
	Name        string
	Description string
	schema      schema
	bytes       int // of the whole definition, as JSON
}

// schema is the part of a JSON Schema that every vendor takes.
type schema struct {
	Description string
	Properties  map[string]schema
	Items       *schema
}

func (d *definition) UnmarshalJSON(text []byte) error {
	type plain definition
	var schemas struct {
		InputSchema          schema
		Messages             schema `json:"input_schema"`
		Parameters           schema
		ParametersJSONSchema schema
	}
	err := errors.Join(json.Unmarshal(text, (*plain)(d)), json.Unmarshal(text, &schemas))
	for _, s := range []schema{schemas.InputSchema, schemas.Messages, schemas.Parameters, schemas.ParametersJSONSchema} {
		if s.Properties != nil {
			d.schema = s
		}
	}
	d.bytes = len(text)
	d.Description = plainDots(d.Description)
	return err
}

// plainDots writes an ellipsis as three dots, as Claude Code does in descriptions.
func plainDots(text string) string { return strings.ReplaceAll(text, "…", "...") }

// parameters returns the descriptions of all parameters by name.
func (d definition) parameters() map[string]string {
	all := map[string]string{}
	var add func(prefix string, s schema)
	add = func(prefix string, s schema) {
		for name, property := range s.Properties {
			all[prefix+name] = plainDots(property.Description)
			add(prefix+name+".", property)
			if property.Items != nil {
				add(prefix+name+"[].", *property.Items)
			}
		}
	}
	add("", d.schema)
	return all
}

// received is a tool result as a model receives it.
type received struct {
	text    string
	images  int
	isError bool // where the model's API has a mark for it
}

// request holds what a request gives to the model.
type request struct {
	tools   []definition
	results []received // of all calls so far
	stream  bool
	count   int // tokens, of a request that only asks for their number
}

// toolCall is a call that the model makes.
type toolCall struct {
	id        string
	name      string
	arguments map[string]any
}

// api is the protocol of one vendor's models.
type api interface {
	// read parses a request. It reports false for a request that asks no model.
	read(r *http.Request, body []byte) (request, bool, error)
	// write answers with a call of a tool, or with the text where call is nil.
	write(w http.ResponseWriter, r request, text string, call *toolCall) error
}

// turn is one call of the script: the name as the agent offers it.
type turn struct {
	name      string
	arguments map[string]any
}

// model is a scripted model: it calls one tool after the other and then says
// that it is done. How far it has come follows from the results in a request.
type model struct {
	api    api
	script []turn

	mu       sync.Mutex
	first    []byte       // body of the first request of the conversation
	offered  []definition // in that request
	latest   []definition // in the last request
	results  []received   // each as it was in the first request with it
	problems []string
	strays   []string // requests that ask no model
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		m.problems = append(m.problems, err.Error())
		return
	}
	seen, ok, err := m.api.read(r, body)
	switch {
	case err != nil:
		m.problems = append(m.problems, fmt.Sprintf("%s %s: %v", r.Method, r.URL, err))
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	case !ok:
		m.strays = append(m.strays, r.Method+" "+r.URL.Path)
		http.NotFound(w, r)
		return
	}
	if err := m.answer(w, seen, body); err != nil {
		m.problems = append(m.problems, err.Error())
	}
}

// answer makes the next call of the script. A request without tools asks for a
// title or the like.
func (m *model) answer(w http.ResponseWriter, seen request, body []byte) error {
	if seen.count > 0 {
		w.Header().Set("Content-Type", "application/json")
		return json.NewEncoder(w).Encode(map[string]any{"input_tokens": seen.count})
	}
	if len(seen.tools) == 0 {
		return m.api.write(w, seen, "A title", nil)
	}
	if m.first == nil {
		m.first, m.offered = body, seen.tools
	}
	m.latest = seen.tools
	if at := len(m.results); at < len(seen.results) {
		m.results = append(m.results, seen.results[at:]...)
	}
	next := len(seen.results)
	if next >= len(m.script) {
		return m.api.write(w, seen, "All calls are made.", nil)
	}
	return m.api.write(w, seen, "", &toolCall{fmt.Sprintf("call_%d", next), m.script[next].name, m.script[next].arguments})
}

// stream writes server-sent events, each with its name where it has one.
func stream(w http.ResponseWriter, events ...any) error {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range events {
		if named, ok := event.(map[string]any); ok && named["type"] != nil {
			if _, err := fmt.Fprintf(w, "event: %s\n", named["type"]); err != nil {
				return err
			}
		}
		text, err := json.Marshal(event)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "data: %s\n\n", text); err != nil {
			return err
		}
	}
	return nil
}
