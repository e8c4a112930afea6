package mcpkit

import (
	"fmt"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/callerror"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// faultsError returns a *callerror.ValidationError with all faults and the tool's
// arguments: MISSING_PARAMETER if arguments are only missing, else INVALID_PARAMS. There
// must be a fault.
func (c *checker) faultsError(t *Tool) error {
	code := toolerr.MissingParameter
	var lines []string
	pointers := []string{}
	for i, f := range c.faults {
		if !f.missing {
			code = toolerr.InvalidParams
		}
		if i < maxFaults {
			lines = append(lines, f.text)
		}
		if i < maxFaults && f.pointer != "" {
			pointers = append(pointers, printable(f.pointer))
		}
	}
	total := len(c.faults) + c.droppedFaults
	if total > len(lines) {
		lines = append(lines, fmt.Sprintf("and %d more", total-len(lines)))
	}
	detail := strings.Join(lines, "\n")
	text := detail
	if total > 1 {
		text = fmt.Sprintf("%d invalid arguments for %s:\n%s", total, t.Name(), detail)
	}
	if signature := t.input.argumentList(); signature != "" {
		text += fmt.Sprintf("\n%s takes: %s", t.Name(), signature)
	}
	return &callerror.ValidationError{
		Type: callerror.ArgsInvalid, Tool: t.Name(), Detail: detail, Path: c.faults[0].pointer,
		Err: toolerr.New(code, "%s", text).With("invalid", pointers),
	}
}

// fault is one error in the arguments.
type fault struct {
	pointer string // JSON pointer to the value
	text    string // a sentence that begins with the pointer
	missing bool   // a required argument is missing
}

// maxFaults bounds the faults that an error lists.
const maxFaults = 20

// addFault records a fault, up to a limit: three megabytes of arguments may
// have a million.
func (c *checker) addFault(f fault) {
	if len(c.faults) >= 10*maxFaults {
		c.droppedFaults++
		return
	}
	c.faults = append(c.faults, f)
}
