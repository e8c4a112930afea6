//go:build !linux

package proc

// hangUp does nothing: there is no supervisor on this system.
func (s *supervisor) hangUp() {}
