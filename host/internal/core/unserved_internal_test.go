//go:build race || windows

package core

import (
	"testing"

	"github.com/toolroom-mcp/toolroom/host/internal/store/backend"
)

func servedStores(*testing.T) []backend.Config { return nil }
