package core

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/timeout"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
)

// A server that does one thing after the other answers no ping during a call: it
// may be silent for as long as its calls may take, wherever that is said.
func TestAServerMayBeSilentForAsLongAsItsCallsMayTake(t *testing.T) {
	const none = time.Duration(0) // the upstream's own
	for name, c := range map[string]struct {
		own     time.Duration
		stages  timeout.Config
		bundled bool
		want    time.Duration
	}{
		"nothing said":           {want: none},
		"less than usual":        {own: 10 * time.Second, want: none},
		"the server":             {own: 2 * time.Minute, want: time.Minute},
		"all servers":            {stages: timeout.Config{Default: 2 * time.Minute}, want: time.Minute},
		"the server wins":        {own: 40 * time.Second, stages: timeout.Config{Default: time.Hour}, want: 20 * time.Second},
		"a tool":                 {stages: timeout.Config{Tools: map[string]time.Duration{"a": time.Second, "b": 2 * time.Minute}}, want: time.Minute},
		"for ever":               {stages: timeout.Config{Default: -1}, want: time.Hour},
		"a tool for ever":        {stages: timeout.Config{Tools: map[string]time.Duration{"a": -1, "b": time.Minute}}, want: time.Hour},
		"those that answer, too": {stages: timeout.Config{Default: time.Hour}, bundled: true, want: none},
	} {
		sc := config.Server{Bundled: c.bundled, Spec: dialect.Server{Name: "s", Timeout: c.own}, Config: upstream.Config{Name: "s"}}
		cfg := config.Config{Servers: []config.Server{sc}}
		cfg.Stages.Timeout = c.stages
		require.Equal(t, c.want, upstreamConfig(sc, stageConfigs(cfg).Timeout).QuietTime, name)
	}
}
