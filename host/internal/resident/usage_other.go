//go:build !linux

package resident

// processUsage returns zeros: this system does not tell.
func processUsage(int) (memory int64, cpu float64) { return 0, 0 }
