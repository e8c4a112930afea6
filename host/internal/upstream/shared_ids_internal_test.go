package upstream

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestOwnIDsBelongToNoHost(t *testing.T) {
	var blocks idBlocks
	u := &attachedHost{}
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
		u := &attachedHost{}
		block, err := blocks.grant(u)
		require.NoError(t, err)
		require.False(t, seen[block])
		seen[block] = true
		require.Less(t, (block+1)<<blockBits-1, uint64(1<<31))
		blocks.release(u, true, nil)
	}
	block, err := blocks.grant(&attachedHost{})
	require.NoError(t, err)
	require.True(t, seen[block])
}

// A block wakes all requests that wait for an id.
func TestABlockIsForAllThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ids := sharedIDs{request: func() {}, arrived: make(chan struct{}, 1)}
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() { ids.take(nil) })
		}
		synctest.Wait()
		ids.add(1)
		all.Wait() // fails if one waits for ever
		require.Equal(t, uint64(1<<blockBits+5), ids.next)
	})
}
