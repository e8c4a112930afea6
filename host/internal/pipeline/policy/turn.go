package policy

import (
	"cmp"
	"crypto/rand"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A Turn is one answer of a model's, with all rounds of calls that it takes.
// It is used by one goroutine; its calls may be made by many.
//
//	turn := p.Turn(caller)
//	for {
//		if err := turn.Round(); err != nil { … } // answer with what there is
//		choice, err := turn.Choice(asked)
//		// ask the model, offering tools as choice says; end when it calls none
//		// make its calls, with turn.Caller()
//	}
//	err := turn.End()
type Turn struct {
	p      *Policy
	caller call.Caller
	rounds int
}

// Turn begins a turn of a caller's.
func (p *Policy) Turn(c call.Caller) *Turn {
	c.ModelTurn = "turn " + rand.Text() // another policy may take this one's place before it ends
	return &Turn{p: p, caller: c}
}

// Caller returns the caller of the turn.
func (t *Turn) Caller() call.Caller { return t.caller }

// Round begins a round, before the model is asked. Its error says that there
// were as many as there may be.
func (t *Turn) Round() error {
	most := t.p.cfg.MaxRounds
	if most == 0 {
		most = defaultRounds
	}
	if most > 0 && t.rounds >= most {
		return toolerr.New(toolerr.LimitReached, "all rounds of this turn have been made (max_rounds: %d); answer with what you have", most)
	}
	t.rounds++
	return nil
}

// Choice returns the tool choice for the model: the requested one, as far as the
// policy permits. After a tool was called no call is required any more, so that the
// model can answer.
func (t *Turn) Choice(asked string) (string, error) {
	own, want := cmp.Or(t.p.cfg.ToolChoice, ChoiceAuto), cmp.Or(asked, ChoiceAuto)
	switch {
	case own == ChoiceNone || want == ChoiceNone:
		return ChoiceNone, nil
	case named(own) && named(want) && own != want:
		return "", toolerr.New(toolerr.PolicyDenied, "the policy of this host allows only %s (tool_choice), not %s", own, want)
	case t.p.counts.calls(t.caller) > 0: // of a name the rest is seen to when it is called
		return ChoiceAuto, nil
	case named(own) || want == ChoiceAuto:
		return own, nil
	}
	return want, nil
}

func named(choice string) bool {
	return choice != ChoiceAuto && choice != ChoiceRequired && choice != ChoiceNone
}

// End ends the turn. Its error says that no tool was called though one had to
// be.
func (t *Turn) End() error {
	called := t.p.counts.calls(t.caller)
	t.p.counts.end(t.caller)
	if called == 0 && t.p.cfg.ToolChoice == ChoiceRequired {
		return toolerr.New(toolerr.PolicyDenied, "the policy of this host requires a tool call in each turn (tool_choice: required), and there was none")
	}
	return nil
}
