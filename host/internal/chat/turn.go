package chat

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/agent"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
)

// modelSpending holds the tokens and cost of a model.
type modelSpending struct {
	turns int
	usage llm.Usage
	cost  float64
	price provider.Price
}

// textParts returns the parts of a message that is one text.
func textParts(text string) []llm.Part { return []llm.Part{{Type: llm.TextPart, Text: text}} }

// runTurn sends a message to the model, shows the answer, and stores both. Its error ends
// the chat: errStuck, or that of ctx. c.failed tells whether the turn reached its goal.
func (c *Chat) runTurn(ctx context.Context, said string) error {
	began := time.Now()
	text := said
	if c.pending != "" {
		text = c.pending + "\n\n" + said
	}
	asked := llm.Message{Role: llm.UserRole, Parts: textParts(text)}
	kept := c.newTurnInProgress(said)
	c.storeMessages(ctx, kept, asked)
	var out *agent.Outcome
	err := c.runInterruptible(ctx, func(ctx context.Context) {
		out = c.runAgent(ctx, append(slices.Clone(c.history), asked), func(added []llm.Message) { c.storeMessages(ctx, kept, added...) })
	})
	if err != nil {
		return err
	}
	c.failed = out.Ending != agent.EndGoal
	if len(out.Messages) > 0 {
		c.pending = ""
		c.storeMessages(ctx, kept, out.Messages[len(kept.all)-1:]...)
		c.history = append(append(c.history, asked), out.Messages...)
		c.recordChanges(began, out)
	} else { // as if the message had not been sent
		c.removeStoredTurn(ctx, kept)
	}
	if kept.fault != nil {
		c.view.showNote("this turn is not saved: %v", kept.fault)
	}
	c.view.showOutcome(out, c.countUsage(out))
	if out.Ending == agent.EndCancelled && c.editor == nil && !c.cfg.Typing {
		c.quitting = true // further output cannot be seen
	}
	return ctx.Err()
}

// runAgent runs the agent for a conversation until it or ctx ends, and returns its outcome.
// onMessages is called with the messages that were added: see agent.Config.OnMessages.
func (c *Chat) runAgent(ctx context.Context, messages []llm.Message, onMessages func([]llm.Message)) *agent.Outcome {
	c.waitTimes.reset()
	ask := c.Ask
	if !c.canAsk() {
		ask = nil
	}
	tools := c.cfg.Host.Turn(ask)
	out := agent.Run(ctx, agent.Config{
		Model: c.model, Tools: &approvingTools{Tools: tools, chat: c}, Request: c.cfg.Request, System: c.cfg.System,
		Bounds: c.cfg.Bounds, OnMessages: onMessages, On: func(e agent.Event) { c.view.showEvent(e, c.model.Info()) },
	}, messages)
	if err := tools.End(); err != nil && out.Ending == agent.EndGoal {
		out.Err = err
	}
	return out
}

// countUsage adds the usage of a turn to that of its model, and returns the turn's cost; 0 if
// the price is unknown.
func (c *Chat) countUsage(out *agent.Outcome) float64 {
	info := c.model.Info()
	s := c.spent[info.Name]
	if s == nil {
		s = &modelSpending{price: info.Price}
		c.spent[info.Name] = s
		c.order = append(c.order, info.Name)
	}
	s.turns++
	s.usage.Input += out.Usage.Input
	s.usage.CacheRead += out.Usage.CacheRead
	s.usage.CacheWrite += out.Usage.CacheWrite
	s.usage.Output += out.Usage.Output
	s.usage.Reasoning += out.Usage.Reasoning
	s.cost += out.Cost
	return out.Cost
}

// runInterruptible runs work that may take long in a goroutine. Meanwhile it asks the
// user questions, and an interrupt cancels the work. At the third interrupt it returns
// errStuck while the work still runs, and the chat must end. A panic of work is raised
// again in the caller's goroutine.
func (c *Chat) runInterruptible(ctx context.Context, work func(context.Context)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if c.cfg.Terminal != nil {
		defer c.cfg.Terminal.DisableEcho()()
	}
	done := make(chan any, 1) // value of a panic of work; nil: none
	go func() {
		defer func() {
			p := recover()
			if p != nil {
				p = fmt.Sprintf("%v\n\n%s", p, debug.Stack())
			}
			done <- p
		}()
		work(ctx)
	}()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	interrupts := 0
	interrupt := func() error {
		cancel()
		switch interrupts++; interrupts {
		case 1:
		case 2:
			c.view.showNote("the current turn is still stopping; press Ctrl-C again to exit")
		default:
			return errStuck
		}
		return nil
	}
	defer c.view.idle()
	for {
		select {
		case p := <-done:
			if p != nil {
				panic(p) // in this goroutine, which restores the terminal
			}
			return nil
		case q := <-c.questions:
			if err := c.letUserAnswer(q, interrupt); err != nil {
				return err
			}
		case <-c.cfg.Interrupts:
			if err := interrupt(); err != nil {
				return err
			}
		case now := <-tick.C:
			c.view.tick(now)
		}
	}
}

// errStuck means that the user gave up waiting for the end of an interrupted turn.
var errStuck = fmt.Errorf("interrupted before the current turn had stopped: %w", os.ErrDeadlineExceeded)
