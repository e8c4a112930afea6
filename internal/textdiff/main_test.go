package textdiff

import (
	"os"
	"testing"
	"time"
)

// On a slow or suspended machine, the time limit would end a call before the
// size limits.
func TestMain(m *testing.M) {
	maxTime = time.Hour
	os.Exit(m.Run())
}
