package validate

import (
	"encoding/json"
	"errors"

	"github.com/toolroom-mcp/toolroom/internal/schemacheck"
)

// CheckSchema returns an error if a schema cannot be used.
func CheckSchema(text json.RawMessage) error {
	_, err := schemacheck.Compile(text)
	return err
}

// Check returns an error if a value violates a usable schema. It returns nil if the
// value is too large to be checked.
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
