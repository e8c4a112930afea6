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
// a run that was killed. If a call was begun and its result was not written, Resume
// does not know whether the call took effect. It makes the call again if the tool is
// read-only or idempotent; otherwise it tells the model that the outcome is unknown.
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
	Turns     int           // number of answers of the model; 25
	Tokens    int           // input and output of all turns together; no limit
	Cost      float64       // in the currency of the models' prices; no limit
	Time      time.Duration // 600 s, without the time in which a user answers a question (call.PauseClocks)
	Grace     time.Duration // time for the summary after Time; 60 s
	Identical int           // number of calls of a tool with the same arguments; 3
	Parallel  int           // number of concurrent calls; 10
}

// Config configures a run.
type Config struct {
	Model  provider.Model
	Larger []provider.Model // models that replace Model if the conversation does not fit
	Tools  Tools            // nil: none

	// CallerTools are tools that the caller runs. A turn that calls some of them ends
	// the run, after the other calls of the turn.
	CallerTools []llm.Tool

	// Request holds the parameters of each request except messages and tools, such as
	// temperature and limits of an answer.
	Request llm.Request

	System  string // instructions before the conversation; "": none
	Bounds  Bounds
	Counter tokens.Counter // nil: an estimate
	Journal Journal        // nil: none

	// Retries is the number of times in a run that a turn is repeated after its answer
	// broke off. The events of the partial answer are then void, as an Error and a new
	// Turn show. If nothing was received, the provider has already retried.
	Retries int

	// OnMessages, unless nil, is called during the run with the messages that were
	// added since the last time, whenever each call in them has its result. The last
	// messages are only in the Outcome.
	OnMessages func(added []llm.Message)

	On func(Event) // nil: no events; called by one goroutine at a time, in order
}

// An Ending is the reason why a run ended.
type Ending string

// The endings.
const (
	EndGoal         Ending = "goal reached"         // the model made no more calls
	EndCallerTools  Ending = "the caller's tools"   // the caller must run tools
	EndTurns        Ending = "turn limit"           // Bounds.Turns, or the policy's limit of rounds
	EndTokens       Ending = "token limit"          //
	EndCost         Ending = "cost limit"           //
	EndTime         Ending = "time limit"           //
	EndIdentical    Ending = "identical calls"      // the model repeated the same calls
	EndContext      Ending = "context full"         // the conversation does not fit any model, even shortened
	EndLength       Ending = "answer cut"           // the answer reached MaxTokens
	EndRefused      Ending = "refused by the model" //
	EndEmpty        Ending = "empty answer"         // the model returned nothing, twice
	EndDenied       Ending = "denied by policy"     // the policy excludes the requested tool choice
	EndPending      Ending = "approval pending"     // a call waits for a decision
	EndCancelled    Ending = "cancelled"            //
	EndModelError   Ending = "model error"          // see Outcome.Err
	EndJournalError Ending = "journal error"        // a step could not be stored, and so was not made
)

// An Outcome is the result of a run. Every run has one.
type Outcome struct {
	Ending      Ending
	Err         error         // details of the ending; nil: none
	Messages    []llm.Message // messages that the run added; the whole conversation is valid for every vendor
	Response    *llm.Response // the last answer of the model, also in Messages; nil: none
	HasSummary  bool          // the last answer is the summary after a limit was reached
	CallerCalls []*llm.ToolCall
	Pending     []*call.Pending
	Usage       llm.Usage
	Cost        float64
	Turns       int
	Calls       map[string]int // number of calls by tool
	Took        time.Duration
}

// An EventType says which fields of an Event are set.
type EventType string

// The types of events. TurnEvent and DeltaEvent belong to the model. CallEvent and
// ResultEvent of a call have the same ID.
const (
	TurnEvent      EventType = "turn"          // a turn begins: Turn, Model
	DeltaEvent     EventType = "delta"         // Delta
	AnswerEvent    EventType = "answer"        // Response: the complete answer of a turn, with the ids of its calls in the history
	CallEvent      EventType = "tool.call"     // ID, Call
	ProgressEvent  EventType = "tool.progress" // ID, Text
	ResultEvent    EventType = "tool.response" // ID, Call, Result, Took
	ErrorEvent     EventType = "error"         // Err; ID if it belongs to a call
	CompactedEvent EventType = "compacted"     // Text: which content was shortened or left out
	EndEvent       EventType = "ended"         // Text: the Ending
)

// An Event is an event of a run.
type Event struct {
	Type     EventType
	ID       string // unique for each call of a run, even if the model repeats an id
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

// A Journal stores the steps of a run, each before the next one begins, so that a
// killed run can continue. Resume reads the entries in order.
type Journal interface {
	Append(ctx context.Context, entry json.RawMessage) error
	Read(ctx context.Context) ([]json.RawMessage, error)
}
