package mcpkittest

import (
	"flag"
)

// update makes tests rewrite their expectations with the actual results.
var update = flag.Bool("update", false, "rewrite snapshots and the expected text of scripts")
