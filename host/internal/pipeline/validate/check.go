package validate

import (
	"encoding/json"
	"errors"

	"github.com/toolroom-mcp/toolroom/internal/schemacheck"
)

// Usable reports why a schema cannot be used; nil: it can.
func Usable(text json.RawMessage) error {
	_, err := schemacheck.Compile(text)
	return err
}

// Check reports what is wrong with a value by a usable schema; nil: nothing is
// known to be.
func Check(text, value json.RawMessage) error {
	s, err := schemacheck.Compile(text)
	if err != nil {
		return err
	}
	f, err := s.Check(value)
	if err != nil || f == nil {
		return err
	}
	return errors.New(f.Text)
}
