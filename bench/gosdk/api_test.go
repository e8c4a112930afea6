package gosdk

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// play holds the model's answers, by the first word of the last message.
const play = `
images: true
answers:
  - {when: {message: "^plain"}, text: Hello there.}
  - {when: {message: "^ours", tools: true}, text: I look., calls: [{name: grep, args: {pattern: needle}}]}
  - {when: {tool: grep, result: "hay.txt"}, text: It is in hay.txt.}
  - {when: {message: "^both"}, calls: [{name: grep, args: {pattern: needle}}, {name: weather, args: {city: Bonn}}]}
  - {when: {tool: weather, result: "Bonn"}, text: It rains.}
  - {when: {message: "^theirs"}, calls: [{name: weather, args: {city: Bonn}}, {name: weather, args: {city: Ulm}}]}
  - {when: {message: "^limited"}, error: RATE_LIMITED}
  - {when: {message: "^broken"}, text: Half of it comes, error: {code: TRANSPORT_ERROR, message: the line was cut, after: 1}}
  - {when: {message: "^slow"}, delay: 60s, text: late}
`

// serve starts the host and returns its address and key.
func serve(t *testing.T) (url, key string) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"play.yaml": play, "root/hay.txt": "a needle\n",
		"c.yaml": "models:\n  default: play\n  providers: {play: {kind: scripted, file: play.yaml}}\n",
	} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	host, err := filepath.Abs("../../bin/mcp-host")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(host, "serve", "--listen", "127.0.0.1:0", "--config", filepath.Join(dir, "c.yaml"),
		"--state", filepath.Join(dir, "state"), "--root", filepath.Join(dir, "root"))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatalf("%v: make build makes the host", err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Signal(os.Interrupt), cmd.Wait() })
	for lines := bufio.NewScanner(out); lines.Scan() && key == ""; {
		for field := range strings.FieldsSeq(lines.Text()) {
			if v, ok := strings.CutPrefix(field, "OPENAI_BASE_URL="); ok {
				url = strings.TrimSuffix(v, "/v1")
			}
			if v, ok := strings.CutPrefix(field, "OPENAI_API_KEY="); ok {
				key = v
			}
		}
	}
	if key == "" {
		t.Fatal("the host printed no key")
	}
	return url, key
}

func equal[T comparable](t *testing.T, want, got T) {
	t.Helper()
	if want != got {
		t.Errorf("want %v, got %v", want, got)
	}
}

var parameters = map[string]any{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}, "required": []string{"city"}}

const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkM+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func TestOpenAI(t *testing.T) {
	url, key := serve(t)
	client := openai.NewClient(option.WithBaseURL(url+"/v1"), option.WithAPIKey(key), option.WithMaxRetries(0))
	ask := func(text string) openai.ChatCompletionNewParams {
		return openai.ChatCompletionNewParams{Model: "play", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)}}
	}
	create := func(p openai.ChatCompletionNewParams) *openai.ChatCompletion {
		t.Helper()
		made, err := client.Chat.Completions.New(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	streamed := func(p openai.ChatCompletionNewParams) *openai.ChatCompletionAccumulator {
		t.Helper()
		p.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
		stream := client.Chat.Completions.NewStreaming(t.Context(), p)
		acc := &openai.ChatCompletionAccumulator{}
		for stream.Next() {
			if !acc.AddChunk(stream.Current()) {
				t.Errorf("the accumulator refuses %s", stream.Current().RawJSON())
			}
		}
		if err := stream.Err(); err != nil {
			t.Error(err)
		}
		return acc
	}

	plain := create(ask("plain"))
	equal(t, "Hello there.", plain.Choices[0].Message.Content)
	equal(t, "stop", plain.Choices[0].FinishReason)
	equal(t, "I look.\n\nIt is in hay.txt.", create(ask("ours")).Choices[0].Message.Content)
	for text, want := range map[string]string{"plain": "Hello there.", "ours": "I look.\n\nIt is in hay.txt."} {
		acc := streamed(ask(text))
		equal(t, want, acc.Choices[0].Message.Content)
		equal(t, true, acc.Usage.TotalTokens > 0)
	}
	image := ask("")
	image.Messages = []openai.ChatCompletionMessageParamUnion{openai.UserMessage([]openai.ChatCompletionContentPartUnionParam{
		openai.TextContentPart("plain"), openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: "data:image/png;base64," + pixel})})}
	equal(t, "Hello there.", create(image).Choices[0].Message.Content)

	for _, text := range []string{"theirs", "both"} {
		for _, stream := range []bool{false, true} {
			p := ask(text)
			p.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: "weather", Parameters: parameters})}
			var made *openai.ChatCompletion
			if stream {
				made = &streamed(p).ChatCompletion
			} else {
				made = create(p)
			}
			message := made.Choices[0].Message
			equal(t, "tool_calls", made.Choices[0].FinishReason)
			equal(t, map[string]int{"theirs": 2, "both": 1}[text], len(message.ToolCalls))
			p.Messages = append(p.Messages, message.ToParam())
			for _, call := range message.ToolCalls {
				equal(t, "weather", call.Function.Name)
				p.Messages = append(p.Messages, openai.ToolMessage("rain: "+call.Function.Arguments, call.ID))
			}
			p.Messages = append(p.Messages[:len(p.Messages):len(p.Messages)])
			equal(t, map[string]string{"theirs": "It rains.", "both": "It is in hay.txt."}[text], create(p).Choices[0].Message.Content)
		}
	}

	fails := func(p openai.ChatCompletionNewParams, status int) {
		t.Helper()
		_, err := client.Chat.Completions.New(t.Context(), p)
		var failed *openai.Error
		if !errors.As(err, &failed) || failed.StatusCode != status {
			t.Errorf("want %d, got %v", status, err)
		}
	}
	nobody := ask("plain")
	nobody.Model = "nobody"
	fails(nobody, http.StatusNotFound)
	fails(ask("limited"), http.StatusTooManyRequests)
	two := ask("plain")
	two.N = openai.Int(2)
	fails(two, http.StatusBadRequest)
	broken := client.Chat.Completions.NewStreaming(t.Context(), ask("broken"))
	for broken.Next() {
	}
	if broken.Err() == nil {
		t.Error("a stream that is cut has no error")
	}

	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := client.Chat.Completions.New(ctx, ask("slow")); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	page, err := client.Models.List(t.Context())
	if err != nil || page.Data[0].ID != "play" {
		t.Error(page, err)
	}
}

func TestAnthropic(t *testing.T) {
	url, key := serve(t)
	client := anthropic.NewClient(anthropicoption.WithBaseURL(url), anthropicoption.WithAPIKey(key), anthropicoption.WithMaxRetries(0))
	ask := func(blocks ...anthropic.ContentBlockParamUnion) anthropic.MessageNewParams {
		return anthropic.MessageNewParams{Model: "play", MaxTokens: 100, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(blocks...)}}
	}
	text := func(m *anthropic.Message) string {
		var all []string
		for _, block := range m.Content {
			if block.Type == "text" {
				all = append(all, block.Text)
			}
		}
		return strings.Join(all, "|")
	}
	create := func(p anthropic.MessageNewParams) *anthropic.Message {
		t.Helper()
		made, err := client.Messages.New(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	streamed := func(p anthropic.MessageNewParams) *anthropic.Message {
		t.Helper()
		stream := client.Messages.NewStreaming(t.Context(), p)
		var made anthropic.Message
		for stream.Next() {
			if err := made.Accumulate(stream.Current()); err != nil {
				t.Errorf("%s: %v", stream.Current().RawJSON(), err)
			}
		}
		if err := stream.Err(); err != nil {
			t.Error(err)
		}
		return &made
	}
	word := anthropic.NewTextBlock
	equal(t, "Hello there.", text(create(ask(word("plain"), anthropic.NewImageBlockBase64("image/png", pixel)))))
	for _, get := range []func(anthropic.MessageNewParams) *anthropic.Message{create, streamed} {
		equal(t, "Hello there.", text(get(ask(word("plain")))))
		equal(t, "I look.|It is in hay.txt.", text(get(ask(word("ours")))))
		p := ask(word("both"))
		p.Tools = []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{Name: "weather", InputSchema: anthropic.ToolInputSchemaParam{Properties: parameters["properties"]}}}}
		first := get(p)
		equal(t, anthropic.StopReasonToolUse, first.StopReason)
		var results []anthropic.ContentBlockParamUnion
		for _, block := range first.Content {
			if block.Type == "tool_use" {
				results = append(results, anthropic.NewToolResultBlock(block.ID, "rain in "+block.Name, false))
			}
		}
		equal(t, 1, len(results))
		p.Messages = append(p.Messages, first.ToParam(), anthropic.NewUserMessage(results...))
		equal(t, "It is in hay.txt.", text(get(p)))
	}
	var failed *anthropic.Error
	if _, err := client.Messages.New(t.Context(), ask(word("limited"))); !errors.As(err, &failed) || failed.StatusCode != http.StatusTooManyRequests {
		t.Error(err)
	}
	broken := client.Messages.NewStreaming(t.Context(), ask(word("broken")))
	for broken.Next() {
	}
	if broken.Err() == nil {
		t.Error("a stream that is cut has no error")
	}
	count, err := client.Messages.CountTokens(t.Context(), anthropic.MessageCountTokensParams{Model: "play", Messages: ask(word("plain")).Messages})
	if err != nil || count.InputTokens <= 0 {
		t.Error(count, err)
	}
}
