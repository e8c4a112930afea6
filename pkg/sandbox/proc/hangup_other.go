//go:build !linux && !darwin && !windows

package proc

// hangUp does nothing: there is no supervisor on this system.
func (s *supervisor) hangUp() {}
