// Package scripted is a model whose answers come from a file, for tests, demonstrations and
// work without a network. The file is YAML or JSON:
//
//	window: 8000                        # for Info; all of this is optional
//	answers:                            # the first match is given
//	  - when: {message: "fix (\S+)"}   # regular expressions (Go's)
//	    text: I look at {{1}} first.    # the matched groups
//	    calls:
//	      - {name: view, args: {path: "{{1}}"}}
//	  - when: {tool: view, result: "not found"}
//	    text: There is no such file.
//	  - when: {turn: 3}
//	    error: RATE_LIMITED             # or {code, message, after: PIECES}
//	    times: 1                        # given once, then skipped
//	  - answers: [{text: one}, {text: two}]
//
// # Conditions
//
// All conditions of when must hold. message: the last message is the user's and its text
// matches. result: the last message has tool results, and the text of one of them matches.
// tool: the name of that result's tool matches, with *. is_error: whether that result is an
// error. system: a system message matches. model: the requested name matches. tools: whether
// the request offers tools. turn: the number of the model's messages since the last one of the
// user. Without conditions an answer always matches.
//
// # Answers
//
// thinking, text, refusal and calls {id, name, args, or raw: text that is not an object} are the
// parts, in this order. stop is the reason why the turn ends (default: calls or end; length,
// refusal, context and so on). usage {input, output, …} replaces the counted one. delay is
// the time before the answer. {{message}}, {{result}}, {{0}}, {{1}} and so on in texts and
// arguments are replaced by the matched texts. answers is a sequence: the nth answer is for the
// nth turn since the user's message, the last one for all later turns. If no answer matches,
// the error is MODEL_ERROR and describes the request.
//
// The answer depends only on the conversation, except for times: concurrent requests and
// continued runs get the same answers.
//
// # Recordings
//
// recording: FILE, instead of answers, replays a session of mcp-host record: each answer is the
// next call of the client.
package scripted

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A Script is the content of a file.
type Script struct {
	Window    int      `json:"window"`
	MaxOutput int      `json:"max_output"`
	Images    bool     `json:"images"`
	Answers   []Answer `json:"answers"`
	Recording string   `json:"recording"` // relative to the file
}

// An Answer is one answer or a sequence of answers.
type Answer struct {
	When  When `json:"when"`
	Times int  `json:"times"` // number of times that the answer is given; 0: no limit

	Thinking string         `json:"thinking"`
	Text     string         `json:"text"`
	Refusal  string         `json:"refusal"`
	Calls    []Call         `json:"calls"`
	Stop     llm.StopReason `json:"stop"`
	Usage    *llm.Usage     `json:"usage"`
	Delay    Duration       `json:"delay"`
	Error    *Failure       `json:"error"`
	Answers  []Answer       `json:"answers"`
}

// When holds the conditions of an answer.
type When struct {
	Message *Pattern `json:"message"`
	Result  *Pattern `json:"result"`
	Tool    string   `json:"tool"`
	IsError *bool    `json:"is_error"`
	System  *Pattern `json:"system"`
	Model   *Pattern `json:"model"`
	Tools   *bool    `json:"tools"`
	Turn    *int     `json:"turn"`
}

// A Call is a tool call in an answer.
type Call struct {
	ID   string          `json:"id"` // "": a new ID
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
	Raw  string          `json:"raw"` // text that the model writes instead of a JSON object
}

// A Failure is an error that the model returns. In the file, it is a code or an object.
type Failure struct {
	Code    toolerr.Code `json:"code"`
	Message string       `json:"message"`
	After   int          `json:"after"` // number of pieces of the answer before the error
}

// UnmarshalJSON decodes an object, or a string with only the code. It returns an error for
// an unknown code.
func (f *Failure) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &f.Code) != nil {
		type plain Failure
		if err := decodeStrict(data, (*plain)(f)); err != nil {
			return err
		}
	}
	if !slices.Contains(toolerr.Codes(), f.Code) {
		return fmt.Errorf("error: %q is not a code such as %s", f.Code, toolerr.RateLimited)
	}
	return nil
}

// A Pattern is a regular expression.
type Pattern struct{ *regexp.Regexp }

// UnmarshalJSON compiles the regular expression in a string, and returns an error for an
// invalid one.
func (p *Pattern) UnmarshalJSON(data []byte) (err error) {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	p.Regexp, err = regexp.Compile(text)
	return err
}

// A Duration is written in Go's syntax, such as 100ms.
type Duration time.Duration

// UnmarshalJSON parses a duration such as "100ms", and returns an error for an invalid or
// negative one.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("want a duration like 100ms")
	}
	read, err := time.ParseDuration(text)
	if *d = Duration(read); err == nil && read < 0 {
		err = fmt.Errorf("want a duration like 100ms")
	}
	return err
}

// decodeStrict decodes JSON and returns an error for unknown members.
func decodeStrict(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// A Model answers from a script or a recording instead of a language model. It is safe
// for concurrent use.
type Model struct {
	info      provider.Info
	script    Script
	recording sessionCalls
	recorded  bool // answer from recording instead of script

	mu         sync.Mutex
	timesGiven map[*Answer]int // how often each answer was given
}

// Open reads a script or recording. info has the model's properties that the file does not
// set. It returns NO_MODEL for a missing or malformed file.
func Open(file string, info provider.Info) (*Model, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, toolerr.New(toolerr.NoModel, "the scripted model: %w", err)
	}
	m, err := Parse(file, text, info)
	if err != nil {
		return nil, toolerr.New(toolerr.NoModel, "the scripted model: %w", err)
	}
	return m, nil
}

// Parse does the same as Open for text, the content of a file. Recordings are relative
// to file.
func Parse(file string, text []byte, info provider.Info) (*Model, error) {
	if isRecording(text) { // the file is a recording
		return newModel(Script{Recording: filepath.Base(file)}, file, info)
	}
	trees, problem := dialect.ParseTrees(file, text)
	if problem != nil {
		return nil, errors.New(problem.String())
	}
	if len(trees) != 1 || !trees[0].IsMap() {
		return nil, fmt.Errorf("%s: want one map with answers", file)
	}
	var s Script
	if err := decodeStrict(trees[0].JSON(), &s); err != nil {
		return nil, fmt.Errorf("%s: %s", file, strings.TrimPrefix(err.Error(), "json: "))
	}
	if err := s.validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return newModel(s, file, info)
}

// newModel returns a model that answers from the script of a file. It returns an error if
// its recording cannot be read.
func newModel(s Script, file string, info provider.Info) (*Model, error) {
	m := &Model{info: info, script: s, timesGiven: map[*Answer]int{}}
	if s.Window > 0 {
		m.info.Window = s.Window
	}
	if s.MaxOutput > 0 {
		m.info.MaxOutput = s.MaxOutput
	}
	m.info.Images = m.info.Images || s.Images
	if s.Recording != "" {
		name := s.Recording
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(file), name)
		}
		var err error
		if m.recording, err = readRecording(name); err != nil {
			return nil, err
		}
		m.recorded = true
	}
	return m, nil
}

// validate returns an error unless the script has either answers or a recording, and
// its answers are correct.
func (s Script) validate() error {
	if (s.Recording == "") == (len(s.Answers) == 0) {
		return errors.New("want either answers or a recording")
	}
	return checkAnswers(s.Answers, "answers")
}

// checkAnswers returns an error that names the first wrong answer; at is the path of
// the list.
func checkAnswers(answers []Answer, at string) error {
	for i := range answers {
		a := &answers[i]
		here := fmt.Sprintf("%s[%d]", at, i)
		says := a.Thinking != "" || a.Text != "" || a.Refusal != "" || len(a.Calls) > 0 || a.Error != nil || a.Stop != ""
		switch {
		case len(a.Answers) > 0 && says:
			return fmt.Errorf("%s: a sequence cannot have parts", here)
		case a.Times < 0:
			return fmt.Errorf("%s: times is negative", here)
		case a.Error != nil && a.Error.After < 0:
			return fmt.Errorf("%s: after is negative", here)
		}
		for k, c := range a.Calls {
			var object map[string]json.RawMessage
			if c.Name == "" {
				return fmt.Errorf("%s.calls[%d]: name is missing", here, k)
			}
			if len(c.Args) > 0 && (c.Raw != "" || json.Unmarshal(c.Args, &object) != nil) {
				return fmt.Errorf("%s.calls[%d]: args and raw cannot be combined", here, k)
			}
		}
		if err := checkAnswers(a.Answers, here+".answers"); err != nil {
			return err
		}
	}
	return nil
}

// Info returns information about the model.
func (m *Model) Info() provider.Info { return m.info }

// Ask returns the first answer whose conditions match the conversation, or the next
// answer of the recording. If no answer matches, it returns MODEL_ERROR.
func (m *Model) Ask(ctx context.Context, r *llm.Request, on func(llm.Delta)) (*llm.Response, error) {
	if err := provider.ContextError(ctx); err != nil {
		return nil, err
	}
	if m.recorded {
		return streamResponse(ctx, m.recording.answer(r), nil, on)
	}
	s := newTurn(r)
	a := m.chooseAnswer(s)
	if a == nil {
		return nil, toolerr.New(toolerr.ModelError, "no answer of the script matches: %s", s)
	}
	if err := wait(ctx, time.Duration(a.Delay)); err != nil {
		return nil, err
	}
	return streamResponse(ctx, a.response(m.info.Name, s), a.Error, on)
}

// wait waits for d, and returns an error if ctx ends first.
func wait(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return provider.ContextError(ctx)
	}
}
