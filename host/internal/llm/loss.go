package llm

import (
	"encoding/json"
	"strconv"

	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// A Kind is the severity of a loss.
type Kind string

// The kinds.
const (
	Lost    Kind = "lost"    // it is gone
	Changed Kind = "changed" // it means something else now
	Carried Kind = "carried" // it means the same in another form
	Refused Kind = "refused" // what was asked for is not done; nothing is lost
)

// A Loss is one thing that a conversion did not keep as it was.
type Loss struct {
	Kind Kind   `json:"kind"`
	Tool string `json:"tool,omitempty"` // of which definition
	Path string `json:"path"`           // JSON pointer into what was converted
	Why  string `json:"why"`

	// Now is the replacement, in the converted format; nil: none.
	Now json.RawMessage `json:"now,omitempty"`
}

// String is the loss on one line.
func (l Loss) String() string {
	text := string(l.Kind) + " " + l.Path + ": " + l.Why
	if l.Tool != "" {
		text = l.Tool + ": " + text
	}
	return text
}

// Losses is the report of a conversion, in the order of the conversion: inner values
// before outer ones.
type Losses []Loss

// Lose reports that what is at the pointer is gone.
func (l *Losses) Lose(path, why string) {
	l.add(Loss{Kind: Lost, Path: path, Why: why})
}

// Change reports that something else is at the pointer, which means
// something else.
func (l *Losses) Change(path, why string, now *tree.Value) {
	l.add(Loss{Kind: Changed, Path: path, Why: why, Now: now.JSON()})
}

// Carry reports a replacement at the pointer with the same meaning. A nil value: it is
// reported elsewhere.
func (l *Losses) Carry(path, why string, now *tree.Value) {
	loss := Loss{Kind: Carried, Path: path, Why: why}
	if now != nil {
		loss.Now = now.JSON()
	}
	l.add(loss)
}

// maxLosses bounds a report: what is converted may be anybody's.
const maxLosses = 1000

// add leaves out what has been said: a definition may be used in many places.
func (l *Losses) add(loss Loss) {
	for _, known := range *l {
		if known.Path == loss.Path && known.Kind == loss.Kind && known.Why == loss.Why && string(known.Now) == string(loss.Now) {
			return
		}
	}
	switch {
	case len(*l) < maxLosses-1:
		*l = append(*l, loss)
	case len(*l) == maxLosses-1:
		*l = append(*l, Loss{Kind: Lost, Why: "further changes are not listed"})
	}
}

// Unread reports what a decoder did not take.
func (l *Losses) Unread(v *tree.Value) {
	v.Rest("", func(pointer string, torn bool) {
		if torn {
			l.add(Loss{Kind: Changed, Path: pointer, Why: "half of a surrogate pair became U+FFFD", Now: json.RawMessage(`null`)})
			return
		}
		l.Lose(pointer, "this field is not supported")
	})
}

// Of puts the name of a definition on losses.
func (l Losses) Of(tool string) Losses {
	for i := range l {
		l[i].Tool = tool
	}
	return l
}

// Index adds the index of an item to a pointer.
func Index(path string, i int) string { return path + "/" + strconv.Itoa(i) }

// Key adds the name of a member to a pointer.
func Key(path, name string) string { return path + "/" + tree.Escape(name) }
