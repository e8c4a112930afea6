//go:build oracle

package llm_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/bench/oracle"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/schema"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// exchange is what one of a vendor's SDKs is to ask, and is answered.
type exchange struct {
	Request  *tree.Value `json:"request"`
	Response *tree.Value `json:"response"`

	dialect dialect
	said    *llm.Response
}

// exchanges are made by the generator: requests with tools, and responses.
func exchanges(t *testing.T) map[string][]exchange {
	t.Helper()
	all := map[string][]exchange{}
	for _, d := range dialects() {
		vendor, _, _ := strings.Cut(d.name, " ")
		if strings.HasSuffix(d.name, "compatible") {
			continue // not of OpenAI's own
		}
		for seed := range cases(8) {
			g := newGen(seed)
			request, response := g.request(), g.response()
			request.Stream, request.StreamUsage = false, false
			if len(request.Messages) == 0 {
				continue
			}
			for _, name := range []string{"ls", "a.b"} {
				tool := g.tool()
				tool.Name = name
				request.Tools = append(request.Tools, tool)
			}
			asked, _ := d.request(request)
			if vendor != "gemini" && asked.Get("model") == nil {
				asked.Set("model", tree.Str("m"))
			}
			answered, _ := d.response(response)
			said, _, err := d.answer(answered.JSON())
			require.NoError(t, err)
			all[vendor] = append(all[vendor], exchange{asked, answered, d, said})
		}
	}
	return all
}

// TestSDKsSendAndReadWhatWeWrite gives the vendors' SDKs requests of ours to
// send, which have to arrive as they were, and our responses to read.
func TestSDKsSendAndReadWhatWeWrite(t *testing.T) {
	all := exchanges(t)
	order, err := json.Marshal(all)
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), oracle.Path(t, "node"), filepath.Join(oracle.Dir(), "sdks.mjs"))
	cmd.Stdin = bytes.NewReader(order)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	var seen map[string][]struct {
		Body json.RawMessage
		Read struct {
			Text, Stop string
			Calls      [][2]json.RawMessage
			Input      int
		}
	}
	require.NoError(t, json.Unmarshal(out, &seen))
	for vendor, list := range all {
		require.Len(t, seen[vendor], len(list))
		for i, x := range list {
			ours, _, err := x.dialect.unask(x.Request.JSON())
			require.NoError(t, err)
			theirs, unread, err := x.dialect.unask(seen[vendor][i].Body)
			require.NoError(t, err, "%s", seen[vendor][i].Body)
			require.Empty(t, unread, "%s %d: %s", vendor, i, seen[vendor][i].Body)
			require.True(t, schema.Equal(numbers(asTree(t, ours)), numbers(asTree(t, theirs))), "%s %d\nours   %s\ntheirs %s", vendor, i, asTree(t, ours).JSON(), asTree(t, theirs).JSON())

			read := seen[vendor][i].Read
			text := ""
			for _, p := range x.said.Parts {
				if p.Type == llm.TextPart {
					text += p.Text
				}
			}
			require.Equal(t, text, read.Text, "%s %d", vendor, i)
			require.Equal(t, x.said.VendorStop, read.Stop, "%s %d", vendor, i)
			calls := x.said.Calls()
			require.Len(t, read.Calls, len(calls), "%s %d", vendor, i)
			for k, c := range calls {
				require.Equal(t, names(x.dialect.rule).ToVendor(x.dialect.rule, c.Name), tree.Raw(read.Calls[k][0]).Text)
				if c.Malformed == "" {
					require.True(t, schema.Equal(numbers(tree.Raw(c.Args)), numbers(tree.Raw(read.Calls[k][1]))), "%s", c.Args)
				}
			}
		}
	}
}

// numbers writes numbers as JavaScript does, which has no others.
func numbers(v *tree.Value) *tree.Value {
	if f := v.Float(); f != nil {
		raw, err := json.Marshal(*f)
		if err == nil {
			v.Text = string(raw)
		}
	}
	for _, m := range v.Members {
		numbers(m.Value)
	}
	for _, item := range v.Items {
		numbers(item)
	}
	return v
}

// TestSDKsTypesTakeWhatWeWrite holds requests and responses to the types of
// the vendors' SDKs, which say what may be there and what must be.
func TestSDKsTypesTakeWhatWeWrite(t *testing.T) {
	types := map[string][2]string{
		"openai":    {"OpenAI.Chat.ChatCompletionCreateParamsNonStreaming", "OpenAI.Chat.ChatCompletion"},
		"anthropic": {"Anthropic.MessageCreateParamsNonStreaming", "Pick<Anthropic.Message, 'id' | 'type' | 'role' | 'model' | 'content' | 'stop_reason' | 'stop_sequence'>"},
		"gemini":    {"Written<Asked>", "Written<Partial<GenerateContentResponse>>"},
	}
	var source strings.Builder
	source.WriteString(`import OpenAI from "openai";
import type Anthropic from "@anthropic-ai/sdk";
import type { Content, Tool, ToolConfig, GenerationConfig, GenerateContentResponse } from "@google/genai";
type Asked = { contents: Content[]; systemInstruction?: Content; tools?: Tool[]; toolConfig?: ToolConfig; generationConfig?: GenerationConfig };
// JSON has strings for enums, and numbers for what the SDK has as strings of digits.
type Digits = "minItems" | "maxItems" | "minLength" | "maxLength" | "minProperties" | "maxProperties";
type Written<T> = T extends string ? ` + "`${T}`" + ` : T extends (infer U)[] ? Written<U>[] : T extends Function ? T
  : T extends object ? { [K in keyof T]: K extends Digits ? number : Written<T[K]> } : T;
`)
	for vendor, list := range exchanges(t) {
		for i, x := range list {
			request, response := x.Request.Clone(), x.Response.Clone()
			if vendor == "anthropic" {
				response.Delete("usage") // the SDK wants to be told of what there was not
				for _, old := range []string{"temperature", "top_p", "top_k"} {
					request.Delete(old) // only older models take them, and the SDK has them no more
				}
			}
			fmt.Fprintf(&source, "export const %s%dq: %s = %s;\n", vendor, i, types[vendor][0], request.JSON())
			fmt.Fprintf(&source, "export const %s%da: %s = %s;\n", vendor, i, types[vendor][1], response.JSON())
		}
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "written.ts"), []byte(source.String()), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"type":"module"}`), 0o600))
	require.NoError(t, os.Symlink(filepath.Join(oracle.Dir(), "node_modules"), filepath.Join(dir, "node_modules")))
	cmd := exec.CommandContext(t.Context(), oracle.Path(t, "node"), filepath.Join(oracle.Module(t, "typescript"), "bin", "tsc"),
		"--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--target", "es2022", "--types", "", "written.ts")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
