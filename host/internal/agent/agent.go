// Package agent is the loop between a model and tools: it asks the model, makes the
// calls that it answers with, and asks again, until the model calls nothing more or a
// bound is reached. It knows no transport: who asks gives it a conversation, a model
// and a set of tools, and is told of what happens by events.
//
// A run never runs away and never loses what was found: rounds, tokens, time, cost
// and identical calls are bounded; at a bound the model is asked once more, without
// tools, to sum up (Bounds.Grace), and the outcome says why it ended. A bound is
// looked at before each turn, so that tokens and cost can be passed by one turn and
// the summary. The summary's request still has the definitions of tools, which some
// vendors want wherever calls are in the history, but none may be called.
//
// # The history
//
// Whatever the model answers, what the run adds is a conversation that every vendor
// takes: each call has a result, in the order of the calls, in the one message after
// the answer that made them (but for those that the caller is to make, if the run
// ended for these); ids are unique in the conversation and of a form that all take;
// an answer without anything in it leaves no message. So it is after a cancellation
// and after an error, too.
//
// A call that is not made, or fails, has a result that says so in a form that does
// not change:
//
//	tool: grep
//	arguments: {"path":"src","pattern":"("}
//	error: BAD_PATTERN: …
//	duration_ms: 12
//
// Arguments are in the order of their names. A tool's own words on its failure are
// after "output:", on lines of their own. What a tool answers that did not fail is
// left as it is. Every result has a member duration_ms (ToolResult.Others).
//
// # The journal
//
// With a Journal each step is written down before the next one is begun, and Resume
// goes on where a run was when it was killed. Of a call that was begun, and whose
// result was not written down, nobody knows whether it took effect: one that does no
// harm when it is repeated (its tool says that it is read-only or idempotent) is made
// again, of any other the model is told so.
package agent

import (
	"context"
	"encoding/json"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/tokens"
)

// Tools is what an agent may call. It is safe for concurrent use; it is asked anew in
// each round, so that what a policy or filter says holds in every round.
type Tools interface {
	// Begin begins a round. Its error ends the run: see Ending Rounds.
	Begin() error

	// List returns the definitions in a stable order, and the choice that the
	// model is to be given in place of the one asked for.
	List(ctx context.Context, asked *llm.Choice) ([]llm.Tool, *llm.Choice, error)

	// Call makes one call. progress, unless nil, takes what the tool says of how
	// far it is. A failure that the model is to be told of is a result with
	// IsError; the error is for calls that could not be made, and is told to the
	// model, too, unless ctx has ended.
	Call(ctx context.Context, c *llm.ToolCall, progress func(text string)) (*call.Result, error)
}

// Bounds are what a run may take. What is zero is the default; negative is no bound.
type Bounds struct {
	Turns     int           // answers of the model; 25
	Tokens    int           // input and output of all turns together; no bound
	Cost      float64       // in the unit of the models' prices, where they have some; no bound
	Time      time.Duration // 600 s, not counting pauses in which a person is asked (call.Pause)
	Grace     time.Duration // for the summary beyond Time; 60 s
	Identical int           // calls of the same tool with the same arguments; 3
	Parallel  int           // calls at once; 10
}

// Config is what a run needs.
type Config struct {
	Model  provider.Model
	Larger []provider.Model // that may take over where the conversation does not fit
	Tools  Tools            // nil: none

	// Theirs are tools that the caller runs: a turn that calls some ends the run,
	// after the calls of ours that it also made.
	Theirs []llm.Tool

	// Request is what each request has besides messages and tools: temperature,
	// bounds of an answer, choice ….
	Request llm.Request

	System  string // before the conversation; "": nothing
	Bounds  Bounds
	Counter tokens.Counter // nil: estimates
	Journal Journal        // nil: none is kept

	// Again is how often in a run a turn whose answer broke off is asked for anew.
	// What was told of its pieces is void then: an Error and the Turn say so. Where
	// nothing had come, the provider has asked as often as it is of use.
	Again int

	// Whole, unless nil, is called while the run goes on with the messages that it has
	// added since the last time, whenever the conversation is whole with them: each call
	// has its result. The last messages come with the Outcome alone.
	Whole func(added []llm.Message)

	On func(Event) // nil: nobody is told; called by one goroutine at a time, in order
}

// An Ending is why a run ended.
type Ending string

// The endings.
const (
	Goal      Ending = "goal reached"         // the model called nothing more
	Theirs    Ending = "the caller's tools"   // the caller is to make calls
	Rounds    Ending = "turn limit"           // Bounds.Turns, or the policy's
	Tokens    Ending = "token limit"          //
	Cost      Ending = "cost limit"           //
	Time      Ending = "time limit"           //
	Identical Ending = "identical calls"      // the model asked for the same again and again
	Context   Ending = "context full"         // it does not fit any model, however it is cut
	Length    Ending = "answer cut"           // the answer reached MaxTokens
	Refused   Ending = "refused by the model" //
	Empty     Ending = "empty answer"         // the model said nothing, also when asked again
	Denied    Ending = "denied by policy"     // no choice of tools is left of the one asked for
	Waiting   Ending = "approval pending"     // a call waits for somebody's decision
	Cancelled Ending = "cancelled"            //
	Failed    Ending = "model error"          // Outcome.Err says which
	Unkept    Ending = "journal error"        // a step could not be written down, and so not be made
)

// An Outcome is what a run came to. There is one however it ended.
type Outcome struct {
	Why      Ending
	Err      error         // why the model or a bound ended it, where there is more to say; nil: nothing
	Messages []llm.Message // what the run added to the conversation; with it valid for every vendor
	Response *llm.Response // the last answer of the model, as it is in Messages; nil: there was none
	Summed   bool          // the last answer is the summary at a bound
	Theirs   []*llm.ToolCall
	Pending  []*call.Pending
	Usage    llm.Usage
	Cost     float64
	Turns    int
	Calls    map[string]int // by tool
	Took     time.Duration
}

// An EventType says which members of an Event are set.
type EventType string

// The types of events. Turn and Delta are of the model; Call and Response belong
// together by ID.
const (
	Turn     EventType = "turn"          // a turn begins: Turn, Model
	Piece    EventType = "delta"         // Delta
	Answered EventType = "answer"        // Response: a turn's whole answer, its calls with the ids they have in the history
	Called   EventType = "tool.call"     // ID, Call
	Progress EventType = "tool.progress" // ID, Text
	Returned EventType = "tool.response" // ID, Call, Result, Took
	Error    EventType = "error"         // ID where it is a call's, Err
	Cut      EventType = "compacted"     // Text: what was cut or left out to make it fit
	Ended    EventType = "ended"         // Text: the Ending
)

// An Event is something that happened in a run.
type Event struct {
	Type     EventType
	ID       string // one for each call of a run, also where a model repeats its own
	Turn     int
	Model    string
	Delta    llm.Delta
	Response *llm.Response
	Call     *llm.ToolCall
	Result   *llm.ToolResult
	Text     string
	Err      error
	Took     time.Duration
}

// A Journal keeps the steps of a run, each before the next is begun, so that a run
// that was killed goes on where it was. Entries are read back in order by Resume.
type Journal interface {
	Append(ctx context.Context, entry json.RawMessage) error
	Read(ctx context.Context) ([]json.RawMessage, error)
}
