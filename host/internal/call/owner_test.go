package call_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// A caller without a user is an owner, too, and so is each profile of a user.
func TestOwners(t *testing.T) {
	for _, two := range [][2]call.Caller{
		{{User: "ann"}, {User: "bob"}},
		{{}, {User: "ann"}},
		{{User: "ann"}, {}},
		{{User: "ann"}, {User: "ann", Profile: "few"}},
		{{Profile: "few"}, {}},
	} {
		var o call.Owners
		require.Nil(t, o.First())
		for range 2 {
			o.Add(two[0].Owner())
			require.False(t, o.AreSeveral())
		}
		o.Add(two[1].Owner())
		o.Add(two[0].Owner())
		require.True(t, o.AreSeveral(), two)
		require.Equal(t, two[0].Owner(), *o.First())
	}
}

func TestOwnersAllocateOnce(t *testing.T) {
	var o call.Owners
	c := call.Caller{User: "ann"}
	o.Add(c.Owner())
	require.Zero(t, testing.AllocsPerRun(100, func() { o.Add(c.Owner()) }))
}
