package chat_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/chat"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
)

// An unknown command is refused with a suggestion and never sent to the model.
func TestUnknownCommands(t *testing.T) {
	b := newBench(t, nil)
	for said, want := range map[string]string{
		"/nosuch command":       "/nosuch is not a command. Commands: /tools /servers",
		"/modle demo":           "/modle is not a command; did you mean /model? Commands:",
		"/ses":                  "/ses is not a command; did you mean /session? Commands:",
		"/2":                    "/2 is not a command. Commands:",
		"/echo {}":              "/echo is not a command. Commands:", // a tool, which the model "command" alone takes so
		"/nosuch\x1b\rin lines": "/nosuch is not a command. Commands:",
		"/save x\x1b\rmore":     "/save takes one line; nothing was done",
	} {
		b.prompted()
		b.press(said + "\r")
		b.seen(want)
	}
	b.quit()
	require.Nil(t, b.asked)
}

// Through a pipe an unknown command is a failure.
func TestAnUnknownCommandThroughAPipe(t *testing.T) {
	b := &bench{t: t, changed: make(chan struct{}, 1)}
	c, err := chat.New(t.Context(), chat.Config{In: strings.NewReader("/nosuch\n"), Out: b, Err: b, Host: chat.Host{Models: b}})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	require.ErrorIs(t, c.Talk(t.Context()), chat.ErrFailed)
	require.Contains(t, b.out.String(), "/nosuch is not a command")
	require.Nil(t, b.asked)
}

// With the model "command" a tool's name after a slash is a call.
func TestTheCommandModelTakesTools(t *testing.T) {
	b := newBench(t, func(c *chat.Config) {
		c.Host.Models = commandModels{c.Host.Models}
		c.Host.Tools = func(context.Context) []*call.Tool { return []*call.Tool{{Name: "echo"}} }
	})
	b.prompted()
	b.press("/echo {}\r")
	b.seen("You said /echo {}.")
	b.prompted()
	b.press("/ecko {}\r")
	b.seen("/ecko is not a command")
	b.quit()
}

// commandModels calls its model "command".
type commandModels struct{ chat.Models }

func (m commandModels) Get(ctx context.Context, name string) (provider.Model, error) {
	model, err := m.Models.Get(ctx, "")
	return named{model}, err
}

type named struct{ provider.Model }

func (named) Info() provider.Info { return provider.Info{Name: "command"} }
