package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// names are the tools without arguments.
var names = [...]string{
	"test_simple_text", "test_image_content", "test_audio_content", "test_embedded_resource", "test_multiple_content_types",
	"test_tool_with_logging", "test_error_handling", "test_tool_with_progress", "test_logging_tool",
	"test_elicitation_sep1034_defaults", "test_elicitation_sep1330_enums",
	"test_missing_capability", "test_streaming_elicitation", "test_trigger_tool_change", "test_trigger_prompt_change",
	"test_input_required_result_elicitation", "test_input_required_result_sampling", "test_input_required_result_list_roots",
	"test_input_required_result_request_state", "test_input_required_result_multiple_inputs", "test_input_required_result_multi_round",
	"test_input_required_result_tampered_state", "test_input_required_result_capabilities",
}

func (s *server) tools() string {
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, `{"name":%q,"description":"For the conformance suite","inputSchema":{"type":"object","properties":{}}},`, name)
	}
	b.WriteString(`{"name":"test_sampling","description":"Asks for a model's answer","inputSchema":{"type":"object","properties":{"prompt":{"type":"string"}},"required":["prompt"]}},`)
	b.WriteString(`{"name":"test_elicitation","description":"Asks the user","inputSchema":{"type":"object","properties":{"message":{"type":"string"}},"required":["message"]}},`)
	b.WriteString(`{"name":"test_headers","description":"An argument that clients repeat in a header","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}},"required":["region"]}},`)
	b.WriteString(schemaTool)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range s.more {
		fmt.Fprintf(&b, `,{"name":%q,"description":"Added","inputSchema":{"type":"object"}}`, name)
	}
	return b.String()
}

// schemaTool has the keywords of JSON Schema 2020-12 that a router must keep.
const schemaTool = `{"name":"json_schema_2020_12_tool","description":"Tool with JSON Schema 2020-12 features","inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]},"additionalProperties":false}}`

const (
	simpleText = `{"type":"text","text":"This is a simple text response for testing."}`
	image      = `{"type":"image","data":"` + png + `","mimeType":"image/png"}`
	nameSchema = `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`
	okSchema   = `{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`
)

// tool answers tools/call.
func (c *call) tool() {
	switch c.Name {
	case "test_simple_text":
		c.content(simpleText)
	case "test_image_content":
		c.content(image)
	case "test_audio_content":
		c.content(`{"type":"audio","data":"` + wav + `","mimeType":"audio/wav"}`)
	case "test_embedded_resource":
		c.content(`{"type":"resource","resource":{"uri":"test://embedded-resource","mimeType":"text/plain","text":"This is an embedded resource content."}}`)
	case "test_multiple_content_types":
		c.content(`{"type":"text","text":"Multiple content types test:"},` + image +
			`,{"type":"resource","resource":{"uri":"test://mixed-content-resource","mimeType":"application/json","text":"{\"test\":\"data\",\"value\":123}"}}`)
	case "test_error_handling":
		c.reply(c.complete(`{"content":[{"type":"text","text":"This tool intentionally returns an error for testing"}],"isError":true}`))
	case "test_tool_with_logging", "test_logging_tool":
		for _, text := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
			if !c.modern || c.Meta.LogLevel != "" {
				c.s.note("notifications/message", `{"level":"info","logger":"fixture","data":`+quote(text)+`}`)
			}
			time.Sleep(50 * time.Millisecond)
		}
		c.say("Logged")
	case "test_tool_with_progress":
		for _, done := range []int{0, 50, 100} {
			if c.Meta.Token != nil {
				c.s.note("notifications/progress", fmt.Sprintf(`{"progressToken":%s,"progress":%d,"total":100}`, c.Meta.Token, done))
			}
			time.Sleep(50 * time.Millisecond)
		}
		c.say("Done")
	case "test_trigger_tool_change":
		c.s.mu.Lock()
		c.s.more = append(c.s.more, fmt.Sprintf("added_tool_%d", len(c.s.more)+1))
		c.s.mu.Unlock()
		c.s.changed("tools")
		c.say("Changed")
	case "test_trigger_prompt_change":
		c.s.mu.Lock()
		c.s.texts = append(c.s.texts, fmt.Sprintf("added_prompt_%d", len(c.s.texts)+1))
		c.s.mu.Unlock()
		c.s.changed("prompts")
		c.say("Changed")
	case "test_headers":
		c.say("Region " + c.text("region"))
	case "test_missing_capability":
		if c.modern && c.Meta.Caps["sampling"] == nil {
			c.s.write(jsonrpc.AppendErrorObject(nil, c.id,
				json.RawMessage(`{"code":-32021,"message":"sampling is required","data":{"requiredCapabilities":{"sampling":{}}}}`)))
			return
		}
		c.say("It is there")
	default:
		c.asking()
	}
}

// asking are the tools that ask the client.
func (c *call) asking() {
	switch c.Name {
	case "test_sampling":
		c.sayAnswers("LLM response: ", "", sample("answer", c.text("prompt"), 100))
	case "test_elicitation":
		c.sayAnswers("User response: ", "", elicit("answer", c.text("message"),
			`{"type":"object","properties":{"username":{"type":"string","description":"User's response"},"email":{"type":"string","description":"User's email address"}},"required":["username","email"]}`))
	case "test_elicitation_sep1034_defaults":
		c.sayAnswers("Elicitation completed: ", "", elicit("answer", "Please review", defaults))
	case "test_elicitation_sep1330_enums":
		c.sayAnswers("Elicitation completed: ", "", elicit("answer", "Please choose", enums))
	case "test_streaming_elicitation", "test_input_required_result_elicitation":
		c.sayAnswers("Hello, ", "", elicit("user_name", "What is your name?", nameSchema))
	case "test_input_required_result_sampling":
		c.sayAnswers("The model says: ", "", sample("capital_question", "What is the capital of France?", 100))
	case "test_input_required_result_list_roots":
		c.sayAnswers("Roots: ", "", askRoots("client_roots"))
	case "test_input_required_result_request_state", "test_input_required_result_tampered_state":
		if _, ok := c.state(); !ok {
			c.fail(jsonrpc.CodeInvalidParams, "requestState has been changed")
			return
		}
		c.sayAnswers("state-ok: ", "confirming", elicit("confirm", "Please confirm", okSchema))
	case "test_input_required_result_multiple_inputs":
		c.sayAnswers("All: ", "all", elicit("user_name", "What is your name?", nameSchema),
			sample("greeting", "Generate a greeting", 50), askRoots("client_roots"))
	case "test_input_required_result_multi_round":
		c.multiRound()
	case "test_input_required_result_capabilities":
		c.capable()
	default:
		c.fail(jsonrpc.CodeInvalidParams, "no tool "+c.Name)
	}
}

func (c *call) multiRound() {
	state, ok := c.state()
	if !ok {
		c.fail(jsonrpc.CodeInvalidParams, "requestState has been changed")
		return
	}
	if state == "" || state == "one" {
		if _, ok := c.ask("one", elicit("step1", "Step 1: What is your name?", nameSchema)); !ok {
			return
		}
	}
	c.sayAnswers("Both steps: ", "two", elicit("step2", "Step 2: What is your favorite color?",
		`{"type":"object","properties":{"color":{"type":"string"}},"required":["color"]}`))
}

// capable asks only what the client has declared.
func (c *call) capable() {
	var questions []question
	if !c.modern || c.Meta.Caps["sampling"] != nil {
		questions = append(questions, sample("greeting", "Generate a greeting", 50))
	}
	if c.modern && c.Meta.Caps["elicitation"] != nil {
		questions = append(questions, elicit("user_name", "What is your name?", nameSchema))
	}
	c.sayAnswers("Capable: ", "", questions...)
}

// sayAnswers asks and says what was answered.
func (c *call) sayAnswers(before, state string, questions ...question) {
	answers, ok := c.ask(state, questions...)
	if !ok {
		return
	}
	text := before
	for _, q := range questions {
		text += string(answers[q.key])
	}
	c.say(text)
}

func (c *call) say(text string) { c.content(`{"type":"text","text":` + quote(text) + `}`) }

func (c *call) content(blocks string) { c.reply(c.complete(`{"content":[` + blocks + `]}`)) }

const defaults = `{"type":"object","properties":{"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},"score":{"type":"number","default":95.5},"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}},"required":[]}`

const enums = `{"type":"object","properties":{"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},` +
	`"titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},` +
	`"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},` +
	`"untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},` +
	`"titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}},"required":[]}`
