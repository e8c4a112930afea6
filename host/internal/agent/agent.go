// Package agent runs the loop between a model and tools: it asks the model, makes the
// calls of its answer, and asks again, until the model makes no more calls or a bound
// is reached. It knows no transport: the caller provides a conversation, a model and a
// set of tools, and receives events.
//
// A run always ends and loses no results: rounds, tokens, time, cost and identical
// calls are bounded. At a bound the model is asked once more, without tools, for a
// summary (Bounds.Grace), and the outcome says why the run ended. Bounds are checked
// before each turn, so one turn and the summary can exceed the bounds of tokens and
// cost. The request for the summary still contains the definitions of tools, which
// some vendors require if the history contains calls, but permits no call.
//
// # The history
//
// Whatever the model answers, the run adds only messages that every vendor accepts.
// Each call has a result, in the order of the calls, in the one message after the
// answer with the calls, except for the caller's own calls if the run ends for them.
// Ids are unique in the conversation and valid for all vendors. An empty answer adds
// no message. This also holds after a cancellation or an error.
//
// A call that is not made, or that fails, has a result in a fixed form:
//
//	tool: grep
//	arguments: {"path":"src","pattern":"("}
//	error: BAD_PATTERN: …
//	duration_ms: 12
//
// The arguments are sorted by name. A tool's own error text follows after "output:" on
// separate lines. Other results are not changed. Every result has a member duration_ms
// (ToolResult.ExtraMembers).
//
// # The journal
//
// With a Journal each step is written before the next one begins, and Resume continues
// a run that was killed. If a call was begun and its result was not written, it is
// unknown whether the call took effect: it is made again if its tool is read-only or
// idempotent; otherwise the model is told that the outcome is unknown.
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

// Tools are the tools that an agent may call. It is safe for concurrent use. List is
// called in each round, so that the current policy and filters apply.
type Tools interface {
	// Begin begins a round. Its error ends the run: see Ending Rounds.
	Begin() error

	// List returns the definitions in a stable order, and the tool choice to use
	// instead of the requested one.
	List(ctx context.Context, asked *llm.Choice) ([]llm.Tool, *llm.Choice, error)

	// Call makes one call. progress, if not nil, receives progress messages. A failure
	// that the model must see is a result with IsError. An error means that the call
	// could not be made; the model sees it, too, unless ctx has ended.
	Call(ctx context.Context, c *llm.ToolCall, progress func(text string)) (*call.Result, error)
}

// Bounds are the limits of a run. Zero means the default; a negative value means no
// limit.
type Bounds struct {
	Turns     int           // answers of the model; 25
	Tokens    int           // input and output of all turns together; no bound
	Cost      float64       // in the unit of the models' prices, where they have some; no bound
	Time      time.Duration // 600 s, not counting pauses in which a person is asked (call.Pause)
	Grace     time.Duration // for the summary beyond Time; 60 s
	Identical int           // calls of the same tool with the same arguments; 3
	Parallel  int           // calls at once; 10
}

// Config configures a run.
type Config struct {
	Model  provider.Model
	Larger []provider.Model // that may take over where the conversation does not fit
	Tools  Tools            // nil: none

	// Theirs are tools that the caller runs: a turn that calls some ends the run,
	// after the calls of ours that it also made.
	Theirs []llm.Tool

	// Request holds the parameters of each request except messages and tools, such as
	// temperature and limits of an answer.
	Request llm.Request

	System  string // before the conversation; "": nothing
	Bounds  Bounds
	Counter tokens.Counter // nil: estimates
	Journal Journal        // nil: none is kept

	// Again is the number of times in a run that a turn is repeated after its answer
	// broke off. The events of the partial answer are then void, as an Error and the
	// new Turn say. If nothing was received, the provider has already retried.
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

// An Outcome is the result of a run. Every run has one, however it ended.
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
