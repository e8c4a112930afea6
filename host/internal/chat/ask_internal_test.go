package chat

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// Who decides sees what the arguments mean, however they are spelt.
func TestWhatIsDecidedOnIsShown(t *testing.T) {
	require.Equal(t, "  {\n    \"command\": \"rm\\u200b -rf\\n\n        ~\"\n  }", formattedArgs(json.RawMessage(`{"command":"\u0072m\u200b -rf\n~"}`)))
}
