package gateway

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

func TestWhatIsToldBeforeTheAcknowledgementIsToldAfterwards(t *testing.T) {
	var s subscriptionStreams
	one, other := &subscriptionStream{profile: "a"}, &subscriptionStream{profile: "b"}
	s.add(one)
	s.add(other)
	onlyA := func(profile string) bool { return profile == "a" }
	sessions, all := s.recipients(call.Tools, false, onlyA)
	require.False(t, all)
	require.Empty(t, sessions)
	require.Equal(t, map[call.ListKind]bool{call.Tools: true}, s.acknowledge(one))
	require.Empty(t, s.acknowledge(other))
	sessions, _ = s.recipients(call.Prompts, false, onlyA)
	require.Len(t, sessions, 1)
	s.remove(other)
	_, all = s.recipients(call.Tools, false, onlyA)
	require.True(t, all, "nobody is left aside")
}
