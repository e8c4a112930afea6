//go:build !linux

package proc

import (
	"errors"
	"os"
)

func openPath(string) (*os.File, error) { return nil, errors.ErrUnsupported }
