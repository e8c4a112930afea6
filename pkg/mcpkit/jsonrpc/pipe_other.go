//go:build !linux

package jsonrpc

// enlargePipeFD does nothing: this system cannot set a pipe's size.
func enlargePipeFD(uintptr) {}
