package chat

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/agent"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/chat/screen"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
)

// The time that a call waits for the user is not shown as the call's.
func TestWaitingForTheUserIsNotTheCallsTime(t *testing.T) {
	c := &Chat{questions: make(chan *question)}
	go func() {
		q := <-c.questions
		value, err := q.put(q.ctx)
		q.answer <- reply{value, err}
	}()
	asked := &llm.ToolCall{ID: "a", Name: "edit"}
	ctx, took := call.MeasureTime(t.Context())
	var during, after time.Duration
	value, err := c.askUser(context.WithValue(t.Context(), askingCallKey{}, &askingCall{ctx: ctx, call: asked}), func(context.Context) (any, error) {
		during = took()
		time.Sleep(2 * time.Millisecond)
		after = took()
		return 7, nil
	})
	require.NoError(t, err)
	require.Equal(t, 7, value)
	require.Positive(t, c.waitTimes.of("a"))
	require.Equal(t, during, after, "the call's clock stands")

	c.waitTimes.reset()
	c.waitTimes.add("a", time.Minute)
	var out bytes.Buffer
	width := func() int { return 80 }
	v := newScreenView(screen.New(&out, width), c.waitTimes.of, width, false, false)
	v.showEvent(agent.Event{Type: agent.CallEvent, ID: "a", Call: asked}, provider.Info{})
	v.tick(time.Now().Add(62 * time.Second))
	require.Contains(t, out.String(), "… edit · ")
	require.NotContains(t, out.String(), "· 6")
}
