//go:build !linux

package writeguard

import (
	"errors"
	"os"
)

// addedMode is a file whose mode is changed temporarily.
type addedMode struct{}

func addMode(string, string, os.FileMode) (*addedMode, error) { return nil, errors.ErrUnsupported }

func (l *addedMode) restore() {}

func (l *addedMode) procPath() string { return "" }
