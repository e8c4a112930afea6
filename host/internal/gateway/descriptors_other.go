//go:build !unix

package gateway

// descriptorLimit returns the limit of open descriptors of this process, 0 if it is
// unknown.
func descriptorLimit() uint64 { return 0 }
