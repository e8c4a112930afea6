//go:build race

package mcpkittest

const raced = true
