package upstream

import (
	"errors"
	"slices"
	"sync"
)

// Request ids of the hosts of a process must differ. SharedServers therefore grants each
// host blocks of ids, further ones on request. All ids are below 2^31, since some servers
// decode them into 32 bits.
const (
	blockBits = 12
	maxBlock  = 1 << (31 - blockBits) // block 0 belongs to SharedServers itself
)

// nextOwnID returns the id after id of the requests of SharedServers itself: those of block
// 0, except 0, and then the first one again.
func nextOwnID(id uint64) uint64 { return id%(1<<blockBits-1) + 1 }

// idBlocks records which host uses which block of ids. A freed block is granted again
// only after all others, so that a late answer to its former host finds no request.
type idBlocks struct {
	last   uint64
	owners map[uint64]*attachedHost
}

// errNoBlocks is returned by grant.
var errNoBlocks = errors.New("too many hosts use the server")

// grant assigns the next free block to a host, in turn. It returns errNoBlocks if none is
// free.
func (b *idBlocks) grant(u *attachedHost) (block uint64, err error) {
	for range maxBlock {
		b.last = b.last%(maxBlock-1) + 1
		if b.owners[b.last] == nil {
			if b.owners == nil {
				b.owners = map[uint64]*attachedHost{}
			}
			b.owners[b.last] = u
			u.blocks = append(u.blocks, b.last)
			return b.last, nil
		}
	}
	return 0, errNoBlocks
}

// owner returns the host that uses an id; nil if none does.
func (b *idBlocks) owner(id uint64) *attachedHost { return b.owners[id>>blockBits] }

// keptBlocks is the number of the last blocks of a host that stay its own: two may still be
// unused, and a request can be sent long after it got its id.
const keptBlocks = 8

// release frees the blocks of a host for which busy returns false, except the last
// keptBlocks. With all, it frees these, too.
func (b *idBlocks) release(u *attachedHost, all bool, busy func(block uint64) bool) {
	kept := u.blocks[:0]
	for i, block := range slices.Clone(u.blocks) {
		if !all && (i >= len(u.blocks)-keptBlocks || busy(block)) {
			kept = append(kept, block)
		} else {
			delete(b.owners, block)
		}
	}
	u.blocks = kept
}

// sharedIDs are the ids that a host may use for requests to a shared process.
type sharedIDs struct {
	request func()        // requests another block
	arrived chan struct{} // capacity 1: a block was added

	mu        sync.Mutex
	next, end uint64
	blocks    []uint64
}

// add adds a block.
func (s *sharedIDs) add(block uint64) {
	s.mu.Lock()
	s.blocks = append(s.blocks, block)
	s.mu.Unlock()
	s.wake()
}

// wake wakes one request that waits in take.
func (s *sharedIDs) wake() {
	select {
	case s.arrived <- struct{}{}:
	default:
	}
}

// take returns an unused id. If none is left, it waits for another block. It returns 0
// when dead is closed.
func (s *sharedIDs) take(dead <-chan struct{}) uint64 {
	for {
		s.mu.Lock()
		if s.next == s.end && len(s.blocks) > 0 {
			s.next, s.end = s.blocks[0]<<blockBits, (s.blocks[0]+1)<<blockBits
			s.blocks = s.blocks[1:]
			s.request()
		}
		if s.next < s.end {
			id := s.next
			s.next++
			s.mu.Unlock()
			return id
		}
		s.mu.Unlock()
		select {
		case <-s.arrived:
			defer s.wake() // there may be ids for others that wait
		case <-dead:
			return 0
		}
	}
}
