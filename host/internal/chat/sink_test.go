package chat_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/chat"
)

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// An answer that nobody got is no good end.
func TestOutputThatCannotBeWritten(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		b := &bench{t: t}
		open := func() *chat.Chat {
			c, err := chat.New(t.Context(), chat.Config{
				In: strings.NewReader("hello\n"), Out: full{}, Err: io.Discard, JSON: asJSON,
				Host: chat.Host{Models: b, Turn: func(ask call.Ask) chat.Tools { return tools{b, ask} }},
			})
			require.NoError(t, err)
			t.Cleanup(c.Close)
			return c
		}
		require.ErrorContains(t, open().Once(t.Context(), "hello"), "no space left")
		require.ErrorContains(t, open().Talk(t.Context()), "no space left")
	}
}
