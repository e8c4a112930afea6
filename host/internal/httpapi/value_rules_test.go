package httpapi_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
)

// What a request says in another type than the vendor's is refused, wherever it stands,
// and names the member: nothing that is meant is passed over because it is misspelt.
func TestTypesOfMembers(t *testing.T) {
	s := newScene(t, nil, script())
	chat := `"messages":[{"role":"user","content":"go"}]`
	function := func(members string) string {
		return `"tools":[{"type":"function","function":{"name":"a",` + members + `}}],` + chat
	}
	said := func(parts string) string { return `"messages":[{"role":"user","content":[` + parts + `]}]` }
	made := func(members string) string { return `"messages":[{"role":"assistant",` + members + `}]` }
	for _, c := range []struct{ body, param, place string }{
		{function(`"parameters":5`), "tools/0", "tools/0/function/parameters must be an object"},
		{function(`"parameters":"{}"`), "tools/0", "parameters"}, {function(`"description":5`), "tools/0", "description"}, {function(`"strict":"yes"`), "tools/0", "strict"},
		{`"tools":[null],` + chat, "tools/0", "tools/0 must be an object, not null"}, {`"tools":[7],` + chat, "tools/0", "tools/0 must be an object"}, {`"tools":"all",` + chat, "tools", "list"},
		{`"functions":[{"name":"a","parameters":[]}],` + chat, "functions/0", "parameters"}, {`"function_call":7,` + chat, "function_call", "string or an object"},
		{`"tool_choice":true,` + chat, "tool_choice", "string or an object"}, {`"tool_choice":{"type":"function","function":{"name":7}},` + chat, "tool_choice", "name"},
		{`"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":7}},` + chat, "tool_choice", "tools"},
		{`"stream_options":true,` + chat, "stream_options", "object"}, {`"stream_options":{"include_usage":"yes"},` + chat, "stream_options", "true or false"},
		{`"parallel_tool_calls":0,` + chat, "parallel_tool_calls", "true or false"}, {`"user":7,` + chat, "user", "string"}, {`"seed":"x",` + chat, "seed", "whole"},
		{`"seed":1.5,` + chat, "seed", "whole"}, {`"metadata":[],` + chat, "metadata", "object"}, {`"logit_bias":[],` + chat, "logit_bias", "object"},
		{`"frequency_penalty":"1",` + chat, "frequency_penalty", "number"}, {`"top_logprobs":"1",` + chat, "top_logprobs", "whole"}, {`"logprobs":1,` + chat, "logprobs", "true"},
		{`"reasoning_effort":1,` + chat, "reasoning_effort", "string"}, {`"store":"x",` + chat, "store", "true"}, {`"modalities":"text",` + chat, "modalities", "list"}, {`"n":"1",` + chat, "n", "whole"},
		{`"response_format":"json",` + chat, "response_format", "object"}, {`"response_format":{"type":7},` + chat, "response_format", "type must be a string"},
		{`"response_format":{"type":"xml"},` + chat, "response_format", "json_schema"}, {`"response_format":{"type":"json_schema"},` + chat, "response_format", "name and a schema"},
		{`"response_format":{"type":"json_schema","json_schema":{"name":"a","schema":[]}},` + chat, "response_format", "schema"},
		{said(`{"type":"image_url","image_url":{"url":5}}`), "messages/0", "url must be a string"}, {said(`{"type":"image_url","image_url":{"url":"x","detail":5}}`), "messages/0", "detail"},
		{said(`{"type":"text","text":["a"]}`), "messages/0", "string"}, {said(`null`), "messages/0", "null"}, {said(`"a"`), "messages/0", "object"},
		{made(`"content":"x","name":7`), "messages/0", "name"}, {made(`"tool_calls":{}`), "messages/0", "list"}, {made(`"tool_calls":[{"id":7,"function":{"name":"a"}}]`), "messages/0", "id"},
		{made(`"tool_calls":[{"id":"x","function":{"name":"a","arguments":7}}]`), "messages/0", "arguments must be a string or an object"}, {made(`"content":"x","refusal":{}`), "messages/0", "refusal"},
		{`"messages":[7]`, "messages/0", "object"}, {`"messages":[null]`, "messages/0", "null"},
	} {
		status, v, _ := s.do(t, "POST", "/v1/chat/completions", `{`+c.body+`}`)
		require.Equal(t, 400, status, "%s: %v", c.body, v)
		require.Equal(t, c.param, at(v, "error", "param"), c.body)
		require.Contains(t, at(v, "error", "message"), c.place, c.body)
	}
	one := `"max_tokens":9,"messages":[{"role":"user","content":"go"}]`
	block := func(b string) string { return `"max_tokens":9,"messages":[{"role":"user","content":[` + b + `]}]` }
	for _, c := range []struct{ body, place string }{
		{block(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":5}}`), "data must be a string"},
		{block(`{"type":"image","source":{"type":"base64","data":"QQ=="}}`), "incomplete"}, {block(`{"type":"image","source":{"type":"url","url":{}}}`), "url must be a string"},
		{block(`{"type":"image","source":"x"}`), "source"}, {block(`{"type":"image"}`), "incomplete"}, {block(`{"type":"thinking","thinking":5}`), "thinking"}, {block(`{"type":"redacted_thinking"}`), "incomplete"},
		{block(`{"type":"tool_result","tool_use_id":"x","content":7}`), "content"}, {block(`{"type":"tool_result","tool_use_id":"x","is_error":"yes"}`), "is_error"},
		{block(`{"type":"tool_result","tool_use_id":"x","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":5}}]}`), "data"},
		{block(`{"type":"tool_result","tool_use_id":"x","content":[{"type":"text"}]}`), "incomplete"}, {block(`{"type":"text","text":"x","cache_control":"5m"}`), "cache_control"},
		{`"tools":[{"name":"a","input_schema":5}],` + one, "tools/0/input_schema must be an object"}, {`"tools":[{"name":"a","description":{}}],` + one, "description"},
		{`"tool_choice":"auto",` + one, "tool_choice"}, {`"tool_choice":{"type":"auto","disable_parallel_tool_use":1},` + one, "disable_parallel_tool_use"},
		{`"tool_choice":{"type":"tool","name":7},` + one, "name"}, {`"system":[{"type":"text","text":7}],` + one, "string"}, {`"system":[{"type":"image"}],` + one, "system"},
		{`"metadata":"x",` + one, "metadata"}, {`"metadata":{"user_id":7},` + one, "user_id"}, {`"stop_sequences":"x",` + one, "list"}, {`"top_k":"5",` + one, "whole"},
		{`"thinking":true,` + one, "thinking"}, {`"output_format":{"type":"json_schema"},` + one, "schema"}, {`"output_config":{"format":{"type":"json_schema"}},` + one, "schema"},
	} {
		status, v, _ := s.do(t, "POST", "/v1/messages", `{`+c.body+`}`)
		require.Equal(t, 400, status, "%s: %v", c.body, v)
		require.Contains(t, at(v, "error", "message"), c.place, c.body)
	}
	require.Empty(t, s.asked)
}

// What may be is not refused for it: null is as if it were not there, and members that
// are not known here are hints.
func TestMembersThatAreRight(t *testing.T) {
	s := newScene(t, nil, script(says("1"), says("2"), says("3")))
	status, v, _ := s.do(t, "POST", "/v1/chat/completions", `{"model":null,"stop":["a"],"tools":null,"tool_choice":null,"response_format":null,"stream_options":null,"seed":-5,"future":{"a":[1]},
		"messages":[{"role":"system","content":"x","name":null},{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"image_url","image_url":{"url":"https://example.org/x.png","detail":"low"}}]},
		{"role":"assistant","content":null,"refusal":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"a","arguments":{"b":1}}}]},{"role":"tool","tool_call_id":"x","content":[{"type":"text","text":"r"}]}]}`)
	require.Equal(t, 200, status, v)
	status, v, _ = s.do(t, "POST", "/v1/messages", `{"max_tokens":9,"system":[{"type":"text","text":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}],"thinking":{"type":"enabled","budget_tokens":1024},"metadata":{"user_id":null},
		"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}},{"type":"text","text":"a"}]},
		{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"a","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"x"}]}]}`)
	require.Equal(t, 200, status, v)
}

// The form of the answer is the provider's to hold to; where it cannot, that is said.
func TestResponseFormat(t *testing.T) {
	vendor := llm.OpenAI
	s := newScene(t, nil, script(calls("", "echo", `{"text":"a"}`), says(`{"a":1}`)))
	s.vendor = &vendor
	const schema = `{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"type":"object","properties":{"a":{"type":"integer"}}}}}`
	body := `{"messages":[{"role":"user","content":"go"}],"response_format":` + schema + `}`
	status, v, header := s.do(t, "POST", "/v1/chat/completions", body)
	require.Equal(t, 200, status, v)
	require.Equal(t, `{"a":1}`, at(v, "choices", 0, "message", "content"))
	require.NotContains(t, header.Get("X-Toolroom-Ignored"), "response_format")
	require.Len(t, s.asked, 2)
	for _, r := range s.asked {
		require.JSONEq(t, schema, string(r.Format), "in every turn")
	}
	vendor = llm.Anthropic
	status, v, _ = s.do(t, "POST", "/v1/chat/completions", body)
	require.Equal(t, 400, status)
	require.Equal(t, "response_format", at(v, "error", "param"))
	require.Contains(t, at(v, "error", "message"), "declare a tool")
	require.Len(t, s.asked, 2)
}

// A call whose arguments stand in the body itself is told where they belong.
func TestArgumentsThatAreNotInTheirPlace(t *testing.T) {
	s := newScene(t, nil, script())
	status, v, _ := s.do(t, "POST", "/v1/tools/echo", `{"text":"a"}`)
	require.Equal(t, 400, status)
	require.Equal(t, "text", at(v, "error", "param"))
	require.Contains(t, at(v, "error", "message"), `the body is {"arguments": …}`)
	require.Empty(t, s.called)
}

// A client that writes all of its request before it reads gets the answer also where the
// request is refused before it has been read.
func TestWhoWritesFirstAndReadsThenGetsTheAnswer(t *testing.T) {
	s := newScene(t, nil, script())
	for _, c := range []struct {
		path, media string
		size, want  int
	}{
		{"/v1/chat/completions", "application/json", 40 << 20, 413}, {"/v1/messages", "application/json", 20 << 20, 413}, {"/v1/tools/echo", "application/json", 17 << 20, 413},
		{"/v1/sessions", "text/plain", 15 << 20, 415}, {"/v1/nothing", "application/json", 15 << 20, 404}, {"/artifact", "text/plain", 70 << 20, 413},
	} {
		for _, length := range []string{fmt.Sprintf("Content-Length: %d", c.size), "Transfer-Encoding: chunked"} {
			conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
			require.NoError(t, err)
			_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\n%s\r\n\r\n", c.path, c.media, length)
			require.NoError(t, err)
			piece := strings.Repeat("x", 1<<20)
			for sent := 0; sent < c.size; sent += len(piece) {
				if strings.HasPrefix(length, "Transfer") {
					_, err = fmt.Fprintf(conn, "%x\r\n%s\r\n", len(piece), piece)
				} else {
					_, err = io.WriteString(conn, piece)
				}
				require.NoError(t, err, "%s %s after %d", c.path, length, sent)
			}
			if strings.HasPrefix(length, "Transfer") {
				io.WriteString(conn, "0\r\n\r\n") //nolint:errcheck // it may have been enough
			}
			answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			require.Equal(t, c.want, answer.StatusCode)
			text, err := io.ReadAll(answer.Body)
			require.NoError(t, err)
			require.Contains(t, string(text), `"error"`)
			require.NoError(t, conn.Close())
		}
	}
}

// One that announces more than it sends is answered and hung up on: what it sends later
// is no request of its own.
func TestABodyThatIsAnnouncedAndNotSent(t *testing.T) {
	t.Parallel() // it is waited for
	s := newScene(t, nil, script())
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "POST /v1/nothing HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 300000\r\n\r\n{")
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(30*time.Second)))
	in := bufio.NewReader(conn)
	answer, err := http.ReadResponse(in, nil)
	require.NoError(t, err)
	require.Equal(t, 404, answer.StatusCode)
	_, err = io.Copy(io.Discard, answer.Body)
	require.NoError(t, err)
	_, err = in.ReadByte()
	require.ErrorIs(t, err, io.EOF)
}
