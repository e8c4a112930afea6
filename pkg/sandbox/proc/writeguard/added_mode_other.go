//go:build !linux

package writeguard

import (
	"errors"
	"os"
)

// lifted is a file whose mode is changed temporarily.
type lifted struct{}

func lift(string, string, os.FileMode) (*lifted, error) { return nil, errors.ErrUnsupported }

func (l *lifted) drop() {}

func (l *lifted) path() string { return "" }
