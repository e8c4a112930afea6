//go:build race || windows

package app

import (
	"testing"

	"github.com/toolroom-mcp/toolroom/host/store/backend"
)

func servedStores(*testing.T) []backend.Config { return nil }
