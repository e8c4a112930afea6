package chat_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/chat"
	"github.com/toolroom-mcp/toolroom/host/internal/conversation"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/store/memory"
)

// What is said, and each step that is done, is in the session before the turn has ended:
// a chat that is killed loses no more than what was under way. A turn that came to nothing
// leaves nothing.
func TestATurnIsKeptAsFarAsItHasCome(t *testing.T) {
	kept := memory.New(memory.Config{})
	book := &conversation.Store{Keys: kept.Keys, Log: kept.Log, Blobs: kept.Blobs}
	b := newBench(t, func(c *chat.Config) { c.Host.Sessions = book })
	var roles []llm.Role
	holds := func(want ...llm.Role) {
		t.Helper()
		require.Eventually(t, func() bool {
			roles = nil
			all, err := book.List(t.Context())
			if err != nil || len(all) == 0 {
				return err == nil && len(want) == 0
			}
			messages, err := book.Messages(t.Context(), all[0].ID)
			for _, m := range messages {
				roles = append(roles, m.Role)
			}
			return err == nil && len(all) == 1 && all[0].Messages == len(roles) && len(roles) == len(want)
		}, time.Minute, 2*time.Millisecond, "%v", roles)
		require.Equal(t, want, roles)
	}
	give := func(keys, want string) {
		t.Helper()
		b.prompted()
		b.press(keys + "\r")
		b.seen(want)
	}
	give("fail", "AUTH_FAILED")
	b.prompted() // by then it is done
	holds()
	b.press("call echo stay\r")
	holds(llm.UserRole, llm.AssistantRole, llm.ToolRole)
	b.interrupts <- os.Interrupt
	b.seen("cancelled")
	give("hang", "… ")
	holds(llm.UserRole, llm.AssistantRole, llm.ToolRole, llm.UserRole)
	b.interrupts <- os.Interrupt
	b.seen("cancelled")
	give("fail", "AUTH_FAILED")
	give("call echo abc", `It said {"text":"abc"}.`)
	b.prompted()
	holds(llm.UserRole, llm.AssistantRole, llm.ToolRole, llm.UserRole, llm.AssistantRole, llm.ToolRole, llm.AssistantRole)

	all, err := book.List(t.Context())
	require.NoError(t, err)
	require.NoError(t, book.Delete(t.Context(), all[0].ID)) // by another program
	b.press("again\r")
	b.seen("You said again.")
	b.prompted()
	holds(llm.UserRole, llm.AssistantRole, llm.ToolRole, llm.UserRole, llm.AssistantRole, llm.ToolRole, llm.AssistantRole, llm.UserRole, llm.AssistantRole)
	b.press("/quit\r")
	require.NoError(t, <-b.done)
}
