//go:build !linux

package proc

func (s *supervisor) hangUp() {}
