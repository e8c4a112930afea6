//go:build !linux

package writeguard

import (
	"errors"
	"os"
)

// addedMode is unused: no level confines commands on this system.
type addedMode struct{}

// addMode returns errors.ErrUnsupported.
func addMode(string, string, os.FileMode) (*addedMode, error) { return nil, errors.ErrUnsupported }

// restore does nothing.
func (l *addedMode) restore() {}

// procPath returns "": no file is open.
func (l *addedMode) procPath() string { return "" }

// closeWithMode does nothing.
func (l *addedMode) closeWithMode(os.FileMode) {}
