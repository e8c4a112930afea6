//go:build oracle

package cli_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/bench/oracle"
)

const play = `
images: true
answers:
  - {when: {tool: fix__echo, is_error: true}, text: It could not be called.}
  - {when: {message: "^plain"}, text: Hello there.}
  - {when: {message: "^ours", tools: true}, text: I look., calls: [{name: fix__echo, args: {text: of ours}}]}
  - {when: {tool: fix__echo, result: "of ours"}, text: It says so.}
  - {when: {message: "^theirs"}, calls: [{name: weather, args: {city: Bonn}}, {name: weather, args: {city: Köln}}]}
  - {when: {message: "^both"}, text: Both., calls: [{name: fix__echo, args: {text: of both}}, {name: weather, args: {city: Bonn}}]}
  - {when: {tool: fix__echo, result: "of both"}, text: It has its own result.}
  - {when: {tool: weather, result: "Bonn"}, text: It rains.}
  - {when: {message: "^patch"}, text: I patch., calls: [{name: patch, args: {input: "*** Begin Patch\n"}}]}
  - {when: {message: "^long"}, text: And so, stop: length}
  - {when: {message: "^limited"}, error: RATE_LIMITED}
  - {when: {message: "^broken"}, text: Half of it comes and then the line is cut, error: {code: TRANSPORT_ERROR, message: the line was cut, after: 1}}
  - {when: {message: "^slow"}, delay: 60s, text: late}
`

// TestTheVendorsSDKsAreServed has OpenAI's and Anthropic's own clients ask the program,
// whose model is scripted.
func TestTheVendorsSDKsAreServed(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "play.yaml"), []byte(play), 0o600))
	config := filepath.Join(dir, "toolroom.yaml")
	require.NoError(t, os.WriteFile(config, []byte("servers:\n  fix: {command: fixture, args: [-era, legacy]}\nmodels:\n  default: play\n  providers: {play: {kind: scripted, file: play.yaml}}\n"), 0o600))
	_, s := serving(t, os.Environ(), "--config", config, "--state", filepath.Join(dir, "state"))

	cmd := exec.CommandContext(t.Context(), oracle.Path(t, "node"), filepath.Join(oracle.Dir(), "api.mjs"), strings.TrimSuffix(s.url, "/mcp"), s.token)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	var seen map[string]any
	require.NoError(t, json.Unmarshal(out, &seen), "%s", out)
	want := func(path, value string) {
		t.Helper()
		v := any(seen)
		for step := range strings.SplitSeq(path, ".") {
			v = v.(map[string]any)[step]
		}
		got, err := json.Marshal(v)
		require.NoError(t, err)
		require.JSONEq(t, value, string(got), path)
	}
	total := func(name string) float64 { return seen[name].(map[string]any)["total"].(float64) }

	want("plain.text", `"Hello there."`)
	want("plain.stop", `"stop"`)
	require.Positive(t, total("plain"))
	require.Contains(t, seen["models"], "play")
	want("model", `"model"`)
	want("image.text", `"Hello there."`)
	want("ours.text", `"I look.\n\nIt says so."`)
	require.Greater(t, total("ours"), total("plain"))
	want("chosen.text", `"I look.\n\nIt could not be called."`)
	want("streamed.text", `"Hello there."`)
	want("streamed.heard", `"Hello there."`)
	want("streamed.ids", `1`)
	want("streamed.objects", `["chat.completion.chunk"]`)
	want("streamed.helper.stop", `"stop"`)
	want("streamedOurs.text", `"I look.\n\nIt says so."`)
	want("streamedOurs.events", `[["tool.call","fix__echo"],["tool.response","fix__echo"]]`)
	want("streamedOurs.helper.text", `"I look.\n\nIt says so."`)
	want("length.stop", `"length"`)
	for _, stream := range []string{"", "Streamed"} {
		want("theirs"+stream, `{"called":["Bonn","Köln"],"text":"It rains."}`)
		want("both"+stream, `{"called":["Bonn"],"text":"It has its own result."}`)
		want("anthropic.both"+stream, `["tool_use",1,"It has its own result."]`)
	}
	want("errors.model.name", `"NotFoundError"`)
	want("errors.model.code", `"model_not_found"`)
	want("errors.key.name", `"AuthenticationError"`)
	want("errors.n.name", `"BadRequestError"`)
	want("errors.n.param", `"n"`)
	want("errors.limited.name", `"RateLimitError"`)
	want("errors.broken.code", `"TRANSPORT_ERROR"`)
	want("cancelled", `"APIUserAbortError"`)
	want("after.text", `"Hello there."`)

	for _, way := range []string{"responses.whole.", "responses.streamed."} {
		want(way+"plain", `{"text":"Hello there.","status":"completed","types":["message"],"input":true}`)
		want(way+"image.text", `"Hello there."`)
		want(way+"ours", `{"text":"I look.It says so.","status":"completed","types":["message","message"],"input":true}`)
		want(way+"length.status", `"incomplete"`)
		want(way+"both.types", `["message","function_call"]`)
		want(way+"after.text", `"It has its own result."`)
		want(way+"items.text", `"It has its own result."`)
		want(way+"patch", `[["message",null,null],["custom_tool_call","patch","*** Begin Patch\n"]]`)
	}
	want("responses.stored", `{"same":true,"text":"Hello there.","metadata":{"a":"b"}}`)
	want("responses.items", `["1","2","plain"]`)
	want("responses.types", `["response.created","response.in_progress",2,"response.completed"]`)
	want("responses.errors.previous.name", `"BadRequestError"`)
	want("responses.errors.previous.code", `"previous_response_not_found"`)
	want("responses.errors.gone.name", `"NotFoundError"`)
	want("responses.errors.background.param", `"background"`)
	want("responses.errors.model.code", `"model_not_found"`)
	want("responses.errors.output.param", `"input"`)
	want("responses.errors.limited.name", `"RateLimitError"`)
	want("responses.errors.broken.code", `"TRANSPORT_ERROR"`)
	want("responses.errors.schema.param", `"text.format"`)

	want("anthropic.plain", `{"text":"Hello there.","stop":"end_turn","output":true}`)
	want("anthropic.image.text", `"Hello there."`)
	want("anthropic.ours.text", `"I look.|It says so."`)
	want("anthropic.streamed.text", `"I look.|It says so."`)
	want("anthropic.tokens", `true`)
	require.Contains(t, seen["anthropic"].(map[string]any)["models"], "play")
	events := seen["anthropic"].(map[string]any)["events"].([]any)
	require.Equal(t, "message_start", events[0])
	require.Equal(t, "message_stop", events[len(events)-1])
	require.Contains(t, events, "x_event")
	want("anthropic.errors.model.name", `"NotFoundError"`)
	want("anthropic.errors.key.name", `"AuthenticationError"`)
	want("anthropic.errors.limited.name", `"RateLimitError"`)
	want("anthropic.errors.broken.code", `"TRANSPORT_ERROR"`)
}
