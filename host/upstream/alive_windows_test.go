package upstream_test

import "os"

func processAnswers(pid int) bool {
	p, err := os.FindProcess(pid)
	return err == nil && p.Release() == nil
}
