package main

import (
	"encoding/json"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// A picture of one red pixel, and a sound of no samples.
const (
	png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
	wav = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
)

const resources = `{"uri":"test://static-text","name":"Static text","description":"A text that stays","mimeType":"text/plain"},` +
	`{"uri":"test://static-binary","name":"Static binary","description":"A picture that stays","mimeType":"image/png"},` +
	`{"uri":"test://watched-resource","name":"Watched","description":"One to subscribe to","mimeType":"text/plain"}`

const templates = `{"uriTemplate":"test://template/{id}/data","name":"Template","description":"Data by id","mimeType":"application/json"}`

// read answers resources/read.
func (c *call) read() {
	body := ""
	switch id, isTemplate := strings.CutPrefix(c.URI, "test://template/"); {
	case c.URI == "test://static-text":
		body = `"mimeType":"text/plain","text":"This is the content of the static text resource."`
	case c.URI == "test://static-binary":
		body = `"mimeType":"image/png","blob":"` + png + `"`
	case c.URI == "test://watched-resource":
		body = `"mimeType":"text/plain","text":"Watched resource content"`
	case isTemplate && strings.HasSuffix(id, "/data"):
		id = strings.TrimSuffix(id, "/data")
		body = `"mimeType":"application/json","text":` + quote(`{"id":`+quote(id)+`,"templateTest":true,"data":"Data for ID: `+id+`"}`)
	default:
		code := -32002
		if c.modern {
			code = jsonrpc.CodeInvalidParams
		}
		c.s.write(jsonrpc.AppendErrorObject(nil, c.id, json.RawMessage(`{"code":`+quoteInt(code)+`,"message":"Resource not found","data":{"uri":`+quote(c.URI)+`}}`)))
		return
	}
	result := `{"contents":[{"uri":` + quote(c.URI) + `,` + body + `}]}`
	if c.modern {
		result = strings.TrimSuffix(result, "}") + `,"ttlMs":0,"cacheScope":"private"}`
	}
	c.reply(c.complete(result))
}

func (s *server) prompts() string {
	list := `{"name":"test_simple_prompt","description":"A prompt without arguments"},` +
		`{"name":"test_prompt_with_arguments","description":"A prompt with arguments","arguments":[{"name":"arg1","description":"First","required":true},{"name":"arg2","description":"Second","required":true}]},` +
		`{"name":"test_prompt_with_embedded_resource","description":"A prompt with a resource","arguments":[{"name":"resourceUri","description":"Its URI","required":true}]},` +
		`{"name":"test_prompt_with_image","description":"A prompt with a picture"},` +
		`{"name":"test_input_required_result_prompt","description":"A prompt that asks"}`
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range s.texts {
		list += `,{"name":` + quote(name) + `,"description":"Added"}`
	}
	return list
}

// prompt answers prompts/get.
func (c *call) prompt() {
	text := func(t string) string { return `{"role":"user","content":{"type":"text","text":` + quote(t) + `}}` }
	var messages string
	switch c.Name {
	case "test_simple_prompt":
		messages = text("This is a simple prompt for testing.")
	case "test_prompt_with_arguments":
		messages = text("Prompt with arguments: arg1='" + c.text("arg1") + "', arg2='" + c.text("arg2") + "'")
	case "test_prompt_with_embedded_resource":
		messages = `{"role":"user","content":{"type":"resource","resource":{"uri":` + quote(c.text("resourceUri")) +
			`,"mimeType":"text/plain","text":"Embedded resource content for testing."}}},` + text("Please process the embedded resource above.")
	case "test_prompt_with_image":
		messages = `{"role":"user","content":{"type":"image","data":"` + png + `","mimeType":"image/png"}},` + text("Please analyze the image above.")
	case "test_input_required_result_prompt":
		answers, ok := c.ask("", elicit("user_context", "What context should the prompt use?",
			`{"type":"object","properties":{"context":{"type":"string"}},"required":["context"]}`))
		if !ok {
			return
		}
		messages = text("Use this context: " + string(answers["user_context"]))
	default:
		c.fail(jsonrpc.CodeInvalidParams, "no prompt "+c.Name)
		return
	}
	c.reply(c.complete(`{"messages":[` + messages + `]}`))
}

// text returns an argument.
func (c *call) text(name string) string {
	text, ok := c.Arguments[name].(string)
	if !ok {
		return ""
	}
	return text
}

func quoteInt(n int) string {
	raw, err := json.Marshal(n)
	if err != nil { // an int always encodes
		return "0"
	}
	return string(raw)
}
