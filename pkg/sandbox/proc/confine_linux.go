package proc

import (
	"errors"
	"syscall"
)

func isolate(attr *syscall.SysProcAttr, network bool) {}

func confine(*spec) error { return errors.New("not built") }

func probe([]string) int { return 2 }
