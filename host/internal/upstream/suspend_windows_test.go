package upstream_test

import (
	"errors"
	"os"
)

// suspend is not there.
func suspend(*os.Process) error { return errors.ErrUnsupported }
