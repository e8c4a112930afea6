package policy

import (
	"cmp"
	"crypto/rand"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A Turn is one answer of a model, with all rounds of calls that it takes. One goroutine
// uses it; many can make its calls.
//
//	turn := p.Turn(caller)
//	for {
//		if err := turn.BeginRound(); err != nil { … } // answer with what there is
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

// Turn begins a turn of a caller.
func (p *Policy) Turn(c call.Caller) *Turn {
	c.ModelTurn = "turn " + rand.Text() // unique, because another policy can replace this one before the turn ends
	return &Turn{p: p, caller: c}
}

// Caller returns the caller of the turn.
func (t *Turn) Caller() call.Caller { return t.caller }

// BeginRound begins a round; call it before the model is asked. It returns LIMIT_REACHED after
// the last permitted round.
func (t *Turn) BeginRound() error {
	most := t.p.cfg.MaxRounds
	if most == 0 {
		most = defaultMaxRounds
	}
	if most > 0 && t.rounds >= most {
		return toolerr.New(toolerr.LimitReached, "all rounds of this turn have been made (max_rounds: %d); answer with what you have", most)
	}
	t.rounds++
	return nil
}

// Choice returns the tool choice for the next request to the model: the asked one as far as
// the policy permits. After a tool was called no call is required any more, so that the
// model can answer. It returns POLICY_DENIED if the policy forbids the asked tool.
func (t *Turn) Choice(asked string) (string, error) {
	own, want := cmp.Or(t.p.cfg.ToolChoice, ChoiceAuto), cmp.Or(asked, ChoiceAuto)
	switch {
	case own == ChoiceNone || want == ChoiceNone:
		return ChoiceNone, nil
	case namesTool(own) && namesTool(want) && own != want:
		return "", toolerr.New(toolerr.PolicyDenied, "the policy of this host allows only %s (tool_choice), not %s", own, want)
	case t.p.counts.turnCalls(t.caller) > 0: // a named tool is checked when it is called
		return ChoiceAuto, nil
	case namesTool(own) || want == ChoiceAuto:
		return own, nil
	}
	return want, nil
}

// namesTool reports whether a tool choice is the name of a tool, and not auto, required,
// none or "".
func namesTool(choice string) bool {
	return choice != ChoiceAuto && choice != ChoiceRequired && choice != ChoiceNone
}

// End ends the turn. It returns POLICY_DENIED if the policy requires a call and none was
// made.
func (t *Turn) End() error {
	called := t.p.counts.turnCalls(t.caller)
	t.p.counts.endTurn(t.caller)
	if called == 0 && t.p.cfg.ToolChoice == ChoiceRequired {
		return toolerr.New(toolerr.PolicyDenied, "the policy of this host requires a tool call in each turn (tool_choice: required), and there was none")
	}
	return nil
}
