// Package llm defines tools, conversations and answers independent of a vendor,
// for conversions between MCP, OpenAI's chat completions, Anthropic's Messages and
// Gemini's generateContent. Each of these formats has a package below wire that
// encodes and decodes definitions, requests and responses.
//
// A conversion reports everything that it does not keep in its Losses, with the
// position, the replacement and the reason. The tests require that a value is equal
// after converting it back if no loss was reported. Decoded content without an
// equivalent here (audio, a vendor's built-in tools) is kept unchanged for its
// vendor (Part.Raw) and lost for others.
//
// Two conversations are equivalent if Normalize makes them equal: successive
// messages of one role mean the same as one message.
//
// Streams use the same types: an event adds to a part of a Response by its index
// (text, thinking and call arguments grow, a signature is set), so that a partial
// stream is always a Response.
package llm

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A Vendor is a wire format, named after the vendor that defines it.
type Vendor string

// The vendors.
const (
	MCP       Vendor = "mcp"
	OpenAI    Vendor = "openai"
	Anthropic Vendor = "anthropic"
	Gemini    Vendor = "gemini"
)

// A Tool is the definition of a tool. Its JSON form is an entry of MCP's tools/list.
type Tool struct {
	Name        string
	Title       string // MCP's name for people; "": none
	Description string
	Input       json.RawMessage // JSON Schema of the arguments; nil: not given
	Output      json.RawMessage // JSON Schema of structured results; nil: none
	Annotations json.RawMessage // MCP's hints; nil: none
	Strict      bool            // the vendor must hold its model to Input, which is written for strict mode

	// ExtraMembers are the other members of the definition (_meta, icons, execution
	// and the like).
	ExtraMembers []Member
}

// A Member is a JSON member without a field in the struct.
type Member struct {
	Name  string
	Value json.RawMessage
}

// A Role is the author of a message.
type Role string

// The roles. Tool results have a role of their own, whatever the vendor calls it.
// Developer is OpenAI's newer name of the system role.
const (
	SystemRole    Role = "system"
	DeveloperRole Role = "developer"
	UserRole      Role = "user"
	AssistantRole Role = "assistant"
	ToolRole      Role = "tool"
)

// A Message is one message of a conversation.
type Message struct {
	Role  Role   `json:"role"`
	Name  string `json:"name,omitempty"` // name of the participant if several have the role
	Parts []Part `json:"parts,omitempty"`
}

// A PartType says which fields of a Part are set.
type PartType string

// The types of parts.
const (
	TextPart     PartType = "text"     // sets Text
	ImagePart    PartType = "image"    // sets Media
	CallPart     PartType = "call"     // sets ToolCall; only in messages of the assistant
	ResultPart   PartType = "result"   // sets ToolResult; messages with ToolRole contain nothing else
	ThinkingPart PartType = "thinking" // sets Text and usually Signature; only in messages of the assistant
	RedactedPart PartType = "redacted" // sets only Signature: thinking that only its vendor can read
	RefusalPart  PartType = "refusal"  // sets Text; only in messages of the assistant
	OpaquePart   PartType = "opaque"   // sets Raw, in the format of Vendor
)

// A Part is a part of a message: a text, an image, a tool call and the like.
type Part struct {
	Type       PartType        `json:"type"`
	Text       string          `json:"text,omitempty"`
	Media      *Media          `json:"media,omitempty"`
	ToolCall   *ToolCall       `json:"call,omitempty"`
	ToolResult *ToolResult     `json:"result,omitempty"`
	Signature  *Signature      `json:"signature,omitempty"` // Gemini signs parts of every type
	Vendor     Vendor          `json:"by,omitempty"`
	Raw        json.RawMessage `json:"raw,omitempty"`
}

// Media is an image, as data or as a URL.
type Media struct {
	MIME   string `json:"mime,omitempty"`
	Data   string `json:"data,omitempty"` // base64, as received
	URL    string `json:"url,omitempty"`
	Detail string `json:"detail,omitempty"` // OpenAI's resolution: low, high or auto
}

// Type returns the media type of an image. If it was not given, it is detected from
// the first bytes; "" means unknown.
func (m *Media) Type() string {
	switch {
	case m.MIME != "":
		return m.MIME
	case strings.HasPrefix(m.Data, "iVBOR"):
		return "image/png"
	case strings.HasPrefix(m.Data, "/9j/"):
		return "image/jpeg"
	case strings.HasPrefix(m.Data, "R0lGOD"):
		return "image/gif"
	case strings.HasPrefix(m.Data, "UklGR"):
		return "image/webp"
	case m.Data != "":
		return "image/png"
	}
	for suffix, mime := range map[string]string{".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp"} {
		if strings.HasSuffix(strings.ToLower(m.URL), suffix) {
			return mime
		}
	}
	return ""
}

// A Signature is a value that a vendor requires back unchanged with the content that
// it signed. Other vendors ignore it.
type Signature struct {
	Vendor Vendor `json:"by"`
	Value  string `json:"value"`
}

// Validate checks a message that came from outside this program, because the encoders
// do not check it. The error names the missing or surplus field.
func (m Message) Validate() error {
	if !slices.Contains([]Role{SystemRole, DeveloperRole, UserRole, AssistantRole, ToolRole}, m.Role) {
		return fmt.Errorf("unknown role %.40q", m.Role)
	}
	return validParts(m.Parts)
}

// validParts returns an error that names the first part of an unknown type or without
// the data of its type.
func validParts(parts []Part) error {
	for i, p := range parts {
		lacks := ""
		switch {
		case p.Type == ImagePart && p.Media == nil:
			lacks = "media"
		case p.Type == CallPart && (p.ToolCall == nil || p.ToolCall.Name == ""):
			lacks = "call, with a name"
		case p.Type == ResultPart && p.ToolResult == nil:
			lacks = "result"
		case p.Type == OpaquePart && p.Raw == nil:
			lacks = "raw"
		case p.Type == RedactedPart && p.Signature == nil:
			lacks = "signature"
		case p.Type == ResultPart:
			if err := validParts(p.ToolResult.Content); err != nil {
				return fmt.Errorf("part %d: content: %w", i, err)
			}
		case !slices.Contains([]PartType{TextPart, ImagePart, CallPart, ThinkingPart, RedactedPart, RefusalPart, OpaquePart}, p.Type):
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

	// Args is a JSON object. If the model did not write an object, Args is nil and
	// Malformed holds the model's text.
	Args      json.RawMessage `json:"args,omitempty"`
	Malformed string          `json:"malformed,omitempty"`
}

// A ToolResult answers the call with the same ID.
type ToolResult struct {
	ID           string          `json:"id"`
	Name         string          `json:"name,omitempty"` // name of the tool, if known
	Content      []Part          `json:"content,omitempty"`
	Structured   json.RawMessage `json:"structured,omitempty"` // the same result for programs
	IsError      bool            `json:"is_error,omitempty"`
	ExtraMembers []Member        `json:"others,omitempty"` // other members of an MCP result, such as _meta
}

// A ChoiceMode says whether the model may, must or must not call tools.
type ChoiceMode string

// The modes.
const (
	ChoiceAuto     ChoiceMode = "auto"
	ChoiceRequired ChoiceMode = "required" // at least one call, of ToolNames if that is not empty
	ChoiceNone     ChoiceMode = "none"
)

// A Choice limits the tools that the model may or must call. With ToolNames and
// ChoiceAuto it may call only these.
type Choice struct {
	Mode      ChoiceMode `json:"mode"`
	ToolNames []string   `json:"names,omitempty"`
}

// A Request is a request to a model.
type Request struct {
	Model         string    `json:"model,omitempty"`
	Messages      []Message `json:"messages,omitempty"`
	Tools         []Tool    `json:"tools,omitempty"`
	Choice        *Choice   `json:"choice,omitempty"`
	Parallel      *bool     `json:"parallel,omitempty"`   // whether the model may make several calls at once
	MaxTokens     int       `json:"max_tokens,omitempty"` // 0: not given
	Temperature   *float64  `json:"temperature,omitempty"`
	TopP          *float64  `json:"top_p,omitempty"`
	TopK          int       `json:"top_k,omitempty"`
	StopSequences []string  `json:"stop,omitempty"`

	// Format is the format of the answer, as in OpenAI's response_format; other
	// vendors do not get it. nil: text.
	Format json.RawMessage `json:"format,omitempty"`

	Stream      bool `json:"stream,omitempty"`
	StreamUsage bool `json:"stream_usage,omitempty"` // send the usage at the end of a stream, too
}

// A StopReason is the reason why a model ended its turn.
type StopReason string

// The reasons.
const (
	StopEnd      StopReason = "end"
	StopCalls    StopReason = "calls"    // it calls tools
	StopLength   StopReason = "length"   // Request.MaxTokens was reached
	StopContext  StopReason = "context"  // the context window is full
	StopSequence StopReason = "sequence" // a sequence of Request.StopSequences was generated
	StopRefusal  StopReason = "refusal"  // the model or a filter refused
	StopPause    StopReason = "pause"    // the model continues if it gets the conversation again
	StopFault    StopReason = "fault"    // the model's output could not be parsed
	StopOther    StopReason = "other"
)

// Usage counts tokens. Input includes CacheRead and CacheWrite, Output includes Reasoning.
type Usage struct {
	Input      int `json:"input,omitempty"`
	CacheRead  int `json:"cache_read,omitempty"`
	CacheWrite int `json:"cache_write,omitempty"`
	Output     int `json:"output,omitempty"`
	Reasoning  int `json:"reasoning,omitempty"`
}

// A Response is one turn of a model.
type Response struct {
	ID          string     `json:"id,omitempty"`
	Model       string     `json:"model,omitempty"`
	Created     int64      `json:"created,omitempty"` // Unix seconds; 0: not given
	Parts       []Part     `json:"parts,omitempty"`
	StopReason  StopReason `json:"stop,omitempty"` // "": the turn has not ended
	VendorStop  string     `json:"word,omitempty"` // the name of StopReason in the format of Vendor
	Vendor      Vendor     `json:"by,omitempty"`
	MatchedStop string     `json:"matched,omitempty"` // the stop sequence that was generated
	Usage       *Usage     `json:"usage,omitempty"`
}

// Message returns the response as a message of the conversation.
func (r *Response) Message() Message { return Message{Role: AssistantRole, Parts: r.Parts} }

// Calls returns the tool calls of a response in order.
func (r *Response) Calls() []*ToolCall {
	var calls []*ToolCall
	for _, p := range r.Parts {
		if p.Type == CallPart && p.ToolCall != nil {
			calls = append(calls, p.ToolCall)
		}
	}
	return calls
}

// Normalize returns an equivalent list of messages for comparisons: successive
// messages with the same role and name are joined, empty texts and messages without
// parts are removed, and results get the names of the called tools.
func Normalize(messages []Message) []Message {
	names := CallNames(messages)
	var out []Message
	for _, m := range messages {
		parts := slices.DeleteFunc(slices.Clone(m.Parts), func(p Part) bool {
			return (p.Type == TextPart || p.Type == RefusalPart) && p.Text == "" && p.Signature == nil
		})
		for i, p := range parts {
			if p.Type == ResultPart && p.ToolResult != nil {
				result := *p.ToolResult
				if result.Name == "" {
					result.Name = names[result.ID]
				}
				result.Content = slices.DeleteFunc(slices.Clone(result.Content), func(p Part) bool { return p.Type == TextPart && p.Text == "" })
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
