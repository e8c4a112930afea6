package llm

import (
	"encoding/json"
	"strconv"

	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// A LossKind is the severity of a Loss.
type LossKind string

// The kinds.
const (
	Lost       LossKind = "lost"    // the value was dropped
	Changed    LossKind = "changed" // the replacement has another meaning
	Equivalent LossKind = "carried" // the replacement has the same meaning
	Refused    LossKind = "refused" // a requested option is not applied; no content was lost
)

// A Loss is a value that a conversion dropped or replaced.
type Loss struct {
	Kind LossKind `json:"kind"`
	Tool string   `json:"tool,omitempty"` // name of the tool whose definition was converted; "": another value
	Path string   `json:"path"`           // JSON pointer into the converted value
	Why  string   `json:"why"`

	// Replacement is the new value, in the target format; nil: none.
	Replacement json.RawMessage `json:"now,omitempty"`
}

// String returns the loss on one line.
func (l Loss) String() string {
	text := string(l.Kind) + " " + l.Path + ": " + l.Why
	if l.Tool != "" {
		text = l.Tool + ": " + text
	}
	return text
}

// Losses is the report of a conversion, in the order in which values were converted:
// inner values before outer ones.
type Losses []Loss

// AddLost reports that the value at a pointer was dropped.
func (l *Losses) AddLost(path, why string) {
	l.add(Loss{Kind: Lost, Path: path, Why: why})
}

// AddChanged reports that the value at a pointer was replaced by now, which has another
// meaning.
func (l *Losses) AddChanged(path, why string, now *tree.Value) {
	l.add(Loss{Kind: Changed, Path: path, Why: why, Replacement: now.JSON()})
}

// AddEquivalent reports that the value at a pointer was replaced by one with the same
// meaning. now is nil if another entry reports it.
func (l *Losses) AddEquivalent(path, why string, now *tree.Value) {
	loss := Loss{Kind: Equivalent, Path: path, Why: why}
	if now != nil {
		loss.Replacement = now.JSON()
	}
	l.add(loss)
}

// maxLosses bounds a report, because converted values can come from anyone.
const maxLosses = 1000

// add adds a loss unless an equal one is listed (a definition can be used in many
// places) or the report is full.
func (l *Losses) add(loss Loss) {
	for _, known := range *l {
		if known.Path == loss.Path && known.Kind == loss.Kind && known.Why == loss.Why && string(known.Replacement) == string(loss.Replacement) {
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

// AddUnread adds a loss for each value in v that the decoder has not read, and for each
// string in which half of a surrogate pair was replaced.
func (l *Losses) AddUnread(v *tree.Value) {
	v.EachUnread("", func(pointer string, loneSurrogate bool) {
		if loneSurrogate {
			l.add(Loss{Kind: Changed, Path: pointer, Why: "half of a surrogate pair became U+FFFD", Replacement: json.RawMessage(`null`)})
			return
		}
		l.AddLost(pointer, "this field is not supported")
	})
}

// WithTool sets the definition's name on all losses, in place, and returns them.
func (l Losses) WithTool(tool string) Losses {
	for i := range l {
		l[i].Tool = tool
	}
	return l
}

// AppendIndex returns the JSON pointer of item i of the list at path.
func AppendIndex(path string, i int) string { return path + "/" + strconv.Itoa(i) }

// AppendKey returns the JSON pointer of the member name of the object at path.
func AppendKey(path, name string) string { return path + "/" + tree.Escape(name) }
