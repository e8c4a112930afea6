package config

import "github.com/toolroom-mcp/toolroom/host/internal/config/dialect"

// Stages holds the settings of the pipeline.
type Stages = dialect.Stages
