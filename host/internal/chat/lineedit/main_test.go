package lineedit_test

import (
	"os"
	"testing"

	"github.com/toolroom-mcp/toolroom/internal/testkit/leakcheck"
)

func TestMain(m *testing.M) { os.Exit(leakcheck.Tests{Tests: m}.Run()) }
