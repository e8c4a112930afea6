package config

import "github.com/toolroom-mcp/toolroom/host/internal/config/dialect"

// Stages is what happens to a call on its way.
type Stages = dialect.Stages
