//go:build !linux

package resident

// usage returns zeros: this system does not tell.
func usage(int) (memory int64, cpu float64) { return 0, 0 }
