package core_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/conversation"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/store/backend"
)

// Sessions are there for the next host with the same state; without any, for this one.
func TestSessionsOutliveTheHostThatHasState(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		open := func() *core.App {
			a, err := core.Open(config.Config{Store: backend.Config{Dir: dir}})
			require.NoError(t, err)
			return a
		}
		a := open()
		s, err := a.Sessions().Create(t.Context(), conversation.Session{Name: "x"})
		require.NoError(t, err)
		_, err = a.Sessions().Append(t.Context(), s.ID, llm.Message{Role: llm.UserRole, Parts: []llm.Part{{Type: llm.TextPart, Text: "hello"}}})
		require.NoError(t, err)
		messages, err := a.Sessions().Messages(t.Context(), s.ID)
		require.NoError(t, err)
		require.Len(t, messages, 1)
		a.Close()
		a = open()
		all, err := a.Sessions().List(t.Context())
		require.NoError(t, err)
		if dir == "" {
			require.Empty(t, all)
		} else {
			require.Len(t, all, 1)
		}
		a.Close()
	}
}

// That a session is forgotten for another is said.
func TestAForgottenSessionIsTold(t *testing.T) {
	a, err := core.Open(config.Config{})
	require.NoError(t, err)
	defer a.Close()
	var told []string
	a.OnNotice(func(text string) { told = append(told, text) })
	var first *conversation.Session
	for i := range 101 {
		require.Empty(t, told)
		s, err := a.Sessions().Create(t.Context(), conversation.Session{Name: fmt.Sprint(i)})
		require.NoError(t, err)
		if first == nil {
			first = s
		}
	}
	require.Len(t, told, 1)
	require.Contains(t, told[0], first.ID)
	require.Contains(t, told[0], "100 are kept")
}
