package policy

import (
	"maps"
	"slices"
)

// WrapperNames returns the programs in the table of wrappers.
func WrapperNames() []string { return slices.Sorted(maps.Keys(wrappers)) }

// NetworkClientNames returns the banned names that are no patterns.
func NetworkClientNames() []string { return slices.Sorted(maps.Keys(networkClients)) }
