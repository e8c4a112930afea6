//go:build !linux

package writeguard

import (
	"errors"
	"os"
)

type addedMode struct{}

func addMode(string, string, os.FileMode) (*addedMode, error) { return nil, errors.ErrUnsupported }

func (l *addedMode) restore() {}

func (l *addedMode) procPath() string { return "" }

func (l *addedMode) closeWithMode(os.FileMode) {}
