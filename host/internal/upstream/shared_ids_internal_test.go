package upstream

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOwnIDsBelongToNoHost(t *testing.T) {
	var blocks idBlocks
	u := &sharedUser{}
	for range 3 {
		_, err := blocks.grant(u)
		require.NoError(t, err)
	}
	var id uint64
	for range 3 << blockBits {
		id = nextOwnID(id)
		require.NotZero(t, id)
		require.Nil(t, blocks.owner(id))
	}
}

// A block is granted again only after all others.
func TestBlocksAreReusedLate(t *testing.T) {
	var blocks idBlocks
	seen := map[uint64]bool{}
	for range maxBlock - 1 {
		u := &sharedUser{}
		block, err := blocks.grant(u)
		require.NoError(t, err)
		require.False(t, seen[block])
		seen[block] = true
		require.Less(t, (block+1)<<blockBits-1, uint64(1<<31))
		blocks.release(u, true, nil)
	}
	block, err := blocks.grant(&sharedUser{})
	require.NoError(t, err)
	require.True(t, seen[block])
}
