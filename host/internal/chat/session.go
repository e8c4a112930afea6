package chat

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/chat/screen"
	"github.com/toolroom-mcp/toolroom/host/internal/conversation"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// LastSession is the name for the last used session.
const LastSession = "last"

// resume continues the session with an id or name, or the last one. The chat then has its
// messages. It returns NOT_FOUND for an unknown one.
func (c *Chat) resume(ctx context.Context, name string) error {
	s, err := c.find(ctx, name)
	if err != nil {
		return err
	}
	messages, err := c.cfg.Host.Sessions.Messages(ctx, s.ID)
	if err != nil {
		return err
	}
	c.session, c.history, c.pending, c.turns = s, conversation.WithResults(messages), "", nil
	return nil
}

// find returns the session with an id or name, or with Last the most recently used
// session. It returns NOT_FOUND for an unknown one, and for Last if no session is
// saved.
func (c *Chat) find(ctx context.Context, name string) (*conversation.Session, error) {
	if name != LastSession {
		return c.cfg.Host.Sessions.Find(ctx, name)
	}
	all, err := c.cfg.Host.Sessions.List(ctx)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, toolerr.New(toolerr.NotFound, "sessions are not saved, so none can be resumed")
	}
	return &all[0], nil
}

// turnInProgress is a running turn that is stored in the session step by step, so that its
// messages survive a kill of the program.
type turnInProgress struct {
	userText string
	part     string        // name of the turn in the session
	all      []llm.Message // messages of the turn
	kept     int           // number of stored messages
	made     bool          // the session was created for this turn
	fault    error         // why the other messages are not stored
}

// newTurnInProgress returns a turn of which nothing is saved yet.
func (c *Chat) newTurnInProgress(said string) *turnInProgress {
	return &turnInProgress{userText: said, part: rand.Text()}
}

// storeTimeout limits storing a message.
const storeTimeout = 10 * time.Second

// storeMessages adds messages to a turn, and stores those that are not stored yet. It does
// nothing if sessions are not stored. u.fault tells why storing failed; nil: it did not.
func (c *Chat) storeMessages(ctx context.Context, u *turnInProgress, added ...llm.Message) {
	book := c.cfg.Host.Sessions
	u.all = append(u.all, added...)
	if book == nil || u.kept == len(u.all) {
		return
	}
	// The messages are stored even if the turn is cancelled.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	u.fault = c.appendToSession(ctx, book, u)
	if toolerr.Is(u.fault, toolerr.NotFound) && c.session != nil { // another program deleted it
		c.session = nil
		u.fault = c.appendToSession(ctx, book, u)
	}
}

// appendToSession appends to the session the messages of the turn that it does not have. If
// there is no session yet, it creates one with the earlier messages. It returns NOT_FOUND
// if another program has deleted the session.
func (c *Chat) appendToSession(ctx context.Context, store *conversation.Store, u *turnInProgress) error {
	model := c.model.Info().Name
	if c.session == nil {
		s, err := store.Create(ctx, conversation.Session{Name: screen.OneLine(u.userText, 60), Model: model})
		if err == nil {
			s, err = store.Append(ctx, s.ID, c.history...)
		}
		if err != nil {
			return err
		}
		c.session, u.made, u.kept = s, len(c.history) == 0, 0
	}
	s, err := store.AppendPart(ctx, c.session.ID, u.part, u.all[u.kept:]...)
	if err == nil {
		u.kept = len(u.all)
	}
	if err == nil && s.Model != model {
		s, err = store.SetModel(ctx, s.ID, model)
	}
	if err != nil {
		return err
	}
	c.session = s
	return nil
}

// removeStoredTurn removes from the session the stored messages of a turn without result, or
// the session if it was created for the turn. u.fault tells why that failed; nil: it did not.
func (c *Chat) removeStoredTurn(ctx context.Context, u *turnInProgress) {
	book := c.cfg.Host.Sessions
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	switch {
	case c.session == nil || u.kept == 0 && !u.made:
		u.fault = nil // it does not exist
	case u.made:
		u.fault = book.Delete(ctx, c.session.ID)
		c.session = nil
	default:
		s, err := book.RemovePart(ctx, c.session.ID, u.part)
		if err == nil {
			c.session = s
		}
		u.fault = err
	}
	if toolerr.Is(u.fault, toolerr.NotFound) { // another program deleted it
		u.fault = nil
	}
}

// summary returns the id, name and number of messages of the session, and the model's last
// text or the user's unanswered message.
func (c *Chat) summary() string {
	text := fmt.Sprintf("session %s: %q, %s", c.session.ID, c.session.Name, textfmt.Count(len(c.history), "message"))
	for i := len(c.history) - 1; i >= 0; i-- {
		m := c.history[i]
		if m.Role == llm.UserRole && i == len(c.history)-1 {
			text += "\nunanswered: " + screen.OneLine(messageText(m), 200)
		}
		if m.Role == llm.AssistantRole && messageText(m) != "" {
			return text + "\nlast: " + screen.OneLine(messageText(m), 200)
		}
	}
	return text
}

// messageText returns the text parts of a message, one per line; "": it has none.
func messageText(m llm.Message) string {
	var all []string
	for _, p := range m.Parts {
		if p.Type == llm.TextPart && p.Text != "" {
			all = append(all, p.Text)
		}
	}
	return strings.Join(all, "\n")
}

// sessionCommand runs the command /session: it shows, lists, names, forks or deletes
// sessions, or continues another one. It returns INVALID_INPUT for wrong arguments, and
// NOT_FOUND for an unknown session.
func (c *Chat) sessionCommand(ctx context.Context, args []string) error {
	book := c.cfg.Host.Sessions
	if book == nil {
		return toolerr.New(toolerr.NotFound, "no saved sessions")
	}
	word, rest := "", ""
	if len(args) > 0 {
		word, rest = args[0], strings.Join(args[1:], " ")
	}
	switch word {
	case "":
		if c.session == nil {
			c.view.print("a new, empty session; /session list shows the saved ones")
			return nil
		}
		c.view.print(c.summary())
	case "list":
		return c.listSessions(ctx)
	case "new":
		c.startNewSession()
	case "name":
		if c.session == nil || rest == "" {
			return toolerr.New(toolerr.InvalidInput, "an empty session cannot be named")
		}
		s, err := book.Rename(ctx, c.session.ID, rest)
		if err != nil {
			return err
		}
		c.session = s
	case "fork":
		if c.session == nil {
			return toolerr.New(toolerr.InvalidInput, "this session is empty")
		}
		s, err := book.Fork(ctx, c.session.ID, rest, 0)
		if err != nil {
			return err
		}
		c.session = s
		c.view.print(c.summary())
	case "delete":
		s, err := c.find(ctx, rest)
		if err != nil {
			return err
		}
		if yes, err := c.confirm(ctx, fmt.Sprintf("Delete %s (%s)?", s.ID, screen.OneLine(s.Name, 60))); !yes {
			return err
		}
		if c.session != nil && c.session.ID == s.ID {
			c.startNewSession()
		}
		return book.Delete(ctx, s.ID)
	default:
		if err := c.resume(ctx, strings.Join(args, " ")); err != nil {
			return err
		}
		c.view.print(c.summary())
	}
	return nil
}

// maxListedSessions bounds the listed sessions.
const maxListedSessions = 20

// listSessions shows the saved sessions, the last used first, at most maxListedSessions. The
// current one has a star.
func (c *Chat) listSessions(ctx context.Context) error {
	all, err := c.cfg.Host.Sessions.List(ctx)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		c.view.print("no session is saved")
		return nil
	}
	var rows [][]string
	for _, s := range all[:min(len(all), maxListedSessions)] {
		mark := ""
		if c.session != nil && c.session.ID == s.ID {
			mark = "*"
		}
		rows = append(rows, []string{mark, s.ID, s.Updated.Local().Format("2006-01-02 15:04"), textfmt.Count(s.Messages, "message"), screen.OneLine(s.Name, 60)})
	}
	text := formatColumns(rows)
	if len(all) > maxListedSessions {
		text += fmt.Sprintf("and %d older sessions", len(all)-maxListedSessions)
	}
	c.view.print(text)
	return nil
}

// startNewSession begins a new session. The old one stays stored.
func (c *Chat) startNewSession() {
	c.session, c.history, c.pending, c.turns = nil, nil, "", nil
	c.view.print("a new session")
}
