package approve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// The limits of a question as shown. Nobody should approve text that is not completely
// visible, and clients cut or scroll longer messages. A longer question waits for a
// decision in another way.
const (
	maxShown      = 8 << 10 // bytes
	maxShownLines = 200
)

// isShowable reports whether the text of the question about a request is at most maxShown bytes
// and maxShownLines lines.
func isShowable(r *Record) bool {
	text := questionText(r)
	return len(text) <= maxShown && strings.Count(text, "\n") < maxShownLines
}

// elicit asks the person at the caller's client, waits for the answer, and records the
// decision. If the client cannot ask or the person dismisses the question, it returns nil
// and the request stays pending. It returns the error of ctx if that ends, and that of the
// store. Meanwhile the timeouts of the call are paused.
func (s *Stage) elicit(ctx context.Context, req *call.Request, r *Record) error {
	// A decision elsewhere ends the question.
	asking, cancel := context.WithDeadline(ctx, r.Expires)
	defer cancel()
	decided := make(chan struct{})
	go func() {
		defer close(decided)
		s.store.Await(asking, r.ID) //nolint:errcheck // ask returns the reason
		cancel()
	}()
	resume := call.PauseClocks(ctx)
	raw, err := req.Ask(call.WithHostQuestion(asking), "elicitation/create", question(r))
	resume()
	cancel()
	<-decided
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return nil
	}
	var answer struct {
		Action  string `json:"action"`
		Content struct {
			Decision string `json:"decision"`
			Note     string `json:"note"`
		} `json:"content"`
	}
	if json.Unmarshal(raw, &answer) != nil {
		return nil
	}
	who := "the user"
	if r.Caller.User != "" {
		who = r.Caller.User
	}
	d := Decision{By: who + " at " + r.Caller.EntryPoint, Note: strings.ToValidUTF8(answer.Content.Note[:min(len(answer.Content.Note), maxNote)], "")}
	switch {
	case answer.Action == "accept" && answer.Content.Decision == "approve":
		d.Approve = true
	case answer.Action == "accept" && answer.Content.Decision == "deny", answer.Action == "decline":
	default:
		return nil
	}
	if _, err := s.store.Decide(ctx, r.ID, d); err != nil && !toolerr.Is(err, toolerr.Conflict) && !toolerr.Is(err, toolerr.NotFound) {
		return s.storeError(req, err)
	}
	return nil
}

// questionText returns the text that a client shows: tool, server, reason, scope and
// arguments.
func questionText(r *Record) string {
	text := fmt.Sprintf("May %s of server %s be called? %s.\n\n%s", EscapeInvisible(r.Tool), EscapeInvisible(r.Server), EscapeInvisible(r.Reason), FormatJSON(r.Args))
	if r.Where != "" {
		text += "\n\n(" + EscapeInvisible(r.Where) + ")"
	}
	return text
}

// question returns the params of elicitation/create for a request.
func question(r *Record) json.RawMessage {
	params := jsonrpc.AppendString([]byte(`{"message":`), questionText(r))
	return append(params, `,"requestedSchema":{"type":"object","properties":{`+
		`"decision":{"type":"string","title":"Decision","enum":["approve","deny"]},`+
		`"note":{"type":"string","title":"Note","description":"Reason sent to the caller"}},"required":["decision"]}}`...)
}

// withRemark returns a result with a text for the caller, if the call was approved
// with a note or with changed arguments. Any other result stays as it is.
func withRemark(res *call.Result, r *Record) *call.Result {
	if res == nil || r.Edited == nil && r.Note == "" {
		return res
	}
	members, err := jsonrpc.Members(res.Raw)
	if err != nil {
		return res
	}
	text := "Approved by " + r.By
	if r.Edited != nil {
		text += " with changed arguments: " + string(r.Edited)
	}
	if r.Note != "" {
		text += "\nNote: " + r.Note
	}
	note := append(jsonrpc.AppendString([]byte(`{"type":"text","text":`), text), '}')
	for _, m := range members {
		if m.Name != "content" || len(m.Value) < 2 || m.Value[0] != '[' {
			continue
		}
		list := bytes.TrimSpace(m.Value[1 : len(m.Value)-1])
		content := append([]byte{'['}, list...)
		if len(list) > 0 {
			content = append(content, ',')
		}
		raw, err := jsonrpc.SetMember(res.Raw, "content", append(append(content, note...), ']'))
		if err != nil {
			return res
		}
		return &call.Result{Raw: raw}
	}
	return res
}
