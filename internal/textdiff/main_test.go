package textdiff

import (
	"os"
	"testing"
	"time"
)

// On a slow or paused machine the time would end a call before its sizes do.
func TestMain(m *testing.M) {
	maxTime = time.Hour
	os.Exit(m.Run())
}
