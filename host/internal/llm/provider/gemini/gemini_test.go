package gemini

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/endpoint"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/retry"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// script writes a program for the shell.
func script(t *testing.T, text string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a script of the shell's")
	}
	name := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(name, []byte("#!/bin/sh\n"+text), 0o700))
	return name
}

func history() *llm.Request {
	return &llm.Request{Messages: []llm.Message{
		{Role: llm.UserRole, Parts: []llm.Part{{Type: llm.TextPart, Text: "hi"}}},
		{Role: llm.AssistantRole, Parts: []llm.Part{{Type: llm.CallPart, ToolCall: &llm.ToolCall{ID: "x", Name: "ls", Args: []byte(`{}`)}}}},
		{Role: llm.ToolRole, Parts: []llm.Part{{Type: llm.ResultPart, ToolResult: &llm.ToolResult{ID: "x", Content: []llm.Part{{Type: llm.TextPart, Text: "a"}}}}}},
	}}
}

func TestVertex(t *testing.T) {
	var got, auth []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) //nolint:errcheck // the test sees
		got, auth = append(got, r.URL.String()+" "+string(body)), append(auth, r.Header.Get("Authorization"))
		if r.Header.Get("Authorization") != "Bearer token2" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		io.WriteString(w, `{"candidates":[{"content":{"parts":[{"text":"ok"}]},"finishReason":"STOP"}]}`) //nolint:errcheck // the test sees
	}))
	defer s.Close()
	count := filepath.Join(t.TempDir(), "count")
	m := New(Config{
		Config: endpoint.Config{Name: "v", BaseURL: s.URL, Retry: retry.Policy{Base: time.Millisecond}}, Model: "gemini-3-pro", Project: "p", Region: "global",
		Token: []string{script(t, `echo x >> "$1"; echo " token$(wc -l < "$1" | tr -d ' ')"`), count},
	})
	m.tokens.minAge = 0
	res, err := m.Ask(t.Context(), history(), nil)
	require.NoError(t, err)
	require.Equal(t, "ok", res.Parts[0].Text)
	require.Equal(t, []string{"Bearer token1", "Bearer token2"}, auth, "a token that was refused is made anew, once")
	require.Contains(t, got[1], "/projects/p/locations/global/publishers/google/models/gemini-3-pro:generateContent ")
	require.NotContains(t, got[1], `"id"`, "Vertex AI knows no ids of calls")
	require.Contains(t, got[1], `"thoughtSignature":"skip_thought_signature_validator"`)
	_, err = m.Ask(t.Context(), history(), nil)
	require.NoError(t, err)
	require.Equal(t, "Bearer token2", auth[2], "it is kept")
}

func TestATokenCommandThatFails(t *testing.T) {
	for text, says := range map[string]string{
		"echo secret-token; echo 'not signed in' >&2; exit 3": "failed: exit status 3: not signed in",
		"":               "wrote no token",
		"printf 'a\\nb'": "wrote no token",
	} {
		m := New(Config{Config: endpoint.Config{Name: "v"}, Model: "m", Project: "p", Region: "r", Token: []string{script(t, text)}})
		_, err := m.Ask(t.Context(), history(), nil)
		require.Equal(t, toolerr.AuthFailed, toolerr.CodeOf(err))
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "secret-token")
	}
}

func TestAddressesAndVersions(t *testing.T) {
	require.Equal(t, "https://europe-west4-aiplatform.googleapis.com/v1", New(Config{Model: "m", Project: "p", Region: "europe-west4"}).cfg.BaseURL)
	require.Equal(t, "https://aiplatform.googleapis.com/v1", New(Config{Model: "m", Project: "p", Region: "global"}).cfg.BaseURL)
	require.Equal(t, BaseURL, New(Config{Model: "m"}).cfg.BaseURL)
	for model, want := range map[string]bool{"gemini-3-pro-preview": true, "models/gemini-3.5": true, "gemini-10-pro": true, "gemini-2.5-pro": false, "gemini-1.5-pro": false, "gemma-3": false, "gemini-": false, "gemini-flash-latest": false} {
		require.Equal(t, want, needsSignatures(model), model)
	}
}
