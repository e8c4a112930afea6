package proc_test

import (
	"os"
	"testing"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

func TestMain(m *testing.M) {
	proc.Init()
	os.Exit(m.Run())
}
