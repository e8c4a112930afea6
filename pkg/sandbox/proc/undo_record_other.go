//go:build !linux

package proc

import (
	"errors"
	"os"
)

func openDirPath(string) (*os.File, error) { return nil, errors.ErrUnsupported }
