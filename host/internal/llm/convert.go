// Package llm has the host's form of tools, conversations and answers, between MCP,
// OpenAI's chat completions, Anthropic's Messages and Gemini's generateContent. Each
// vendor has a package below this one that encodes and decodes definitions, requests
// and responses.
//
// A conversion reports everything that it does not keep in its Losses, with the
// position, the replacement and the reason. The tests require that a value is equal
// after converting it back if no loss was reported. Decoded content without an
// equivalent here (audio, a vendor's own tools) is kept unchanged for its vendor
// (Part.Raw) and lost for others.
//
// Two conversations are the same if Canonical makes them equal: successive messages of
// one role mean the same as one message.
//
// Streams use the same types: an event adds to a part of a Response by its index
// (text, thinking and call arguments grow, a signature is set), so that a partial
// stream is always a Response.
package llm

import (
	"encoding/json"
	"fmt"
	"slices"
)

// A Vendor is a wire format.
type Vendor string

// The vendors.
const (
	MCP       Vendor = "mcp"
	OpenAI    Vendor = "openai"
	Anthropic Vendor = "anthropic"
	Gemini    Vendor = "gemini"
)

// A Tool is a tool's definition. As JSON it is an entry of MCP's tools/list.
type Tool struct {
	Name        string
	Title       string
	Description string
	Input       json.RawMessage // JSON Schema of the arguments; nil: said nothing
	Output      json.RawMessage // JSON Schema of structured results; nil: none
	Annotations json.RawMessage // MCP's hints; nil: none
	Strict      bool            // the vendor is to hold its model to Input, which is written for that

	// Others are the definition's other members (_meta, icons, execution …).
	Others []Member
}

// A Member is a member that the model has no name for.
type Member struct {
	Name  string
	Value json.RawMessage
}

// A Role is the author of a message.
type Role string

// The roles. Tool results have a separate role, whatever the vendor calls it.
// Developer is OpenAI's name for newer system messages.
const (
	System    Role = "system"
	Developer Role = "developer"
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool"
)

// A Message is one message of a conversation.
type Message struct {
	Role  Role   `json:"role"`
	Name  string `json:"name,omitempty"` // of a participant, where several have the role
	Parts []Part `json:"parts,omitempty"`
}

// A PartType says which members of a Part are set.
type PartType string

// The types of parts.
const (
	Text     PartType = "text"     // Text
	Image    PartType = "image"    // Media
	Call     PartType = "call"     // ToolCall; of the assistant
	Result   PartType = "result"   // ToolResult; of messages with ToolRole, which have nothing else
	Thinking PartType = "thinking" // Text and mostly Signature; of the assistant
	Redacted PartType = "redacted" // Signature alone: thinking that only its vendor can read
	Refusal  PartType = "refusal"  // Text; of the assistant
	Opaque   PartType = "opaque"   // Raw, in the form of By
)

// A Part is a piece of a message.
type Part struct {
	Type       PartType        `json:"type"`
	Text       string          `json:"text,omitempty"`
	Media      *Media          `json:"media,omitempty"`
	ToolCall   *ToolCall       `json:"call,omitempty"`
	ToolResult *ToolResult     `json:"result,omitempty"`
	Signature  *Signature      `json:"signature,omitempty"` // Gemini signs parts of every type
	By         Vendor          `json:"by,omitempty"`
	Raw        json.RawMessage `json:"raw,omitempty"`
}

// Media is an image: its bytes, or where it is.
type Media struct {
	MIME   string `json:"mime,omitempty"`
	Data   string `json:"data,omitempty"` // base64, as it came
	URL    string `json:"url,omitempty"`
	Detail string `json:"detail,omitempty"` // how closely to look: low, high, auto
}

// A Signature is a value that a vendor requires back unchanged with the content that
// it signed. Other vendors ignore it.
type Signature struct {
	By    Vendor `json:"by"`
	Value string `json:"value"`
}

// Validate says what a message that was not made here lacks: nothing here looks for it
// again.
func (m Message) Validate() error {
	if !slices.Contains([]Role{System, Developer, User, Assistant, ToolRole}, m.Role) {
		return fmt.Errorf("unknown role %.40q", m.Role)
	}
	return validParts(m.Parts)
}

func validParts(parts []Part) error {
	for i, p := range parts {
		lacks := ""
		switch {
		case p.Type == Image && p.Media == nil:
			lacks = "media"
		case p.Type == Call && (p.ToolCall == nil || p.ToolCall.Name == ""):
			lacks = "call, with a name"
		case p.Type == Result && p.ToolResult == nil:
			lacks = "result"
		case p.Type == Opaque && p.Raw == nil:
			lacks = "raw"
		case p.Type == Redacted && p.Signature == nil:
			lacks = "signature"
		case p.Type == Result:
			if err := validParts(p.ToolResult.Content); err != nil {
				return fmt.Errorf("part %d: content: %w", i, err)
			}
		case !slices.Contains([]PartType{Text, Image, Call, Thinking, Redacted, Refusal, Opaque}, p.Type):
			return fmt.Errorf("part %d: unknown type %.40q", i, p.Type)
		}
		if lacks != "" {
			return fmt.Errorf("part %d of type %s has no %s", i, p.Type, lacks)
		}
	}
	return nil
}

// A ToolCall is a model's request to run a tool.
type ToolCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`

	// Args are the arguments, an object. If the model did not write an object,
	// Malformed holds its text and Args is nil.
	Args      json.RawMessage `json:"args,omitempty"`
	Malformed string          `json:"malformed,omitempty"`
}

// A ToolResult answers the call with the same ID.
type ToolResult struct {
	ID         string          `json:"id"`
	Name       string          `json:"name,omitempty"` // of the tool, where it is known
	Content    []Part          `json:"content,omitempty"`
	Structured json.RawMessage `json:"structured,omitempty"` // the same for programs
	IsError    bool            `json:"is_error,omitempty"`
	Others     []Member        `json:"others,omitempty"` // of an MCP result: _meta …
}

// A Mode is how free the model is to call tools.
type Mode string

// The modes.
const (
	Auto     Mode = "auto"
	Required Mode = "required" // at least one call, of Names if there are any
	None     Mode = "none"
)

// A Choice says which tools a model may or must call. With Names and Auto it may call
// only these.
type Choice struct {
	Mode  Mode     `json:"mode"`
	Names []string `json:"names,omitempty"`
}

// A Request is a request to a model.
type Request struct {
	Model       string    `json:"model,omitempty"`
	Messages    []Message `json:"messages,omitempty"`
	Tools       []Tool    `json:"tools,omitempty"`
	Choice      *Choice   `json:"choice,omitempty"`
	Parallel    *bool     `json:"parallel,omitempty"`   // whether several calls may come at once
	MaxTokens   int       `json:"max_tokens,omitempty"` // 0: not said
	Temperature *float64  `json:"temperature,omitempty"`
	TopP        *float64  `json:"top_p,omitempty"`
	TopK        int       `json:"top_k,omitempty"`
	Stop        []string  `json:"stop,omitempty"`

	// Format is the form of the answer as OpenAI's response_format says it, which
	// no other vendor is sent; nil: text.
	Format json.RawMessage `json:"format,omitempty"`

	Stream      bool `json:"stream,omitempty"`
	StreamUsage bool `json:"stream_usage,omitempty"` // the usage at the end of a stream, too
}

// A Stop is why a model ended its turn.
type Stop string

// The reasons.
const (
	StopEnd      Stop = "end"
	StopCalls    Stop = "calls"    // it calls tools
	StopLength   Stop = "length"   // MaxTokens
	StopContext  Stop = "context"  // its context is full
	StopSequence Stop = "sequence" // one of Request.Stop
	StopRefusal  Stop = "refusal"  // it, or a filter, refuses
	StopPause    Stop = "pause"    // it wants to go on when it is asked again
	StopFault    Stop = "fault"    // it failed to say something that can be read
	StopOther    Stop = "other"
)

// Usage counts tokens. Input and Output are totals, which include the other members.
type Usage struct {
	Input      int `json:"input,omitempty"`
	CacheRead  int `json:"cache_read,omitempty"`
	CacheWrite int `json:"cache_write,omitempty"`
	Output     int `json:"output,omitempty"`
	Reasoning  int `json:"reasoning,omitempty"`
}

// A Response is a model's turn.
type Response struct {
	ID      string `json:"id,omitempty"`
	Model   string `json:"model,omitempty"`
	Created int64  `json:"created,omitempty"` // Unix seconds; 0: not said
	Parts   []Part `json:"parts,omitempty"`
	Stop    Stop   `json:"stop,omitempty"` // "": it has not ended
	Word    string `json:"word,omitempty"` // the vendor's word for Stop, as By says it
	By      Vendor `json:"by,omitempty"`
	Matched string `json:"matched,omitempty"` // the stop sequence
	Usage   *Usage `json:"usage,omitempty"`
}

// Message makes the response a message of the conversation.
func (r *Response) Message() Message { return Message{Role: Assistant, Parts: r.Parts} }

// Calls returns the calls of a response in order.
func (r *Response) Calls() []*ToolCall {
	var calls []*ToolCall
	for _, p := range r.Parts {
		if p.Type == Call && p.ToolCall != nil {
			calls = append(calls, p.ToolCall)
		}
	}
	return calls
}

// Canonical returns the messages in the form that tells what they say:
// neighbours of one role and name are one message, empty texts and messages
// without parts are none, results have the names of the tools called.
func Canonical(messages []Message) []Message {
	names := CalledNames(messages)
	var out []Message
	for _, m := range messages {
		parts := slices.DeleteFunc(slices.Clone(m.Parts), func(p Part) bool {
			return (p.Type == Text || p.Type == Refusal) && p.Text == "" && p.Signature == nil
		})
		for i, p := range parts {
			if p.Type == Result && p.ToolResult != nil {
				result := *p.ToolResult
				if result.Name == "" {
					result.Name = names[result.ID]
				}
				result.Content = slices.DeleteFunc(slices.Clone(result.Content), func(p Part) bool { return p.Type == Text && p.Text == "" })
				parts[i].ToolResult = &result
			}
		}
		if len(parts) == 0 {
			continue
		}
		if last := len(out) - 1; last >= 0 && out[last].Role == m.Role && out[last].Name == m.Name {
			out[last].Parts = slices.Concat(out[last].Parts, parts)
			continue
		}
		out = append(out, Message{Role: m.Role, Name: m.Name, Parts: parts})
	}
	return out
}
