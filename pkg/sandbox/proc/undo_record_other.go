//go:build !linux

package proc

import (
	"errors"
	"os"
)

// openDirPath returns errors.ErrUnsupported.
func openDirPath(string) (*os.File, error) { return nil, errors.ErrUnsupported }
